"""Any other operator: so much work per item, and so many items out per item in."""

from __future__ import annotations

import time
from collections.abc import Sequence

from include.testbeds.live.operators.code import Output, Place, Process
from include.testbeds.live.operators.settings import Target
from include.testbeds.live.operators.wire import Item


def code(place: Place) -> Process:
    """Bodies pass through unchanged."""

    def process(item: Item) -> Sequence[Output]:
        spend_cpu(place.service_ms)
        return [
            Output(target.operator, item.id.through(place.operator, number), item.body)
            for target in place.targets
            for number in numbers_out(item.id.number, target)
        ]

    return process


def numbers_out(number: int, target: Target) -> range:
    """Numbers of the items that leave for one that enters: spread evenly, and none left out."""
    first = number * target.items_out // target.items_in
    return range(first, (number + 1) * target.items_out // target.items_in)


def spend_cpu(service_ms: float) -> None:
    """CPU time, not time: it takes longer where the instance gets less than a core."""
    end_ns = time.process_time_ns() + round(service_ms * 1e6)
    while time.process_time_ns() < end_ns:
        pass
