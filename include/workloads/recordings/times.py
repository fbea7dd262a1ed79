"""Times of a recording: seconds from its first row, of ISO times, epochs or relative ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from include.workloads.recordings.csv_cells import Cell, Place, numbers, places
from include.workloads.recordings.mapping import Reads
from include.workloads.recordings.recording import FloatArray
from include.workloads.recordings.units import UNITS

_EPOCHS = {"s": 1e8, "ms": 1e11, "us": 1e14, "ns": 1e17}
"""From where on a number can be an epoch (1973) of that unit; below, it is one of the unit before
or a relative time."""
_ISO = re.compile(r"\d{4}-\d\d?-\d\d?")


@dataclass(frozen=True, slots=True)
class RowTimes:
    """Seconds of every row, absolute when ``absolute``, and what was said about them."""

    seconds: FloatArray
    absolute: bool
    notes: tuple[str, ...]


def read_times(
    read: Reads, cells: Sequence[Cell], place: Place
) -> tuple[RowTimes | None, list[str]]:
    """The times of a column, and everything wrong with them; None when they cannot be read."""
    if any(isinstance(cell, str) and _ISO.match(cell.strip()) for cell in cells[:1000]):
        return _iso(read, cells, place)
    values, problems = numbers(read.column, cells, place)
    absent = np.flatnonzero(np.isnan(values)).tolist()
    if absent and not problems:
        problems.append(f"{places(absent, place)}: {read.column} is empty; every row needs a time")
    if problems:
        return None, [one.replace("leave cells empty where nothing was read", _EVERY)
                      for one in problems]  # fmt: skip
    return _numeric(read, values, place)


_EVERY = "every row needs a time: seconds, an epoch or ISO 8601 such as 2026-01-31T10:00:00Z"


def _numeric(read: Reads, values: FloatArray, place: Place) -> tuple[RowTimes | None, list[str]]:
    units = np.array([_epoch_unit(value, read.unit) for value in values])
    kinds = sorted(set(units.tolist()))
    if len(kinds) > 1:
        odd = np.flatnonzero(units != units[0]).tolist()
        looks = " and ".join(f"epochs in {kind}" if kind else "relative times" for kind in kinds)
        return None, [f"{places(odd, place)}: {read.column} mixes {looks}; use one throughout"]
    epoch = kinds[0]
    if epoch and read.unit and epoch != read.unit:
        write = f"write time={read.column}@{epoch}, or correct the values"
        looks = f"{values[0]:.15g} is an epoch in {epoch}"
        return None, [f"{read.column} says {read.unit}, but {looks}; {write}"]
    unit = read.unit or epoch or "s"
    how = f"in {unit} since 1970" if epoch else f"in {unit} from the beginning"
    presumed = "" if read.unit or epoch else ", which names no unit"
    seconds = values / UNITS["time"][unit]
    note = f"the time is {read.column}{presumed}, taken {how}"
    return RowTimes(seconds, bool(epoch), (note,)), []


def _epoch_unit(value: float, said: str) -> str:
    """The unit of an epoch; empty for a relative time. ``said`` decides while it can be true."""
    if said and not value >= 1000 * _EPOCHS.get(said, np.inf):
        return said if value >= _EPOCHS.get(said, np.inf) else ""
    found = ""
    for unit, least in _EPOCHS.items():
        found = unit if value >= least else found
    return found


def _iso(read: Reads, cells: Sequence[Cell], place: Place) -> tuple[RowTimes | None, list[str]]:
    wrong, without, seconds, offsets = [], [], np.zeros(len(cells)), set()
    for i, cell in enumerate(cells):
        try:
            at = datetime.fromisoformat(str(cell).strip())
        except ValueError:
            wrong.append(i)
            continue
        if at.tzinfo is None:
            without.append(i)
            at = at.replace(tzinfo=UTC)
        else:
            offsets.add(at.strftime("%z"))
        seconds[i] = at.timestamp()
    problems = []
    if wrong:
        problems.append(
            f"{places(wrong, place)}: {read.column} is no ISO 8601 time "
            f"({str(cells[wrong[0]])!r:.40}); write 2026-01-31T10:00:00Z"
        )
    if without and offsets:
        problems.append(
            f"{places(without, place)}: {read.column} has no zone, other rows have; "
            "write Z or +01:00 in every row"
        )
    if read.unit:
        problems.append(f"{read.column} says {read.unit}, but has ISO times; leave the unit out")
    zone = "UTC, for they name no zone" if without else "of the zones they name"
    note = f"the time is {read.column}, ISO times taken as {zone}"
    if len(offsets) > 1:
        note += f" ({', '.join(sorted(offsets))})"
    return (None if problems else RowTimes(seconds, True, (note,))), problems
