"""What the data provider of a run is to do: one file, without secrets."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from include.testbeds.live.provider.schedule import Schedule
from include.workloads.pattern import Levels


@dataclass(frozen=True)
class Stream:
    """One source. ``per_level_s`` items are emitted per second and level unit.

    ``one_in`` says how many readings there are per one that is worth a message.
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
    """All sources of a run, and the wall time of its second 0 in microseconds since 1970."""

    run: str
    started_us: int
    time_scale: float
    streams: tuple[Stream, ...]

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, path: Path) -> ProviderPlan:
        """The plan of a file."""
        plain: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        streams = tuple(
            Stream(
                **{
                    **one,
                    "targets": tuple(one["targets"]),
                    "levels": Levels(*(tuple(one["levels"][k]) for k in ("starts_s", "levels"))),
                }
            )
            for one in plain.pop("streams")
        )
        return cls(streams=streams, **plain)
