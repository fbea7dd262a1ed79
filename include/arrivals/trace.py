"""Replay of a user's own trace: CSV or Parquet with a time and a level or a rate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from include.arrivals.base import Levels
from include.inputs import input_file
from include.model.errors import SpecError


@dataclass(frozen=True, slots=True)
class Trace:
    """``path`` holds the columns ``time_s`` and ``level``, times ascending from 0.

    Levels are level units of the topology; with ``rate_items_per_s`` instead of ``level``
    the rate over all sources is given, and ``items_per_level_s`` of the topology turns it
    into a level (the spec fills that in). ``scale`` multiplies the level, ``speedup`` lets
    the trace run faster.
    """

    path: str = field(metadata={"is": "a CSV or Parquet file with time_s and level"})
    scale: float = 1.0
    speedup: float = 1.0
    items_per_level_s: float = 1.0

    def problems(self) -> Iterator[str]:
        """Everything wrong with the file and the options, by reading the file."""
        if self.scale <= 0:
            yield f"scale must be above 0, got {self.scale:g}"
        if self.speedup <= 0:
            yield f"speedup must be above 0, got {self.speedup:g}"
        try:
            columns = read_columns(Path(self.path))
        except SpecError as error:
            yield from error.problems
            return
        yield from _row_problems(self.path, columns)

    def unfold(self, duration_s: float, seed: int) -> Levels:
        """The trace from its first row; its last level holds to the end of the run."""
        columns = read_columns(Path(self.path))
        if problems := list(_row_problems(self.path, columns)):
            raise SpecError("trace", problems)
        levels = columns.get("level")
        if levels is None:
            levels = [rate / self.items_per_level_s for rate in columns["rate_items_per_s"]]
        times_s = [t_s / self.speedup for t_s in columns["time_s"]]
        kept = [i for i, t_s in enumerate(times_s) if t_s < duration_s]
        return Levels(tuple(times_s[i] for i in kept), tuple(levels[i] * self.scale for i in kept))


def read_columns(path: Path) -> dict[str, list[float]]:
    """The numeric columns of a trace. Raises SpecError when it cannot be read as one."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    input_file(path, "trace")
    try:
        table: Any = (
            pa.parquet.read_table(path) if path.suffix == ".parquet" else pa.csv.read_csv(path)
        )
    except (pa.ArrowInvalid, OSError) as error:
        raise SpecError("trace", [f"{path} cannot be read as CSV or Parquet: {error}"]) from error
    names = set(table.column_names)
    if "time_s" not in names or not names & {"level", "rate_items_per_s"}:
        has = ", ".join(table.column_names) or "none"
        needs = f"{path} needs the columns time_s and level (or rate_items_per_s), has {has}"
        raise SpecError("trace", [needs])
    wanted = ["time_s", "level" if "level" in names else "rate_items_per_s"]
    try:
        return {name: table[name].cast(pa.float64()).to_pylist() for name in wanted}
    except pa.ArrowInvalid as error:
        raise SpecError("trace", [f"{path}: {error}; every value must be a number"]) from error


def _row_problems(path: str, columns: dict[str, list[float]]) -> Iterator[str]:
    times_s = columns["time_s"]
    name = "level" if "level" in columns else "rate_items_per_s"
    values = columns[name]
    if not times_s:
        yield f"{path} has no rows; give at least one"
        return
    if any(value is None or value != value for value in (*times_s, *values)):
        yield f"{path} has empty cells; every row needs a time and a {name}"
        return
    if times_s[0] != 0:
        yield f"{path} starts at {times_s[0]:g} s; the first row must be at time_s 0"
    for i, (before_s, after_s) in enumerate(pairwise(times_s), start=2):
        if after_s <= before_s:
            yield (
                f"{path} row {i}: time_s {after_s:g} does not come after {before_s:g}; "
                "sort the rows and drop repeated times"
            )
            break
    if min(values) < 0:
        yield f"{path} row {values.index(min(values)) + 1}: {name} is negative ({min(values):g})"
    if max(values) <= 0:
        yield f"{path}: no {name} is above 0, so nothing would ever arrive"
