"""Payloads of the sensors of Table 1, in its sizes; a function of the item's number."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from include.testbeds.live.operators.picture import picture_of
from include.testbeds.live.operators.readings import (
    AVAILABLE,
    DEFECT,
    Production,
    Status,
    Temperature,
    encode,
)

Payload = Callable[[int, int, int, int], bytes]
"""From (number, machine, size_bytes, one_in) to a body."""
BEGAN_MS = 1_700_000_000_000
"""Time of reading 0; not the clock's, so that a body can be built again."""
CYCLE_MS = 10_000


def status(number: int, machine: int, size_bytes: int, one_in: int) -> bytes:
    """S1: every ``one_in``-th reading is a defect that begins."""
    state = DEFECT if number % one_in == 0 else AVAILABLE
    return encode(Status(machine, BEGAN_MS + number, state), size_bytes)


def picture(number: int, machine: int, size_bytes: int, one_in: int) -> bytes:
    """S2: a picture of a machine's display after a reporting cycle."""
    return picture_of(production(number, machine), size_bytes)


def production(number: int, machine: int) -> Production:
    """What S2 takes a picture of."""
    draw = random.Random(number)
    return Production(
        machine=machine,
        time_ms=BEGAN_MS + number * CYCLE_MS,
        produced=draw.randrange(10, 20),
        defective=draw.randrange(3),
        ideal_ms=500,
        cycle_ms=CYCLE_MS,
        scheduled_ms=draw.randrange(500),
        unscheduled_ms=draw.randrange(500),
    )


def temperature(number: int, machine: int, size_bytes: int, one_in: int) -> bytes:
    """S3: every ``one_in``-th reading is too hot."""
    celsius = 95.0 if number % one_in == 0 else 60.0 + number % 15
    return encode(Temperature(machine, BEGAN_MS + number, celsius), size_bytes)


def blank(number: int, machine: int, size_bytes: int, one_in: int) -> bytes:
    """For operators that ignore the payload."""
    return f"{number} {machine}".encode().ljust(size_bytes)


PAYLOADS: Mapping[str, Payload] = {"O1": picture, "O2": status, "O6": temperature}
"""By the operator that reads it (``include/testbeds/live/operators/codes.py``)."""


def payload_for(targets: tuple[str, ...]) -> Payload:
    """Payload of a source that feeds these operators."""
    return next((PAYLOADS[name] for name in targets if name in PAYLOADS), blank)
