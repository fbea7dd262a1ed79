"""Replay of a user's own trace: a file of times and levels or rates, or any recording."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from include.files.inputs import input_file
from include.model.errors import SpecError
from include.workloads.pattern import Levels

if TYPE_CHECKING:
    from include.workloads.recordings import Recording
    from include.workloads.recordings.assemble import Sheet

ColumnMapping = str | tuple[tuple[str, str], ...]
DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Trace:
    """``path`` has the columns ``time_s`` and ``level``, times ascending from 0.

    Levels are in level units of the topology. ``rate_items_per_s`` instead of ``level`` is the
    rate over all sources, which ``items_per_level_s`` of the topology (filled in by the spec) turns
    into a level. ``scale`` multiplies the level; or ``highest_level`` becomes the highest level of
    the replayed day. ``speedup`` replays faster.

    Other recordings are read by `recordings`: ``map`` gives the columns of time and rate, and
    their units. ``step_s`` takes means over equal steps, ``gaps`` fills absent values, and with
    ``days_as_seeds`` seed 3 replays the third day.
    """

    path: str = field(metadata={"is": "a CSV or Parquet file with time_s and level"})
    scale: float = 1.0
    highest_level: float | None = None
    speedup: float = 1.0
    items_per_level_s: float = 1.0
    map: str | Mapping[str, str] = ""
    step_s: float | None = None
    gaps: Literal["refuse", "hold", "zero"] = "refuse"
    days_as_seeds: bool = False

    def problems(self) -> Iterator[str]:
        """Everything wrong with the file and the options, by reading the file."""
        if not 0 < self.scale < math.inf:
            yield f"scale must be above 0, got {self.scale:g}"
        if self.highest_level is not None:
            if not 0 < self.highest_level < math.inf:
                yield f"highest_level must be above 0, got {self.highest_level:g}"
            if self.scale != 1:
                yield "scale and highest_level both say how high the level is; give one of them"
        if not 0 < self.items_per_level_s < math.inf:
            yield f"items_per_level_s must be above 0, got {self.items_per_level_s:g}"
        if not 0 < self.speedup < math.inf:
            yield f"speedup must be above 0, got {self.speedup:g}"
        try:
            load = self._load()
        except SpecError as error:
            yield from error.problems
            return
        yield from load.problems()

    def seed_problems(self, seed: int) -> Iterator[str]:
        """Problems of a seed that selects a day, unless the file has other problems."""
        try:
            load = self._load()
        except SpecError:
            return
        if self.days_as_seeds and not any(load.problems()):
            yield from self._day_problems(load, seed)

    def notes(self) -> tuple[str, ...]:
        """Changes made to the file's values. Raises SpecError."""
        return self._load().notes

    def unfold(self, duration_s: float, seed: int) -> Levels:
        """The trace, or a day of it; its last level holds to the end of the run."""
        load = self._load()
        problems = list(load.problems())
        if self.days_as_seeds and not problems:
            problems = list(self._day_problems(load, seed))
        if problems:
            raise SpecError("trace", problems)
        if self.days_as_seeds:
            load = load.of_day(seed, DAY_S)
        levels = load.values
        if load.is_rate:
            levels = [rate / self.items_per_level_s for rate in levels]
        scale = self.scale if self.highest_level is None else self.highest_level / max(levels)
        times_s = [t_s / self.speedup for t_s in load.times_s]
        steps = [i for i, t_s in enumerate(times_s) if t_s < duration_s]
        return Levels(tuple(times_s[i] for i in steps), tuple(levels[i] * scale for i in steps))

    def _load(self) -> TraceLoad:
        mapping = self.map if isinstance(self.map, str) else tuple(sorted(self.map.items()))
        return read_load(self.path, mapping, self.step_s, self.gaps)

    def _day_problems(self, load: TraceLoad, seed: int) -> Iterator[str]:
        days = 1 + int(load.times_s[-1] // DAY_S)
        if not 1 <= seed <= days:
            yield f"{self.path} has no day {seed}: it has {days}; take seeds from 1 to {days}"
        elif not any(value > 0 for value in load.of_day(seed, DAY_S).values):
            yield f"{self.path}: nothing arrives on day {seed}; take another seed"


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
    from include.workloads.recordings.assemble import Sheet
    from include.workloads.recordings.files import read_file

    is_rate, missing = True, list[str]()
    try:
        content = None if mapping else read_file(path)[1]
        if isinstance(content, Sheet):
            columns = content.columns
            name = next((one for one in ("level", "rate_items_per_s") if one in columns), "")
            if name and "time_s" in columns:
                if step_s is None and gaps == "refuse":
                    return _plain_load(path, content, name)
                mapping, is_rate = f"time=time_s,arrivals={name}@per_s", name != "level"
            else:
                needs = "needs the columns time_s and level (or rate_items_per_s)"
                missing = [f"{needs}, has {', '.join(columns) or 'none'}"]
        return _recorded(path, mapping, step_s, gaps, is_rate=is_rate)
    except SpecError as error:
        problems = dict.fromkeys([*missing, *error.problems])
        raise SpecError("trace", [f"{path}: {problem}" for problem in problems]) from None


def _plain_load(path: str, sheet: Sheet, name: str) -> TraceLoad:
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
        raise SpecError("trace", shortened(problems))
    return TraceLoad(path, name, times_s.tolist(), values.tolist(), is_rate=name != "level")


def _recorded(
    path: str, mapping: ColumnMapping, step_s: float | None, gaps: str, *, is_rate: bool
) -> TraceLoad:
    """Load of any recording, in equal steps and with gaps closed as the options say."""
    import numpy as np

    from include.workloads.recordings import LOADS, evenly, parse_mapping, read_recording
    from include.workloads.recordings.mapping import ALIASES

    columns = dict(mapping) if isinstance(mapping, tuple) else parse_mapping(mapping)
    recording = read_recording(path, columns)
    mapped = {ALIASES.get(signal, signal) for signal in columns}
    loads = sorted(LOADS, key=lambda load: load not in mapped)  # what is mapped comes first
    name = next((load for load in loads if load in recording.readings), "")
    if not name:
        read = ", ".join(recording.readings)
        problem = f"has no rate that could be replayed, only {read}; map arrivals=COLUMN"
        raise SpecError("trace", [problem])
    if name in recording.counters:
        recording = _from_earlier(recording, name)
    if step_s is not None:
        recording = evenly(recording, step_s)
    elif gaps != "refuse" and not np.isnan(recording.readings[name]).any():
        problem = (
            f"no {name} is empty, so there is nothing for gaps: {gaps} to fill; remove it, or add "
            "step_s, which makes a gap of every step without a row"
        )
        raise SpecError("trace", [problem])
    values, notes = _without_gaps(recording, name, gaps)
    times_s: list[float] = recording.times_s.tolist()
    return TraceLoad(path, name, times_s, values, is_rate, (*recording.notes, *notes))


def _from_earlier(recording: Recording, name: str) -> Recording:
    """What a counter grew by, from the reading before: a load holds until the next time."""
    rates = recording.readings[name][1:]
    return replace(recording, times_s=recording.times_s[:-1], readings={name: rates})


def _without_gaps(recording: Recording, name: str, gaps: str) -> tuple[list[float], list[str]]:
    import numpy as np

    values = recording.readings[name]
    absent = np.isnan(values)
    if not absent.any():
        return values.tolist(), []
    count = f"{absent.sum()} of {values.size}"
    if gaps == "refuse":
        problem = (
            f"{count} values of {name} are absent, which is not zero; write gaps: hold if the last "
            "level went on meanwhile, or gaps: zero if nothing arrived"
        )
        raise SpecError("trace", [problem])
    if gaps == "zero":
        return np.where(absent, 0.0, values).tolist(), [f"{count} values were absent: taken as 0"]
    present = np.flatnonzero(~absent)
    last = np.maximum(np.searchsorted(present, np.arange(values.size), side="right") - 1, 0)
    held: list[float] = values[present[last]].tolist()
    return held, [f"{count} values were absent: the last level holds, at the beginning the first"]
