"""O7, Calculate OEE: joins the three components of a machine and time (Eq. 5)."""

from __future__ import annotations

from collections.abc import Sequence

from include.testbeds.live.operators.code import Output, Place, Process
from include.testbeds.live.operators.readings import Component, Effectiveness, decode, encode
from include.testbeds.live.operators.wire import Item, ItemId

COMPONENTS = ("availability", "performance", "quality")


def code(place: Place) -> Process:
    """One value for every three components, sent when the last of them has come.

    It is named after the reading all three derive from, whichever of them came last.
    """

    def process(item: Item) -> Sequence[Output]:
        part = decode(Component, item.body)
        if part.kind not in COMPONENTS:
            raise ValueError(f"no component of the OEE: {part.kind!r}")
        of_kind = (part.kind, repr(part.value))
        joined = place.state.join(part.machine, part.time_ms, of_kind, len(COMPONENTS))
        if not joined:
            return ()
        factors = {kind: float(text) for kind, text in joined.items()}
        value = Effectiveness(part.machine, part.time_ms, oee(**factors))
        return place.to_all(ItemId(place.operator, item.id.number), encode(value))

    return process


def oee(availability: float, performance: float, quality: float) -> float:
    """Eq. 5: availability x performance x quality."""
    return availability * performance * quality
