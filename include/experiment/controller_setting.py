"""What a controller may know of a run before it starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from statistics import fmean
from typing import Any

from include.controllers.base import Delays, Setting
from include.experiment.prices import PRICE_BOOKS
from include.experiment.spec import RunSpec
from include.model.billing import CloudPriceBook
from include.model.host import HostFlavor, PriceBook
from include.model.topology import Topology


def setting_of(
    spec: RunSpec,
    topology: Topology,
    flavor: HostFlavor,
    books: Iterable[PriceBook],
    calibration: Mapping[str, Any] | None = None,
) -> Setting:
    """The setting of a run's controller; nothing in it tells of arrivals to come.

    ``books`` and ``calibration`` are the resolved ones, None of these before there is one.
    """
    book = _planned_with(list(books) or [*PRICE_BOOKS.values()], spec.window_s)
    return Setting(
        topology=topology,
        flavor=flavor,
        btu_s=spec.window_s,
        seed=spec.seed,
        price_per_btu=book.price_per_btu * spec.window_s / book.btu_s,
        penalty_per_item=book.penalty_per_item,
        monitor_every_s=spec.monitor_every_s,
        hosts_at_start=spec.hosts,
        max_hosts=spec.max_hosts,
        delays=delays_of(calibration or {}),
    )


def delays_of(calibration: Mapping[str, Any]) -> Delays:
    """How long things take on a testbed of this calibration; a range is its middle."""
    mean = {name: _middle(calibration.get(name)) for name in ("host_boot_s", "instance_start_s")}
    # What a change stops is not here: controllers see it.
    delays = Delays(
        **mean,
        image_pull_s=_middle(calibration.get("image_pull_s")),
        drain_s=calibration.get("drain_s"),
    )
    if not calibration.get("restart"):
        return delays
    # What a decision starts and stops comes and goes with one restart of the job.
    waits_s = sum(one or 0.0 for one in (delays.instance_start_s, delays.image_pull_s))
    drain_s = (delays.drain_s or 0.0) + waits_s
    return replace(delays, instance_start_s=0.0, image_pull_s=0.0, drain_s=drain_s)


def _middle(bounds: tuple[float, float] | None) -> float | None:
    return None if bounds is None else fmean(bounds)


def _planned_with(books: Iterable[PriceBook], btu_s: float) -> PriceBook:
    """The book that also bills the run, in the order of sql/tables/outcomes."""
    return min(
        books,
        key=lambda book: (
            book.btu_s != btu_s,
            isinstance(book, CloudPriceBook),
            book.btu_s,
            book.name,
        ),
    )
