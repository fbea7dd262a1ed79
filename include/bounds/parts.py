"""What the hosts of a run cost, taken apart: from the work alone to the last billed second."""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np

from include.bounds.cover import BUSY_AT_MOST, cover_of_demand
from include.bounds.demand import Series, demand_of, room_of
from include.bounds.packing import Counts, first_fit_hosts
from include.experiment.run import Run
from include.model.host import PriceBook


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUse:
    """What a run had of instances and hosts.

    ``instances`` that run or start, by operator of the topology and reading: shape (operators,
    readings). ``hosts`` that have an instance, by reading. ``leased_s`` of all hosts together, and
    the cost that was billed for them.
    """

    instances: Counts
    hosts: Counts
    leased_s: float
    billed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CostParts:
    """Costs that add up to what was billed; hosts cost by the second in all but the last.

    ``work``: hosts as fractions that do what arrives. ``whole_instances``: instances that are
    whole. ``whole_hosts``: hosts that are, as few as hold them. So much takes a schedule with
    foresight. ``headroom``: instances beyond these, negative where the run had fewer and fell
    behind. ``spread``: hosts beyond those that first fit takes for the run's own instances, largest
    first. ``empty``: hosts
    without an instance, which boot, were ordered early or wait for the end of their BTU.
    ``unused``: BTUs that are billed beyond the leases.
    """

    work: float
    whole_instances: float
    whole_hosts: float
    headroom: float
    spread: float
    empty: float
    unused: float

    @property
    def total(self) -> float:
        """What was billed."""
        return float(sum(astuple(self)))


def parts_of(run: Run, book: PriceBook, use: HostUse) -> CostParts:
    """The parts of what a run was billed under a price book.

    Raises SpecError when the run's duration is no whole number of minutes.
    """
    demand = demand_of(run)
    offered, needs = room_of(run.flavor, demand.operators)
    whole = np.maximum(1, np.ceil(demand.peak_busy / BUSY_AT_MOST - 1e-9))
    cover = cover_of_demand(demand, run.flavor, BUSY_AT_MOST)
    hosts = (
        _fractions(demand.peak_busy / BUSY_AT_MOST, offered, needs),
        _fractions(whole, offered, needs),
        float(np.mean(cover.high)),
        float(np.minimum(_packed(use.instances, offered, needs), use.hosts).mean()),
        float(use.hosts.mean()),
    )
    lasted_s = run.spec.duration_s
    seconds = [0.0, *(one * lasted_s for one in hosts), use.leased_s]
    by_second = np.diff(seconds) * book.price_per_btu / book.btu_s
    costs = [float(one) for one in by_second]
    names = CostParts.__slots__
    return CostParts(**dict(zip(names, [*costs, use.billed - sum(costs)], strict=True)))


def _fractions(instances: Series, offered: Series, needs: Series) -> float:
    """Mean hosts by the resource that is shortest, as fractions."""
    return float(((needs @ instances) / offered[:, None]).max(axis=0).mean())


def _packed(instances: Counts, offered: Series, needs: Series) -> Counts:
    """Hosts that first fit decreasing takes for these instances, by reading."""
    distinct, which = np.unique(instances, axis=1, return_inverse=True)
    packed = np.array([first_fit_hosts(column, offered, needs) for column in distinct.T])
    taken: Counts = packed[np.ravel(which)]
    return taken
