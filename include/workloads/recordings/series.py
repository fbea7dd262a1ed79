"""Named series of samples, as Prometheus has them, as columns of cells at common times."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from include.model.errors import SpecError
from include.workloads.recordings.assemble import Sheet
from include.workloads.recordings.csv_cells import shortened, with_hint
from include.workloads.recordings.mapping import TIME, Reads, asked_reads, choose, with_unit

CLOCK = "timestamp"
"""The column that all series have in common."""
_MOST_NAMED = 5
_SELECTOR = re.compile(r"\s*([A-Za-z_:][\w:]*)?\s*(?:\{(.*)\})?\s*", re.DOTALL)
_LABEL = re.compile(r'\s*([A-Za-z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')


@dataclass(frozen=True, slots=True)
class Samples:
    """One series: its metric and labels, the values by epoch seconds, and whether it counts up."""

    metric: str
    labels: Mapping[str, str]
    values: Mapping[float, float]
    is_counter: bool = False

    def __str__(self) -> str:
        listed = ",".join(f'{name}="{value}"' for name, value in sorted(self.labels.items()))
        return f"{self.metric}{{{listed}}}" if listed or not self.metric else self.metric


def asked_series(mapping: Mapping[str, str]) -> tuple[list[Reads], list[str]]:
    """What the user maps to series, whose samples carry their time, and all that is wrong."""
    reads, problems = asked_reads(mapping)
    if any(read.signal == TIME for read in reads):
        problems.append("samples carry their time; leave time out of the mapping")
    return reads, problems


def sheet_of(
    name: str, series: Sequence[Samples], mapping: Mapping[str, str]
) -> tuple[Sheet, list[Reads]]:
    """The series that are read as columns at all their times, absent where one has none.

    A mapping names a metric, or one with labels: ``flink_records{job="x"}``. Raises SpecError.
    """
    if mapping:
        reads, problems = asked_series(mapping)
    else:
        reads, problems = choose([CLOCK, *dict.fromkeys(samples.metric for samples in series)], {})
        reads = [] if problems else [read for read in reads if read.signal != TIME]
    chosen: dict[Reads, Samples] = {}
    for read in reads:
        if match := _matching(read, series, problems):
            read_in = with_unit(read, match.metric, problems, is_counter=match.is_counter)
            chosen[read_in] = match
    if problems:
        listed = ", ".join(str(samples) for samples in series[:_MOST_NAMED])
        more = f" and {len(series) - _MOST_NAMED} more" if len(series) > _MOST_NAMED else ""
        raise SpecError(name, with_hint(shortened(problems), f"the series are: {listed}{more}"))
    return joined(chosen)


def joined(chosen: Mapping[Reads, Samples]) -> tuple[Sheet, list[Reads]]:
    """One column per series at the times of all; a value that one lacks is absent."""
    times = sorted({at for one in chosen.values() for at in one.values})
    columns = {read.column: one.values for read, one in chosen.items()}
    reads = [Reads(TIME, CLOCK, "s", asked=True), *chosen]
    return sheet_at(times, columns), reads


def sheet_at(times: Sequence[float], columns: Mapping[str, Mapping[float, float]]) -> Sheet:
    """The values of each column at the times; one that it lacks is absent."""
    cells = pd.DataFrame({CLOCK: times}, index=list(times))
    for name, values in columns.items():
        cells[name] = [values.get(at, np.nan) for at in times]
    return Sheet(cells.astype(np.float64), "at")


def _matching(read: Reads, series: Sequence[Samples], problems: list[str]) -> Samples | None:
    parsed = _SELECTOR.fullmatch(read.column)
    labels = _labels((parsed[2] if parsed else None) or "")
    if parsed is None or labels is None:
        problems.append(f'{read}: write a metric, or one with labels such as up{{job="x"}}')
        return None
    matches = [
        one
        for one in series
        if parsed[1] in (None, one.metric)
        and all(one.labels.get(label) == value for label, value in labels.items())
    ]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        problems.append(f"{read}: there is no such series")
    else:
        some = ", ".join(str(one) for one in matches[:_MOST_NAMED])
        problems.append(
            f"{read}: {len(matches)} series are called so ({some}); add labels until one is left, "
            "or add them up in the query"
        )
    return None


def _labels(text: str) -> dict[str, str] | None:
    labels: dict[str, str] = {}
    at = 0
    while text[at:].strip():
        match = _LABEL.match(text, at)
        if not match:
            return None
        labels[match[1]] = match[2].replace('\\"', '"').replace("\\\\", "\\")
        at = match.end()
    return labels
