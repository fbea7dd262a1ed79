"""Times of a recording: seconds from its first row, of ISO times, epochs or relative ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from include.workloads.recordings.csv_cells import Place, numbers, places
from include.workloads.recordings.mapping import Reads
from include.workloads.recordings.recording import FloatArray
from include.workloads.recordings.units import UNITS

_EPOCHS = {"s": 1e8, "ms": 1e11, "us": 1e14, "ns": 1e17}
"""From where on a number can be an epoch (1973) of that unit; below, it is one of the unit before
or a relative time."""
_ISO = r"\s*\d{4}-\d\d?-\d\d?"
_DAY_FIRST = r"\d{4}-\d\d-\d\d"
_ZONE = r"[T ].*?(Z|[+-]\d\d(?::?\d\d){0,2})$"
"""What a time ends with that names one; a day alone ends with what looks like one."""


@dataclass(frozen=True, slots=True)
class RowTimes:
    """Seconds of every row, absolute when ``absolute``, and what was said about them."""

    seconds: FloatArray
    absolute: bool
    notes: tuple[str, ...]


def read_times(read: Reads, cells: pd.Series, place: Place) -> tuple[RowTimes | None, list[str]]:
    """The times of a column, and everything wrong with them; None when they cannot be read."""
    if cells.dtype == object and cells[:1000].str.match(_ISO).any():
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
    units = _epoch_units(values, read.unit)
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


def _epoch_units(values: FloatArray, named: str) -> np.ndarray:
    """The unit of each epoch; empty for a relative time. ``named`` holds while it can be true."""
    looks = np.array(["", *_EPOCHS])[np.searchsorted([*_EPOCHS.values()], values, side="right")]
    if not named:
        return looks
    least = _EPOCHS.get(named, np.inf)
    return np.where(values >= 1000 * least, looks, np.where(values >= least, named, ""))


def _iso(read: Reads, cells: pd.Series, place: Place) -> tuple[RowTimes | None, list[str]]:
    bare = cells.fillna("").str.strip()
    at = pd.to_datetime(
        bare.where(bare.str.match(_DAY_FIRST)), format="ISO8601", utc=True, errors="coerce"
    )
    zones = bare.str.extract(_ZONE, expand=False)[at.notna()]
    offsets = set(zones.dropna().replace("Z", "+0000").str.replace(":", "").str.ljust(5, "0"))
    wrong = np.flatnonzero(at.isna()).tolist()
    without = np.flatnonzero(at.notna())[zones.isna()].tolist()
    seconds = at.to_numpy(dtype="datetime64[us]").astype(np.int64) / 1e6
    problems = []
    if wrong:
        problems.append(
            f"{places(wrong, place)}: {read.column} is no ISO 8601 time "
            f"({str(cells.iloc[wrong[0]])!r:.40}); write 2026-01-31T10:00:00Z"
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
