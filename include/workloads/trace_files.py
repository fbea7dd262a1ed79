"""Reads traces: files of times and levels or rates, or any recording."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from include.files.inputs import input_file
from include.model.errors import SpecError

if TYPE_CHECKING:
    from include.workloads.recordings import Recording
    from include.workloads.recordings.assemble import Sheet

ColumnMapping = str | tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class TraceLoad:
    """Levels, or items per second if ``is_rate``, each until the next time."""

    path: str
    name: str
    times_s: list[float]
    values: list[float]
    is_rate: bool
    notes: tuple[str, ...] = ()

    def problems(self) -> Iterator[str]:
        """Problems of the load as a whole; wrong cells raise an error when read."""
        if not self.times_s:
            yield f"{self.path} has no rows; give at least one"
        elif max(self.values) <= 0:
            yield f"{self.path}: no {self.name} is above 0, so nothing would ever arrive"

    def of_day(self, day: int, day_s: float) -> TraceLoad:
        """The rows of a day (from 1), from its beginning.

        The value at midnight holds until the first row of the day.
        """
        begin_s, end_s = (day - 1) * day_s, day * day_s
        rows = [i for i, t_s in enumerate(self.times_s) if begin_s <= t_s < end_s]
        if not rows or self.times_s[rows[0]] > begin_s:
            before = [i for i, t_s in enumerate(self.times_s) if t_s < begin_s]
            rows = [*before[-1:], *rows]
        times_s = [max(0.0, self.times_s[i] - begin_s) for i in rows]
        return replace(self, times_s=times_s, values=[self.values[i] for i in rows])


def read_load(path: str, mapping: ColumnMapping, step_s: float | None, gaps: str) -> TraceLoad:
    """Read the load in a file. Raises SpecError with all problems."""
    stat = input_file(path, "trace").stat()
    return _read_load(path, mapping, step_s, gaps, (stat.st_mtime_ns, stat.st_size))


@lru_cache(maxsize=8)  # called for every seed and controller of an experiment
def _read_load(
    path: str, mapping: ColumnMapping, step_s: float | None, gaps: str, _: Any
) -> TraceLoad:
    file = Path(path)
    problem = ""
    if not mapping:
        sheet = _read_sheet(file)
        if "time_s" in sheet.columns and set(sheet.columns) & {"level", "rate_items_per_s"}:
            name = "level" if "level" in sheet.columns else "rate_items_per_s"
            if step_s is None and gaps == "refuse":
                return _plain_load(file, sheet, name)
            mapping = f"time=time_s,arrivals={name}@per_s"
            return _recorded(file, mapping, step_s, gaps, is_rate=name != "level")
        has = ", ".join(sheet.columns) or "none"
        problem = f"{file} needs the columns time_s and level (or rate_items_per_s), has {has}"
    try:
        return _recorded(file, mapping, step_s, gaps, is_rate=True)
    except SpecError as error:
        more = _of_file(file, error)
        raise SpecError("trace", [problem, *more] if problem else more) from None


def _read_sheet(path: Path) -> Sheet:
    """The cells of a CSV or Parquet file. Raises SpecError with all problems of its shape."""
    from include.workloads.recordings.files import file_content, is_parquet, text_of
    from include.workloads.recordings.tables import read_csv, read_parquet

    try:
        _, content = file_content(str(path), "trace")
        if is_parquet(path, content):
            return read_parquet(str(path), content)
        return read_csv(str(path), text_of(str(path), content))
    except SpecError as error:
        raise SpecError("trace", _of_file(path, error)) from None


def _of_file(path: Path, error: SpecError) -> list[str]:
    return [problem if str(path) in problem else f"{path}: {problem}" for problem in error.problems]


def _plain_load(path: Path, sheet: Sheet, name: str) -> TraceLoad:
    """Load of a file with the expected columns. Raises SpecError with every wrong cell."""
    import numpy as np

    from include.workloads.recordings.csv_cells import numbers, places, shortened

    problems, columns = list[str](), []
    for column in ("time_s", name):
        values, wrong = numbers(column, sheet.cells[column], sheet.place)
        problems += wrong
        if not wrong and (absent := np.flatnonzero(np.isnan(values)).tolist()):
            problems.append(
                f"{places(absent, sheet.place)}: {column} is empty; fill it in, or write "
                "gaps: hold or gaps: zero"
            )
        columns.append(values)
    times_s, values = columns
    if times_s.size and times_s[0] > 0:
        problems.append(f"starts at {times_s[0]:g} s; the first row must be at time_s 0")
    if back := (np.flatnonzero(np.diff(times_s) <= 0) + 1).tolist():
        problems.append(
            f"{places(back, sheet.place)}: time_s does not come after that of the row "
            "before; sort the rows by time"
        )
    for column, cells in (("time_s", times_s), (name, values)):
        if negative := np.flatnonzero(cells < 0).tolist():
            problems.append(f"{places(negative, sheet.place)}: {column} is negative")
    if problems:
        raise SpecError("trace", [f"{path}: {problem}" for problem in shortened(problems)])
    return TraceLoad(str(path), name, times_s.tolist(), values.tolist(), is_rate=name != "level")


def _recorded(
    path: Path, mapping: ColumnMapping, step_s: float | None, gaps: str, *, is_rate: bool
) -> TraceLoad:
    """Load of any recording, in equal steps and with gaps closed as the options say."""
    import numpy as np

    from include.workloads.recordings import LOADS, evenly, parse_mapping, read_recording
    from include.workloads.recordings.mapping import ALIASES

    if isinstance(mapping, tuple):
        columns = dict(mapping)
    else:
        columns = parse_mapping(mapping) if mapping else {}
    recording = read_recording(str(path), columns)
    mapped = {ALIASES.get(signal, signal) for signal in columns}
    loads = sorted(LOADS, key=lambda load: load not in mapped)  # what is mapped comes first
    name = next((load for load in loads if load in recording.readings), "")
    if not name:
        read = ", ".join(recording.readings)
        problem = f"{path} has no rate that could be replayed, only {read}; map arrivals=COLUMN"
        raise SpecError("trace", [problem])
    if name in recording.counters and recording.times_s.size > 1:
        recording = _from_earlier(recording, name)
    if step_s is not None:
        recording = evenly(recording, step_s)
    elif gaps != "refuse" and not np.isnan(recording.readings[name]).any():
        problem = (
            f"{path}: no {name} is empty, so there is nothing for gaps: {gaps} to fill; remove "
            "it, or add step_s, which makes a gap of every step without a row"
        )
        raise SpecError("trace", [problem])
    values, notes = _without_gaps(path, recording, name, gaps)
    times_s: list[float] = recording.times_s.tolist()
    return TraceLoad(str(path), name, times_s, values, is_rate, (*recording.notes, *notes))


def _from_earlier(recording: Recording, name: str) -> Recording:
    """What a counter grew by, from the reading before: a load holds until the next time."""
    rates = recording.readings[name][1:]
    return replace(recording, times_s=recording.times_s[:-1], readings={name: rates})


def _without_gaps(
    path: Path, recording: Recording, name: str, gaps: str
) -> tuple[list[float], list[str]]:
    import numpy as np

    values = recording.readings[name]
    absent = np.isnan(values)
    if not absent.any():
        return values.tolist(), []
    count = f"{absent.sum()} of {values.size}"
    if gaps == "refuse":
        problem = (
            f"{path}: {count} values of {name} are absent, which is not zero; write gaps: hold if "
            "the last level went on meanwhile, or gaps: zero if nothing arrived"
        )
        raise SpecError("trace", [problem])
    if gaps == "zero":
        return np.where(absent, 0.0, values).tolist(), [f"{count} values were absent: taken as 0"]
    present = np.flatnonzero(~absent)
    last = np.maximum(np.searchsorted(present, np.arange(values.size), side="right") - 1, 0)
    held: list[float] = values[present[last]].tolist()
    return held, [f"{count} values were absent: the last level holds, at the beginning the first"]
