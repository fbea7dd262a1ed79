"""Price books by name, or of a YAML file. To add one, add a line.

The paper's model is linear: BTUs of 10, 30 and 60 minutes cost 1, 3 and 6 (PeerJ CS 141,
"Evaluation configuration"); the others round the same price differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from include.experiment.prices.books import PENALTY_PER_ITEM, load_book
from include.model.billing import CloudPriceBook
from include.model.errors import SpecError, unknown_name
from include.model.host import PriceBook


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


def is_file(name: str) -> bool:
    """Whether a spec names a file of the user's own."""
    return name.endswith((".yaml", ".yml"))


def price_book(name: str) -> PriceBook:
    """The book of that name, or in that file.

    Raises SpecError when there is none, or when a run cannot be billed by it: the lease log says
    when a host was ordered and given back, not when it was up or who took it back.
    """
    if not is_file(name):
        if name not in PRICE_BOOKS:
            raise SpecError("price book", [unknown_name("price book", name, PRICE_BOOKS)])
        return PRICE_BOOKS[name]
    try:
        return load_book(name, _run_problems)
    except SpecError as error:
        problems = [f"price book {Path(name).name}: {problem}" for problem in error.problems]
        raise SpecError("price book", problems) from None


def _run_problems(book: CloudPriceBook) -> Iterator[str]:
    if book.name in PRICE_BOOKS:
        yield f"{book.name} is the name of another price book; choose one"
    if book.billed_from != "order":
        yield "runs are billed from the order; write billed_from: order"
    if book.interrupted_free_s > 0:
        yield "runs pay for hosts that are lost; write interrupted_free_s: 0"
    if book.reserved:
        yield "runs pay for every lease; leave reserved out"
