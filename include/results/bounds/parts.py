"""What the hosts of a run cost, taken apart: from the work alone to the last billed second."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from include.model.host import HostFlavor, PriceBook
from include.results.bounds.cover import BUSY_AT_MOST, Counts, Cover, first_fit_hosts, hosts_of_work
from include.results.bounds.demand import Demand, Series, room_of
from include.runs.measurements.rows import CostPartRow


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUse:
    """What a run had of instances and hosts at every reading of the monitor.

    ``instances`` that run or start, by operator of the topology: shape (operators, readings).
    ``hosts`` that have an instance. ``leased_s`` of all hosts together.
    """

    times_s: Series
    instances: Counts
    hosts: Counts
    leased_s: float


def leased_for(demand: Demand, cover: Cover, flavor: HostFlavor, use: HostUse) -> Series:
    """Seconds of hosts that each part but the last stands for, in the order of ``CostPartRow``."""
    offered, needs = room_of(flavor, demand)
    busy = demand.peak_busy / BUSY_AT_MOST
    whole = np.maximum(1, np.ceil(busy - 1e-9))
    working = hosts_of_work(demand, flavor)
    read_in = np.minimum(use.times_s // demand.step_s, demand.steps - 1).astype(np.int64)
    suffice = np.maximum(_packed(use.instances, offered, needs), np.ceil(working - 1e-9)[read_in])
    hosts = (
        np.maximum(_fractions(busy, offered, needs), working).mean(),
        np.maximum(_fractions(whole, offered, needs), working).mean(),
        np.mean(cover.high),
        np.minimum(suffice, use.hosts).mean(),
        use.hosts.mean(),
    )
    lasted_s = demand.steps * demand.step_s
    return np.diff([0.0, *(float(count) * lasted_s for count in hosts), use.leased_s])


def parts_of(leased_s: Series, book: PriceBook, billed: float) -> CostPartRow:
    """The parts of what a run was billed under a price book, from what ``leased_for`` says."""
    costs = [float(cost) for cost in leased_s * book.price_per_btu / book.btu_s]
    shares = (round(cost, 9) + 0.0 for cost in (*costs, billed - sum(costs)))  # nor a -0.0
    return CostPartRow(book.name, *shares)


def _fractions(instances: Series, offered: Series, needs: Series) -> Series:
    """Hosts by the resource that is shortest, as fractions, by step."""
    shortest: Series = ((needs @ instances) / offered[:, None]).max(axis=0)
    return shortest


def _packed(instances: Counts, offered: Series, needs: Series) -> Counts:
    """Hosts that first fit decreasing takes for these instances, by reading."""
    distinct, which = np.unique(instances, axis=1, return_inverse=True)
    packed = np.array([first_fit_hosts(column, offered, needs) for column in distinct.T])
    taken: Counts = packed[np.ravel(which)]
    return taken
