"""Recordings that name operators: columns such as ``busy_share[map]``, rows, or labels."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from include.model.errors import SpecError, unknown_name
from include.workloads.recordings.assemble import (
    ROUNDED_UP,
    Sheet,
    order_problems,
    sorted_by_time,
)
from include.workloads.recordings.csv_cells import (
    Place,
    negatives,
    numbers,
    places,
    shortened,
    with_hint,
)
from include.workloads.recordings.files import read_file
from include.workloads.recordings.folder import OPERATORS, is_recorded
from include.workloads.recordings.mapping import TIME, Reads, asked_reads, listed_names
from include.workloads.recordings.recording import FloatArray
from include.workloads.recordings.series import CLOCK, Samples, sheet_at
from include.workloads.recordings.times import read_times
from include.workloads.recordings.units import UNITS, stem_and_unit, unit_named

OPERATOR = "operator"
_RATES = {name: of for name, of in UNITS["rate_per_s"].items() if name != "total"}
_KINDS: Mapping[str, tuple[str, Mapping[str, float]]] = {
    "in": (r"(num_?)?(records_?)?in", _RATES),
    "out": (r"(num_?)?(records_?)?out", _RATES),
    "busy": (r"busy(_time)?", {"share": 1.0, "percent": 100.0, "ms_per_s": 1000.0}),
    "instances": (r"instances|parallelism|subtasks", {"items": 1.0}),
}
_NAMED = re.compile(r"([^\[]+)\[(.*)\]\s*")
"""What is read, and of which operator; the operator may have brackets of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRecording:
    """``readings`` by operator and kind (in, out: records per second; busy: 0 to 1, mean over its
    instances; instances), at ``times_s`` from 0; NaN where nothing was read."""

    name: str
    times_s: FloatArray
    readings: Mapping[str, Mapping[str, FloatArray]]

    def at(self, rows: NDArray[np.bool_]) -> OperatorRecording:
        readings = {
            operator: {kind: values[rows] for kind, values in kinds.items()}
            for operator, kinds in self.readings.items()
        }
        return replace(self, times_s=self.times_s[rows], readings=readings)


def read_operators(
    source: str, mapping: Mapping[str, str], *, sort: bool = False
) -> OperatorRecording:
    """The operators in a file: CSV, Parquet, OpenMetrics, or the JSON of a range query; or in a
    folder of `tidebench record`.

    ``mapping`` says which columns are the time, the operator and each kind, with a unit:
    ``{"busy": "busyTime@ms_per_s"}``; a wide column is named without its operator. Of series of
    Prometheus it names metrics, and the label that is the operator. ``sort`` puts rows in the
    order of time, equal ones into one. Raises SpecError with all problems at once.
    """
    if is_recorded(source):
        read = read_operators(str(Path(source) / OPERATORS), mapping, sort=sort)
        return replace(read, name=Path(source).resolve().name)
    name, content = read_file(source)
    if isinstance(content, Sheet):
        return _of_columns(name, content, mapping, sort)
    sheet = operator_sheet(name, content, mapping)
    sheet.require_rows(name)
    return _recording(name, sheet, Reads(TIME, CLOCK, "", asked=True), {})


def _of_columns(
    name: str, sheet: Sheet, mapping: Mapping[str, str], sort: bool
) -> OperatorRecording:
    names = (TIME, OPERATOR, *_KINDS)
    (clock,), problems = asked_reads({TIME: mapping.get(TIME, "time_s")}, sheet.columns)
    problems += [unknown_name("signal", one, names) for one in mapping if one not in names]
    unit = clock.unit or stem_and_unit(clock.column)[1]
    clock = replace(clock, unit=unit if unit in UNITS[TIME] else "")
    time, by = clock.column, mapping.get(OPERATOR, OPERATOR)
    if time not in sheet.cells:
        remedy = "" if TIME in mapping else "; write time=COLUMN"
        problems.append(f"there is no column {time!r} for time{remedy}")
    if by not in sheet.cells and OPERATOR in mapping:
        problems.append(f"there is no column {by!r} for operator")
    if problems:
        hint = f"the columns are: {listed_names(sheet.columns)}"
        raise SpecError(name, with_hint(shortened(problems), hint))
    sheet.require_rows(name)
    if sort:
        others = [Reads(OPERATOR, one, "", asked=True) for one in sheet.columns if one != time]
        sheet = sorted_by_time(sheet, [clock, *others])
    return _recording(name, sheet, clock, mapping, by if by in sheet.cells else "")


def _recording(
    name: str, sheet: Sheet, clock: Reads, mapping: Mapping[str, str], by: str = ""
) -> OperatorRecording:
    """Columns name operators; or where a file has a row per time and operator, the column ``by``
    says whose a row is."""
    times, problems = read_times(clock, sheet.cells[clock.column], sheet.place)
    whose = sheet.cells[by] if by else pd.Series("", sheet.cells.index)
    whose = whose.astype(object).fillna("").astype(str).str.strip()
    seconds = np.arange(len(whose), dtype=np.float64)  # where times cannot be read the rest is told
    if times is not None:
        seconds = times.seconds
        problems += _order(sheet, clock.column, seconds, by, mapping)
        problems += _wrong_rows(sheet, whose, seconds) if by else []
    times_s, step = np.unique(seconds, return_inverse=True)
    readings: dict[str, dict[str, FloatArray]] = {}
    read_from: dict[tuple[str, str], str] = {}
    for column, named, kind, divisor in _found(sheet.columns, mapping, bool(by), problems):
        values, wrong = numbers(column, sheet.cells[column], sheet.place)
        problems += wrong or _impossible(column, kind, values, divisor, sheet.place)
        for operator in [named] if named else whose.unique().tolist():
            rows = np.flatnonzero(whose == ("" if named else operator))
            if np.isnan(values[rows]).all():
                continue
            if (operator, kind) in read_from:
                both = f"{read_from[operator, kind]} and {column}"
                problem = f"map one ({kind}=COLUMN), or take the other out"
                problems.append(f"{both} are both the {kind} of {operator}; {problem}")
            read_from[operator, kind] = column
            placed = readings.setdefault(operator, {})[kind] = np.full(times_s.size, np.nan)
            placed[step[rows]] = values[rows] / divisor
    if not readings and not problems:
        how = "name columns such as busy_share[OPERATOR], or map operator=COLUMN"
        hint = f"the columns are: {listed_names(sheet.columns)}"
        problems += with_hint([f"no column names an operator; {how}"], hint)
    if problems:
        raise SpecError(name, shortened(problems))
    return OperatorRecording(name=name, times_s=times_s - times_s[0], readings=readings)


def _order(
    sheet: Sheet, time: str, seconds: FloatArray, by: str, mapping: Mapping[str, str]
) -> list[str]:
    """Times that come too late. Where rows are of operators all of a time may come before the next
    one, or all of an operator."""
    _, first = np.unique(seconds, return_index=True)
    rows = np.sort(first) if by else np.arange(seconds.size)
    problems = order_problems(time, seconds[rows], lambda i: sheet.place(int(rows[i])))
    if OPERATOR not in mapping and rows.size > first.size:
        columns = ", ".join(name for name in sheet.columns if name != time)
        how = f"--map {OPERATOR}=COLUMN ({columns})"
        problems.append(f"where rows are of several operators, say which column names them: {how}")
    return problems


def _wrong_rows(sheet: Sheet, whose: pd.Series, seconds: FloatArray) -> Iterator[str]:
    """Rows of no operator, and two of one at a time."""
    nameless = whose == ""
    if nameless.any():
        problem = "operator is empty; write whose row it is, or leave the row out"
        yield f"{places(np.flatnonzero(nameless).tolist(), sheet.place)}: {problem}"
    twice = pd.DataFrame({OPERATOR: whose, TIME: seconds}).duplicated() & ~nameless
    if twice.any():
        problem = "an operator has two rows of one time; add up or average its subtasks, or have"
        where = places(np.flatnonzero(twice).tolist(), sheet.place)
        yield f"{where}: {problem} equal rows made one (--sort)"


def _impossible(
    column: str, kind: str, values: FloatArray, divisor: float, place: Place
) -> list[str]:
    """What no reading of that kind can be."""
    if negative := negatives(column, values, place):
        return negative
    above = np.flatnonzero(values / divisor > ROUNDED_UP).tolist() if kind == "busy" else []
    if above:
        problem = f"{column} is above 1 (highest {np.nanmax(values):g})"
        how = "map it with its unit: @share, @percent or @ms_per_s, a mean over its instances"
        return [f"{places(above, place)}: {problem}; {how}"]
    return []


def _found(
    columns: Sequence[str], mapping: Mapping[str, str], of_rows: bool, problems: list[str]
) -> Iterator[tuple[str, str, str, float]]:
    """Column, operator (none where a row says it, ``of_rows``), kind, and what to divide by."""
    asked = {kind: mapping[kind].rpartition("@") for kind in _KINDS if kind in mapping}
    wanted = {kind: (name or unit, unit if at else "") for kind, (name, at, unit) in asked.items()}
    stems = {column: (column.strip(), "") for column in columns}
    if not of_rows:
        matches = {column: _NAMED.fullmatch(column) for column in columns}
        stems = {one: (of[1].strip(), of[2].strip()) for one, of in matches.items() if of}
    known = {stem for stem, _ in stems.values()}
    missing = [
        f"{kind}={stem}: there is no column {stem}" + "[OPERATOR]" * (not of_rows)
        for kind, (stem, _) in wanted.items()
        if stem not in known
    ]
    if missing:
        problems += with_hint(missing, f"the columns are: {listed_names(columns)}")
    for column, (stem, operator) in stems.items():
        if not (operator or of_rows):
            problems.append(f"{column} names no operator; write it between the brackets")
            continue
        for kind, (pattern, units) in _KINDS.items():
            bare, unit = _stem(stem)
            if kind in wanted:
                if stem != wanted[kind][0]:
                    continue
                unit = unit_named(wanted[kind][1]) or unit
            elif not re.fullmatch(pattern, bare):
                continue
            problems += _wrong_unit(column, kind, unit)
            yield column, operator, kind, units.get(unit, 1.0)


def _stem(name: str) -> tuple[str, str]:
    """The name without its unit, and that; Flink's busy time is in ms a second."""
    bare = name.lower().removesuffix("_ms_per_s")
    return (bare, "ms_per_s") if bare != name.lower() else stem_and_unit(name)


def _wrong_unit(column: str, kind: str, unit: str) -> list[str]:
    units = _KINDS[kind][1]
    if not unit or unit in units:
        return []
    listed = ", ".join(f"@{one}" for one in units)
    return [f"{column}: unknown unit {unit}; {kind} can be in {listed}"]


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
        problem = f"no series has a label {asked!r}" if asked else "no label names an operator"
        problems.append(f"{problem}; write operator=LABEL with one of {', '.join(sorted(have))}")
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
    units = _KINDS[kind][1]
    if kind in mapping:
        metric, at, unit = mapping[kind].rpartition("@")
        metric, unit = (metric, unit) if at else (unit, next(iter(units)))
        pattern = re.escape(metric.strip())
    elif kind in _FLINK and not mapping.keys() & _COLUMN.keys():
        pattern, unit = _FLINK[kind]
    else:
        return []
    matches = [one for one in series if re.fullmatch(pattern, one.metric)]
    if not matches and kind in mapping:
        metrics = sorted({one.metric for one in series})
        problems.append(f"{kind}: {unknown_name('metric', metric.strip(), metrics)}")
    if unit not in units:
        listed = ", ".join(f"@{one}" for one in units)
        problems.append(f"{kind}: unknown unit {unit}; it can be in {listed}")
        return []
    if counters := [one for one in matches if one.is_counter]:
        problem = "counts since the start; export a rate, such as numRecordsInPerSecond"
        problems.append(f"{kind}: {counters[0].metric} {problem}")
    return [(one, units[unit]) for one in matches]
