"""Series of Prometheus that name operators by a label, one per subtask, as columns per operator."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from include.model.errors import SpecError, unknown_name
from include.workloads.recordings.assemble import Sheet
from include.workloads.recordings.csv_cells import shortened
from include.workloads.recordings.series import Samples, sheet_at
from include.workloads.recordings.units import UNITS

LABELS = ("task_name", "operator_name", "operator")
"""Labels that are taken for the name of an operator, the first that any series has."""
_FLINK = {
    "in": (r"(.*_)?numRecordsInPerSecond", "per_s"),
    "out": (r"(.*_)?numRecordsOutPerSecond", "per_s"),
    "busy": (r"(.*_)?busyTimeMsPerSecond", "ms_per_s"),
}
"""Metrics of Flink that are read without a mapping (its documentation, Metrics)."""
_COLUMN = {"in": "in_per_s", "out": "out_per_s", "busy": "busy_share", "instances": "instances"}
_OVER_SUBTASKS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "in": sum, "out": sum, "busy": fmean, "instances": max,
}  # fmt: skip
_DIVISORS: Mapping[str, Mapping[str, float]] = {
    **dict.fromkeys(("in", "out"), UNITS["rate_per_s"]),
    "busy": {"share": 1.0, "percent": 100.0, "ms_per_s": 1000.0},
    "instances": {"items": 1.0},
}
_FIRST_UNIT = {"in": "per_s", "out": "per_s", "busy": "share", "instances": "items"}
Cells = dict[float, float]


def operator_sheet(name: str, series: Sequence[Samples], mapping: Mapping[str, str]) -> Sheet:
    """Columns such as ``busy_share[map]`` at all times of the series.

    Records of subtasks are added up, busy time is their mean; where no series counts instances, the
    subtasks of which busy time was read do. At a time at which a subtask is missing that has
    readings before and after, nothing is known. ``mapping`` names metrics and the label
    (``operator=task_name``). Raises SpecError with all problems at once.
    """
    problems = [
        unknown_name("signal", one, ("operator", *_COLUMN))
        for one in mapping
        if one not in ("operator", *_COLUMN)
    ]
    have = {label for one in series for label in one.labels}
    asked = mapping.get("operator", "")
    label = asked or next((one for one in LABELS if one in have), "")
    if label not in have:
        told = f"no series has a label {asked!r}" if asked else "no label names an operator"
        problems.append(f"{told}; write operator=LABEL with one of {', '.join(sorted(have))}")
    chosen = {
        kind: found for kind in _COLUMN if (found := _chosen(kind, series, mapping, problems))
    }
    if not chosen and not problems:
        problems.append("no metric is known; write in=METRIC,out=METRIC,busy=METRIC@ms_per_s")
    columns = _columns(chosen, label, problems)
    if problems:
        raise SpecError(name, shortened(problems))
    times = sorted({at for found in chosen.values() for one, _ in found for at in one.values})
    return sheet_at(times, columns)


def _columns(
    chosen: Mapping[str, Sequence[tuple[Samples, float]]], label: str, problems: list[str]
) -> dict[str, Cells]:
    """Values by column and time."""
    made: dict[str, Cells] = {}
    for kind, found in chosen.items():
        by_operator: defaultdict[str, list[Cells]] = defaultdict(list)
        for one, divisor in found:
            if not one.labels.get(label):
                problems.append(f"{one} has no label {label}; leave it out, or name the label")
                continue
            scaled = {at: v / divisor for at, v in one.values.items() if not math.isnan(v)}
            by_operator[one.labels[label]].append(scaled)
        for operator, subtasks in by_operator.items():
            whole = _whole(subtasks)
            reduce = _OVER_SUBTASKS[kind]
            made[f"{_COLUMN[kind]}[{operator}]"] = {at: reduce(of) for at, of in whole.items()}
            if kind == "busy" and "instances" not in chosen:
                made[f"instances[{operator}]"] = {at: float(len(of)) for at, of in whole.items()}
    return made


def _whole(subtasks: Sequence[Cells]) -> dict[float, list[float]]:
    """What all subtasks say at the times at which none is missing."""
    lives = [(min(one), max(one), one) for one in subtasks if one]
    whole = {}
    for at in sorted({at for _, _, one in lives for at in one}):
        there = [one.get(at) for first, last, one in lives if first <= at <= last]
        values = [value for value in there if value is not None]
        if values and len(values) == len(there):
            whole[at] = values
    return whole


def _chosen(
    kind: str, series: Sequence[Samples], mapping: Mapping[str, str], problems: list[str]
) -> list[tuple[Samples, float]]:
    """The series of a kind, each with what its values are divided by."""
    if kind in mapping:
        metric, at, unit = mapping[kind].rpartition("@")
        metric, unit = (metric, unit) if at else (unit, _FIRST_UNIT[kind])
        pattern = re.escape(metric.strip())
    elif kind in _FLINK and not mapping.keys() & _COLUMN.keys():
        pattern, unit = _FLINK[kind]
    else:
        return []
    found = [one for one in series if re.fullmatch(pattern, one.metric)]
    if not found and kind in mapping:
        known = sorted({one.metric for one in series})
        problems.append(f"{kind}: {unknown_name('metric', metric.strip(), known)}")
    known_units = [one for one in _DIVISORS[kind] if one != "total"]
    if unit not in known_units:
        listed = ", ".join(f"@{one}" for one in known_units)
        problems.append(f"{kind}: unknown unit {unit}; it can be in {listed}")
        return []
    if counters := [one for one in found if one.is_counter]:
        told = "counts since the start; export a rate, such as numRecordsInPerSecond"
        problems.append(f"{kind}: {counters[0].metric} {told}")
    return [(one, _DIVISORS[kind][unit]) for one in found]
