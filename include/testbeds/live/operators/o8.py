"""O8, Inform User: the end of the topology. As in the paper, it takes items and does nothing.

That an item counts once, however often it comes, is the ledger's work (``ledger.py``).
"""

from __future__ import annotations

from collections.abc import Sequence

from include.testbeds.live.operators.code import Output, Place, Process
from include.testbeds.live.operators.wire import Item


def code(place: Place) -> Process:
    """Nothing leaves."""

    def process(item: Item) -> Sequence[Output]:
        return ()

    return process
