"""What a controller may know of a run before it starts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from include.controllers.base import Setting
from include.experiment.prices import PRICE_BOOKS, price_book
from include.experiment.spec import RunSpec
from include.model.errors import SpecError
from include.model.host import HostFlavor, PriceBook
from include.model.topology import Topology


def setting_of(spec: RunSpec, topology: Topology, flavor: HostFlavor) -> Setting:
    """The setting of a run's controller; nothing in it tells of arrivals to come."""
    books = list(_books_of(spec)) or [*PRICE_BOOKS.values()]
    own = next((book for book in books if book.btu_s == spec.window_s), books[0])
    return Setting(
        topology=topology,
        flavor=flavor,
        btu_s=spec.window_s,
        seed=spec.seed,
        price_per_btu=own.price_per_btu * spec.window_s / own.btu_s,
        penalty_per_item=own.penalty_per_item,
        monitor_every_s=spec.monitor_every_s,
        hosts_at_start=spec.hosts,
        max_hosts=spec.max_hosts,
    )


def _books_of(spec: RunSpec) -> Iterator[PriceBook]:
    """The books that can be read, for whoever asks before prices are checked."""
    for name in spec.price_books:
        with suppress(SpecError):
            yield price_book(name)
