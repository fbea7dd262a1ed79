"""O2, Filter Availability: a warning for each new defect of a machine; everything else ends."""

from __future__ import annotations

from collections.abc import Sequence

from include.testbeds.live.operators.code import Output, Place, Process
from include.testbeds.live.operators.readings import DEFECT, Status, decode
from include.testbeds.live.operators.wire import Item


def code(place: Place) -> Process:
    """The status itself is the warning."""

    def process(item: Item) -> Sequence[Output]:
        status = decode(Status, item.body)
        defect = status.status == DEFECT
        if not place.state.is_new_incident(item.id, status.machine, status.time_ms, defect):
            return ()
        return place.to_all(item.id.through(place.operator), item.body.rstrip())

    return process
