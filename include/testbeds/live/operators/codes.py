"""Code of every operator, by name; ``relay`` for all others."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from include.testbeds.live.operators import manufacturing
from include.testbeds.live.operators.code import Code, Output, Place, Process
from include.testbeds.live.operators.settings import Target
from include.testbeds.live.operators.wire import Item


def relay(place: Place) -> Process:
    """Work for the service time and pass bodies on unchanged: default for other operators."""

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


CODES: Mapping[str, Code] = {
    "O1": manufacturing.o1,
    "O2": manufacturing.o2,
    "O3": manufacturing.o3,
    "O4": manufacturing.o4,
    "O5": manufacturing.o5,
    "O6": manufacturing.o6,
    "O7": manufacturing.o7,
    "O8": manufacturing.o8,
    "O9": manufacturing.o9,
}
"""An operator of another name is a ``relay``."""
