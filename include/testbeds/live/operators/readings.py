"""Payloads of the manufacturing topology: what the sensors of Table 1 emit and what O3-O7 make.

Everything between operators is JSON. Numbers that add up are whole (milliseconds, pieces), so that
sums do not depend on the order in which instances take items.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

PICTURE_BYTES = 12_500
T = TypeVar("T")
AVAILABLE, PLANNED_DOWNTIME, DEFECT = "available", "planned", "defect"


@dataclass(frozen=True, slots=True)
class Status:
    """Of S1: a machine is ``available``, in ``planned`` downtime, or ``defect``."""

    machine: int
    time_ms: int
    status: str


@dataclass(frozen=True, slots=True)
class Temperature:
    """Of S3, in degrees Celsius."""

    machine: int
    time_ms: int
    celsius: float


@dataclass(frozen=True, slots=True)
class Production:
    """What the display of a machine shows at the end of a reporting cycle; S2 takes a picture of
    it (``picture.py``) and O1 reads it."""

    machine: int
    time_ms: int
    produced: int
    defective: int
    ideal_ms: int
    """Ideal production time of one piece."""
    cycle_ms: int
    scheduled_ms: int
    """Scheduled downtime within the cycle."""
    unscheduled_ms: int


@dataclass(frozen=True, slots=True)
class Component:
    """One factor of the overall equipment effectiveness, from O3, O4 or O5."""

    machine: int
    time_ms: int
    kind: str
    value: float


@dataclass(frozen=True, slots=True)
class Effectiveness:
    """Overall equipment effectiveness of a machine at a time (Eq. 5), from O7."""

    machine: int
    time_ms: int
    oee: float


def encode(value: Any, size_bytes: int = 0) -> bytes:
    """JSON of a reading, filled with blanks up to a size."""
    return json.dumps(asdict(value), separators=(",", ":")).encode().ljust(size_bytes)


def decode(kind: type[T], body: bytes) -> T:
    """A reading of a kind. Raises ValueError when the body is none."""
    try:
        return kind(**json.loads(body))
    except (TypeError, ValueError) as error:
        raise ValueError(f"no {kind.__name__}: {error}") from error
