"""The cover: the cost of hosts that always suffice, with every arrival known in advance.

Every step has whole instances enough for its highest rate, packed on as few hosts as hold them,
leased in the cheapest way. Nothing ever falls behind; boots, starts and moves take no time. A
controller that never falls behind could hope for no less; ``cost / cover`` is the regret of a run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from include.model.host import HostFlavor, PriceBook
from include.results.bounds.demand import Demand, Series, room_of

BUSY_AT_MOST = 0.97
"""How busy instances may be without falling behind: beyond, queues of random arrivals grow."""
Hosts = Sequence[int] | NDArray[np.int64]
"""Hosts that are needed, by step."""


@dataclass(frozen=True)
class Cover:
    """Hosts by step; ``low`` and ``high`` differ where no packing was shown to be the best."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    step_s: float

    def cost(self, book: PriceBook) -> tuple[float, float]:
        """Cost of the cheapest leases: a lower and an upper bound."""
        low, high = (cheapest_cost(hosts, book, self.step_s) for hosts in (self.low, self.high))
        return low, high


def cover_of(demand: Demand, flavor: HostFlavor) -> Cover:
    """One packing for every different demand; most steps share one with others."""
    offered, needs = room_of(flavor, demand)
    counts = np.maximum(1, np.ceil(demand.peak_busy / BUSY_AT_MOST - 1e-9)).astype(np.int64)
    distinct, which = np.unique(counts, axis=1, return_inverse=True)
    packed = [fewest_hosts(column, offered, needs) for column in distinct.T]
    least = np.ceil(hosts_of_work(demand, flavor) - 1e-9).astype(int)
    low, high = zip(*(packed[place] for place in np.ravel(which)), strict=True)
    return Cover(
        tuple(int(count) for count in np.maximum(low, least)),
        tuple(int(count) for count in np.maximum(high, least)),
        demand.step_s,
    )


def hosts_of_work(demand: Demand, flavor: HostFlavor) -> Series:
    """Hosts, as fractions, whose CPU does the work of every step where it is shared.

    0 where it is not: there instances reserve what they need.
    """
    if not flavor.cpu_shared:
        return np.zeros(demand.steps)
    busy: Series = demand.busy_cores @ demand.peak_busy / (flavor.vcpus * BUSY_AT_MOST)
    return busy


def fewest_btus(hosts: Hosts, steps_per_btu: int) -> int:
    """How many BTUs are paid for ``hosts[t]`` hosts in every step, at least and at best.

    Leasing and prolonging only when short is optimal where every BTU is as long as every other:
    a BTU that begins earlier ends earlier, so it covers no step that a later one would not, and
    one is needed by then. Hosts are ready when they are ordered.
    """
    begun = np.zeros(len(hosts), dtype=np.int64)
    paid = 0
    for step, needed in enumerate(hosts):
        if step >= steps_per_btu:
            paid -= begun[step - steps_per_btu]
        begun[step] = max(0, needed - paid)
        paid += begun[step]
    return int(begun.sum())


def cheapest_cost(hosts: Hosts, book: PriceBook, step_s: float) -> float:
    """Cost of these BTUs; of BTUs that fit into a step, as many as the step has.

    Raises ValueError for a BTU that is no multiple of the step and does not fit into it.
    """
    steps = round(book.btu_s / step_s)
    if steps >= 1 and abs(steps * step_s - book.btu_s) < 1e-9:
        return fewest_btus(hosts, steps) * book.price_per_btu
    each = round(step_s / book.btu_s)
    if abs(each * book.btu_s - step_s) < 1e-9:
        return int(sum(hosts)) * each * book.price_per_btu
    raise ValueError(f"a BTU of {book.btu_s:g} s is no multiple of {step_s:g} s, nor a part")


PACKING_NODES = 300
"""Nodes that the solver may visit for one packing: the same packing on every machine."""
GUARD_S = 60.0
"""A packing that takes so long is given up, on a slow machine earlier than on a fast one. Those of
100 operators on 50 hosts take some 12 s."""
Counts = NDArray[np.int64]


def fewest_hosts(counts: Counts, offered: Series, needs: Series) -> tuple[int, int]:
    """A lower and an upper bound of the hosts; equal where the packing is known to be the best.

    ``counts`` are instances by operator, ``offered`` what a host has of every resource (shape
    (resources,)), ``needs`` what an instance takes (resources, operators).
    """
    low = max(math.ceil(least - 1e-9) for least in (needs @ counts) / offered)
    high = first_fit_hosts(counts, offered, needs)
    return (low, high) if low == high else _exact(counts, offered, needs, low, high)


def first_fit_hosts(counts: Counts, offered: Series, needs: Series) -> int:
    """Hosts that first fit takes when the largest instances come first.

    Instances that are alike are placed at once: as many as fit on the first host, and so on.
    """
    largest = np.argsort(-(needs / offered[:, None]).max(axis=0), kind="stable")
    left = np.empty((0, len(offered)))
    for op in largest:
        need, wanted = needs[:, op], int(counts[op])
        each = max(1, int(_fitting(offered[None, :], need)[0]))
        new = np.tile(offered, (math.ceil(wanted / each), 1))
        fitting = np.append(_fitting(left, need), np.full(len(new), each))
        placed = np.clip(wanted - (np.cumsum(fitting) - fitting), 0, fitting)
        opened = int(np.count_nonzero(placed[len(left) :]))
        left = np.concatenate([left, new[:opened]]) - placed[: len(left) + opened, None] * need
    return len(left)


def _fitting(left: Series, need: Series) -> Counts:
    """Instances that fit on each host; ``left`` has the shape (hosts, resources)."""
    taken = need > 0
    fitting: Counts = np.floor((left[:, taken] + 1e-9) / need[taken]).min(axis=1).astype(np.int64)
    return fitting.clip(0)


def _exact(counts: Counts, offered: Series, needs: Series, low: int, high: int) -> tuple[int, int]:
    """Bin packing as a mixed-integer program: host b holds x[b, op] instances if it is used."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import block_diag, csr_array, hstack, kron

    kinds = len(counts)
    fits = hstack([block_diag([needs] * high), -kron(csr_array(np.eye(high)), offered[:, None])])
    placed = hstack([csr_array(np.tile(np.eye(kinds), high)), csr_array((kinds, high))])
    alike = csr_array(np.eye(high - 1, high, 1) - np.eye(high - 1, high))
    in_order = hstack([csr_array((high - 1, kinds * high)), alike])  # those in use come first
    solution = milp(
        np.concatenate([np.zeros(kinds * high), np.ones(high)]),
        constraints=[
            LinearConstraint(fits.tocsr(), ub=0),
            LinearConstraint(placed.tocsr(), lb=counts, ub=counts),
            LinearConstraint(in_order.tocsr(), ub=0),
        ],
        integrality=np.ones((kinds + 1) * high),
        bounds=Bounds(0, np.concatenate([np.tile(counts, high), np.ones(high)])),
        options={"node_limit": PACKING_NODES, "time_limit": GUARD_S},
    )
    if solution.mip_dual_bound is not None:
        low = max(low, math.ceil(solution.mip_dual_bound - 1e-6))
    return low, high if solution.x is None else min(high, round(solution.fun))
