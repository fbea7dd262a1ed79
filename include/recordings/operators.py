"""Recordings that name operators: columns such as ``busy_share[map]``, or rows with an operator."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from include.inputs import input_file
from include.model.errors import SpecError, unknown_name
from include.recordings.assemble import Sheet
from include.recordings.cells import Cell, numbers, shortened
from include.recordings.mapping import TIME, Reads
from include.recordings.recording import FloatArray
from include.recordings.tables import read_csv, read_parquet
from include.recordings.times import read_times
from include.recordings.units import UNITS, stem_and_unit, unit_named

OPERATOR = "operator"
_RATES = {name: of for name, of in UNITS["rate_per_s"].items() if name != "total"}
_KINDS: Mapping[str, tuple[str, Mapping[str, float]]] = {
    "in": (r"(num_?)?(records_?)?in", _RATES),
    "out": (r"(num_?)?(records_?)?out", _RATES),
    "busy": (r"busy(_time)?", {"share": 1.0, "percent": 100.0, "ms_per_s": 1000.0}),
    "instances": (r"instances|parallelism|subtasks", {"items": 1.0}),
}
_NAMED = re.compile(r"(.+)\[(.+)\]\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRecording:
    """``readings`` by operator and kind (in, out: records per second; busy: 0 to 1, mean over its
    instances; instances), at ``times_s`` from 0; NaN where nothing was read."""

    name: str
    times_s: FloatArray
    readings: Mapping[str, Mapping[str, FloatArray]]


def read_operators(source: str, mapping: Mapping[str, str]) -> OperatorRecording:
    """The operators in a CSV or Parquet file. Raises SpecError with all problems at once.

    ``mapping`` says which columns are the time, the operator and each kind, with a unit:
    ``{"busy": "busyTime@ms_per_s"}``; a wide column is named without its operator.
    """
    path = input_file(source, "recording")
    name, content = path.name, path.read_bytes()
    if path.suffix.lower() in (".parquet", ".pq"):
        sheet = read_parquet(name, content)
    else:
        try:
            sheet = read_csv(name, content.decode("utf-8"))
        except UnicodeDecodeError:
            raise SpecError(name, ["is no text in UTF-8; save it as CSV in UTF-8"]) from None
    known = (TIME, OPERATOR, *_KINDS)
    problems = [unknown_name("signal", one, known) for one in mapping if one not in known]
    time, by = mapping.get(TIME, "time_s"), mapping.get(OPERATOR, OPERATOR)
    if time not in sheet.columns:
        problems.append(f"there is no column {time!r}; write time=COLUMN")
    if problems:
        raise SpecError(name, shortened(problems))
    if by in sheet.columns:
        sheet = _wide(name, sheet, time, by)
    elif OPERATOR in mapping:
        raise SpecError(name, [f"there is no column {by!r} for operator"])
    return _recording(name, sheet, time, mapping)


def _wide(name: str, sheet: Sheet, time: str, by: str) -> Sheet:
    """A row per time instead of one per time and operator."""
    rows = {at: i for i, at in enumerate(dict.fromkeys(sheet.columns[time]))}
    columns: dict[str, list[Cell]] = {time: list(rows)}
    twice: dict[str, None] = {}
    seen = set()
    operators, times = sheet.columns[by], sheet.columns[time]
    for i, (operator, at) in enumerate(zip(operators, times, strict=True)):
        if (operator, at) in seen:
            twice[sheet.place(i)] = None
        seen.add((operator, at))
        for column, cells in sheet.columns.items():
            if column not in (time, by):
                into = columns.setdefault(f"{column}[{operator}]", [None] * len(rows))
                into[rows[at]] = cells[i]
    if twice:
        told = f"{next(iter(twice))}: an operator has two rows of one time"
        raise SpecError(name, [f"{told}; add up or average its subtasks"])
    return Sheet(columns, [str(at) for at in rows], f"{time}", sheet.notes)


def _recording(name: str, sheet: Sheet, time: str, mapping: Mapping[str, str]) -> OperatorRecording:
    times, problems = read_times(
        Reads(TIME, time, "", asked=True), sheet.columns[time], sheet.place
    )
    if times is not None and (np.diff(times.seconds) <= 0).any():
        problems.append(f"{time} does not rise from row to row; sort the rows by time")
    readings: dict[str, dict[str, FloatArray]] = {}
    for column, operator, kind, divisor in _found(list(sheet.columns), mapping, problems):
        values, wrong = numbers(column, sheet.columns[column], sheet.place)
        problems += wrong
        if (values < 0).any():
            problems.append(f"{column} is negative; leave cells empty where nothing was read")
        elif kind == "busy" and (values / divisor > 1.01).any():
            how = "with its unit: @share, @percent or @ms_per_s, a mean over its instances"
            problems.append(f"{column} is above 1 (highest {np.nanmax(values):g}); map it {how}")
        readings.setdefault(operator, {})[kind] = values / divisor
    if not readings and not problems:
        how = "name columns such as busy_share[OPERATOR], or map operator=COLUMN"
        problems.append(f"no column names an operator; {how}")
    if problems or times is None:
        raise SpecError(name, shortened(problems))
    return OperatorRecording(name=name, times_s=times.seconds - times.seconds[0], readings=readings)


def _found(
    columns: Sequence[str], mapping: Mapping[str, str], problems: list[str]
) -> Iterator[tuple[str, str, str, float]]:
    """Column, operator, kind, and what to divide by."""
    asked = {kind: mapping[kind].rpartition("@") for kind in _KINDS if kind in mapping}
    wanted = {kind: (name or unit, unit if at else "") for kind, (name, at, unit) in asked.items()}
    stems = {one[1].strip(): one[2].strip() for one in map(_NAMED.fullmatch, columns) if one}
    for kind, (stem, _) in wanted.items():
        if stem not in stems:
            problems.append(f"{kind}={stem}: there is no column {stem}[OPERATOR]")
    for column in columns:
        match = _NAMED.fullmatch(column)
        if not match:
            continue
        stem, operator = match[1].strip(), match[2].strip()
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
    known = _KINDS[kind][1]
    if not unit or unit in known:
        return []
    listed = ", ".join(f"@{one}" for one in known)
    return [f"{column}: unknown unit {unit}; {kind} can be in {listed}"]
