"""O4, Calculate Availability since production began (Eq. 3)."""

from __future__ import annotations

from collections.abc import Sequence

from include.testbeds.live.operators.code import Output, Place, Process
from include.testbeds.live.operators.readings import Component, Production, decode, encode
from include.testbeds.live.operators.wire import Item


def code(place: Place) -> Process:
    """One component for each production reading."""

    def process(item: Item) -> Sequence[Output]:
        reading = decode(Production, item.body)
        amounts = (reading.cycle_ms, reading.scheduled_ms, reading.unscheduled_ms)
        value = availability(*place.state.add_up(item.id, reading.machine, amounts))
        part = Component(reading.machine, reading.time_ms, "availability", value)
        return place.to_all(item.id.through(place.operator), encode(part))

    return process


def availability(total_ms: int, scheduled_ms: int, unscheduled_ms: int) -> float:
    """Eq. 3: (total time - scheduled downtime - unscheduled downtime) / total time."""
    if total_ms <= 0:
        raise ValueError("no production time yet")
    return (total_ms - scheduled_ms - unscheduled_ms) / total_ms
