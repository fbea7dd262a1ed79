"""O3, Calculate Performance of the last reporting cycle (Eq. 2)."""

from __future__ import annotations

from collections.abc import Sequence

from include.testbeds.live.operators.code import Output, Place, Process
from include.testbeds.live.operators.readings import Component, Production, decode, encode
from include.testbeds.live.operators.wire import Item


def code(place: Place) -> Process:
    """One component for each production reading."""

    def process(item: Item) -> Sequence[Output]:
        reading = decode(Production, item.body)
        value = performance(reading.produced, reading.ideal_ms, reading.cycle_ms)
        part = Component(reading.machine, reading.time_ms, "performance", value)
        return place.to_all(item.id.through(place.operator), encode(part))

    return process


def performance(produced: int, ideal_ms: int, cycle_ms: int) -> float:
    """Eq. 2: produced items x ideal production time / reporting cycle."""
    if cycle_ms <= 0:
        raise ValueError("a reporting cycle of no length")
    return produced * ideal_ms / cycle_ms
