"""O6, Monitor Temperature: a notification for each time a machine becomes too hot."""

from __future__ import annotations

from collections.abc import Sequence

from include.testbeds.live.operators.code import Output, Place, Process
from include.testbeds.live.operators.readings import Temperature, decode
from include.testbeds.live.operators.wire import Item

LIMIT_CELSIUS = 80.0
"""The paper speaks of a predefined threshold and does not say which."""


def code(place: Place) -> Process:
    """The reading itself is the notification; temperatures up to the limit end here."""

    def process(item: Item) -> Sequence[Output]:
        reading = decode(Temperature, item.body)
        hot = reading.celsius > LIMIT_CELSIUS
        if not place.state.is_new_incident(item.id, reading.machine, reading.time_ms, hot):
            return ()
        return place.to_all(item.id.through(place.operator), item.body.rstrip())

    return process
