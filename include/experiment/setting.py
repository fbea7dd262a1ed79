"""What a controller may know of a run before it starts."""

from __future__ import annotations

from include.controllers.base import Setting
from include.experiment.prices import PRICE_BOOKS
from include.experiment.spec import RunSpec
from include.model.host import HostFlavor
from include.model.topology import Topology


def setting_of(spec: RunSpec, topology: Topology, flavor: HostFlavor) -> Setting:
    """The setting of a run's controller; nothing in it tells of arrivals to come."""
    books = [PRICE_BOOKS[name] for name in spec.price_books if name in PRICE_BOOKS]
    books = books or [*PRICE_BOOKS.values()]  # whoever asks before prices are checked
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
