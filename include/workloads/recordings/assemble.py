"""Columns of numbers into a recording, or everything that is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from include.model.errors import SpecError
from include.workloads.recordings.csv_cells import (
    Place,
    negatives,
    numbers,
    places,
    shortened,
    with_hint,
)
from include.workloads.recordings.mapping import TIME, Reads, said
from include.workloads.recordings.recording import FloatArray, Recording
from include.workloads.recordings.times import RowTimes, read_times
from include.workloads.recordings.units import TOTAL, UNITS

MOST_VALUE = 1e12

LEAST_ROWS = 2
SORTED_BY = "advise, backtest or operators do it (--sort)"
_OF_OPERATORS = (
    "where rows are of the operators of a job, the command operators reads them, with "
    "--map operator=COLUMN"
)
ROUNDED_UP = 1.01
"""A share up to here is rounding of the recorder; above, it is another unit."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A file as columns of text or numbers; its index says where rows stand, ``word`` in what."""

    cells: pd.DataFrame
    word: str
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        return [str(name) for name in self.cells]

    def place(self, row: int) -> str:
        return f"{self.word} {self.cells.index[row]}"

    def require_rows(self, name: str) -> None:
        """Raises SpecError where there are too few."""
        if (rows := len(self.cells)) < LEAST_ROWS:
            raise SpecError(name, [f"has {rows} rows of readings; record at least {LEAST_ROWS}"])


def assemble(name: str, sheet: Sheet, reads: Sequence[Reads]) -> Recording:
    """The recording of the columns that are read. Raises SpecError with all problems at once."""
    problems: list[str] = []
    sheet.require_rows(name)
    time_read = next(one for one in reads if one.signal == TIME)
    times, found = read_times(time_read, sheet.cells[time_read.column], sheet.place)
    problems += found
    if times is not None:
        late = order_problems(time_read.column, times.seconds, sheet.place)
        several = np.unique(times.seconds).size <= times.seconds.size / 2
        problems += with_hint(late, _OF_OPERATORS) if late and several else late
    seconds = None if problems or times is None else times.seconds
    values: dict[str, FloatArray] = {}
    notes: list[str] = []
    for read in reads:
        if read.signal == TIME:
            continue
        raw, found = numbers(read.column, sheet.cells[read.column], sheet.place)
        problems += found or _values(read, raw, sheet.place, seconds)
        if found or not np.isnan(raw).all():
            values[read.signal] = raw
        elif read.asked:
            problems.append(f"{read.column} has no value at all; map {read.signal} to another")
        else:
            notes.append(f"{read.column} has no value at all and was left out")
    if not values and not problems:
        problems.append("no column has any value; check what was exported")
    if problems or times is None:
        raise SpecError(name, shortened(problems))
    kept = [read for read in reads if read.signal in values]
    unread = tuple(sorted(set(sheet.columns) - {read.column for read in reads}))
    if unread:
        notes.insert(0, f"not read: {', '.join(unread)}")
    return _recording(name, times, kept, values, (*sheet.notes, *times.notes, *notes), unread)


def order_problems(column: str, seconds: FloatArray, place: Place) -> list[str]:
    """Times that do not come after the one before."""
    steps = np.diff(seconds)
    backwards = (np.flatnonzero(steps < 0) + 1).tolist()
    repeated = (np.flatnonzero(steps == 0) + 1).tolist()
    problems = []
    if backwards:
        problems.append(
            f"{places(backwards, place)}: {column} goes backwards; sort the rows by time, or have "
            f"{SORTED_BY}"
        )
    if repeated:
        problems.append(
            f"{places(repeated, place)}: {column} is that of the row before; keep one row of each "
            f"time, or one job per file; only of rows equal in all else, one is kept if you have "
            f"{SORTED_BY}"
        )
    return problems


def sorted_by_time(sheet: Sheet, reads: Sequence[Reads]) -> Sheet:
    """The rows in the order of time, those that are equal in all that is read made one.

    As it is where its times cannot be read: `assemble` says why.
    """
    time = next(one for one in reads if one.signal == TIME)
    times, _ = read_times(time, sheet.cells[time.column], sheet.place)
    if times is None:
        return sheet
    in_order = np.argsort(times.seconds, kind="stable")
    cells = sheet.cells.iloc[in_order]
    others = list(dict.fromkeys(one.column for one in reads if one is not time))
    equal = cells[others].assign(**{time.column: times.seconds[in_order]}).duplicated()
    note = f"rows were sorted by time; {equal.sum()} equal ones were left out"
    return replace(sheet, cells=cells[~equal.to_numpy()], notes=(*sheet.notes, note))


def _values(read: Reads, values: FloatArray, place: Place, seconds: FloatArray | None) -> list[str]:
    """What no reading of that signal can be; ``seconds`` are its times where these are right."""
    negative = negatives(read.column, values, place)
    problems = [*negative]
    says, judged = "is", values
    if read.unit == TOTAL:  # of years, it may be any number
        says, judged = "grows a second by", np.full(values.size, np.nan)
        if seconds is not None:
            judged = _growth_per_s(seconds, values)
    many = np.flatnonzero(judged > MOST_VALUE).tolist()
    if many:
        problems.append(
            f"{places(many, place)}: {read.column} {says} {judged[many[0]]:g}, more than any job "
            f"has ({MOST_VALUE:g}); check the unit"
        )
    if read.signal == "cpu_share" and not negative:
        problems += _shares(read, values, place)
    if read.signal == "instances" and np.nanmax(values, initial=-1) == 0:
        problems.append(
            f"{read.column} is 0 throughout, and a job that runs has instances; map another column"
        )
    return problems


def _shares(read: Reads, values: FloatArray, place: Place) -> list[str]:
    share = values / UNITS["cpu_share"][read.unit or "share"]
    above = np.flatnonzero(share > ROUNDED_UP).tolist()
    if not above:
        return []
    first = f"{places(above, place)}: {read.column} is above "
    if read.unit == "percent":
        return [f"{first}100 %; divide it by the cores that instances reserve"]
    highest = np.nanmax(values)
    if highest <= 100 * ROUNDED_UP:
        percent = f"if it is percent, write cpu={read.column}@percent; if it is cores, divide it "
        return [f"{first}1 (highest {highest:g}); {percent}by those that instances reserve"]
    return [f"{first}1 (highest {highest:g}); divide by the cores that instances reserve"]


def _recording(
    name: str,
    times: RowTimes,
    reads: Sequence[Reads],
    values: Mapping[str, FloatArray],
    notes: tuple[str, ...],
    unread: tuple[str, ...],
) -> Recording:
    began_s = float(times.seconds[0])
    times_s = times.seconds - began_s
    readings = {read.signal: _converted(read, times_s, values[read.signal]) for read in reads}
    origins = [sentence for read in reads if (sentence := said(read))]
    for signal, converted in readings.items():
        absent = int(np.isnan(converted).sum())
        if absent:
            origins.append(f"{signal}: {absent} of {converted.size} readings are absent")
    if not times.absolute and began_s != 0:
        origins.append(f"times were shifted by {-began_s:g} s to begin at 0")
    return Recording(
        name=name,
        times_s=times_s,
        readings=readings,
        began_at=began_s if times.absolute else None,
        notes=(*notes, *origins),
        columns=tuple(read.column for read in reads),
        latency_column=next((read.column for read in reads if read.signal == "latency_s"), ""),
        cpu_column=next((read.column for read in reads if read.signal == "cpu_share"), ""),
        unread=unread,
        counters=tuple(read.signal for read in reads if read.unit == TOTAL),
    )


def _converted(read: Reads, times_s: FloatArray, values: FloatArray) -> FloatArray:
    if read.unit == TOTAL:
        return _growth_per_s(times_s, values)
    divisor = UNITS[read.signal].get(read.unit, 1.0)
    converted = values / divisor
    return np.minimum(converted, 1.0) if read.signal == "cpu_share" else converted


def _growth_per_s(times_s: FloatArray, totals: FloatArray) -> FloatArray:
    """What a counter grew by, per second since its last reading, also where it was not read
    meanwhile.

    The first reading says nothing, nor does one that is below the last: the counter began again.
    """
    rates = np.full(totals.size, np.nan)
    measured = np.flatnonzero(~np.isnan(totals))
    growth = np.diff(totals[measured])
    per_s = np.where(growth >= 0, growth / np.diff(times_s[measured]), np.nan)
    if measured.size:
        rates[measured[0] + 1 : measured[-1] + 1] = np.repeat(per_s, np.diff(measured))
    return rates
