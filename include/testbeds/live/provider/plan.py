"""The plan of a run's data provider: a file without secrets."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from pydantic import TypeAdapter

from include.workloads.pattern import Levels


class Schedule:
    """Item k is emitted when the integral of the rate reaches k; numbers count from 0."""

    def __init__(self, levels: Levels, per_level_s: float, duration_s: float) -> None:
        self._firsts: list[int] = []
        self._pieces: list[tuple[float, float, float, float]] = []
        """(start_s, items due at the start, items per second, level)"""
        due = 0.0
        for start_s, end_s, level in levels.pieces(duration_s):
            self._firsts.append(math.ceil(due))
            self._pieces.append((start_s, due, level * per_level_s, level))
            # Rounded so that 124.99999999 does not emit what 125 would not.
            due = round(due + (end_s - start_s) * level * per_level_s, 9)
        self.items = math.ceil(due)
        self._starts_s = [piece[0] for piece in self._pieces]

    def due_s(self, number: int) -> float:
        """Second of the run at which item ``number`` (below ``items``) is emitted."""
        start_s, due, rate, _ = self._pieces[bisect_right(self._firsts, number) - 1]
        return start_s + (number - due) / rate

    def level_of(self, number: int) -> float:
        """The level at the time of an item."""
        return self._pieces[bisect_right(self._firsts, number) - 1][3]

    def due_by(self, t_s: float) -> int:
        """Number of items emitted up to second ``t_s``."""
        i = bisect_right(self._starts_s, t_s) - 1
        if i < 0:
            return 0
        start_s, due, rate, _ = self._pieces[i]
        after = self._firsts[i + 1] if i + 1 < len(self._firsts) else self.items
        return min(after, max(self._firsts[i], math.floor(due + (t_s - start_s) * rate + 1e-9) + 1))


@dataclass(frozen=True)
class Stream:
    """A source. It emits ``per_level_s`` items per second and level unit.

    One in ``one_in`` readings makes its operator send a message.
    """

    source: str
    targets: tuple[str, ...]
    size_bytes: int
    per_level_s: float
    one_in: int
    levels: Levels
    duration_s: float

    @cached_property
    def schedule(self) -> Schedule:
        return Schedule(self.levels, self.per_level_s, self.duration_s)


@dataclass(frozen=True)
class ProviderPlan:
    """All sources of a run. Second 0 is ``started_us``, microseconds since 1970."""

    run: str
    started_us: int
    time_scale: float
    streams: tuple[Stream, ...]

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, path: Path) -> ProviderPlan:
        return TypeAdapter(cls).validate_json(path.read_bytes())
