"""O5, Calculate Quality since production began (Eq. 4)."""

from __future__ import annotations

from collections.abc import Sequence

from include.testbeds.live.operators.code import Output, Place, Process
from include.testbeds.live.operators.readings import Component, Production, decode, encode
from include.testbeds.live.operators.wire import Item


def code(place: Place) -> Process:
    """One component for each production reading."""

    def process(item: Item) -> Sequence[Output]:
        reading = decode(Production, item.body)
        amounts = (reading.produced, reading.defective)
        value = quality(*place.state.add_up(item.id, reading.machine, amounts))
        part = Component(reading.machine, reading.time_ms, "quality", value)
        return place.to_all(item.id.through(place.operator), encode(part))

    return process


def quality(produced: int, defective: int) -> float:
    """Eq. 4: (produced goods - defective goods) / produced goods.

    A machine that has produced nothing has produced nothing bad: 1.
    """
    return (produced - defective) / produced if produced else 1.0
