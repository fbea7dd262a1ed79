"""Price books by name. To add one, add a line.

The paper's model is linear: BTUs of 10, 30 and 60 minutes cost 1, 3 and 6 (PeerJ CS 141,
"Evaluation configuration"); the others round the same price differently.
"""

from __future__ import annotations

from collections.abc import Mapping

from include.model.host import PriceBook

PENALTY_PER_ITEM = 0.0001


def _book(name: str, btu_s: float) -> PriceBook:
    return PriceBook(
        name=name, btu_s=btu_s, price_per_btu=btu_s / 600, penalty_per_item=PENALTY_PER_ITEM
    )


PRICE_BOOKS: Mapping[str, PriceBook] = {
    book.name: book
    for book in (
        _book("btu10", 600),
        _book("btu30", 1800),
        _book("btu60", 3600),
        _book("per_minute", 60),
        _book("per_second", 1),
    )
}
