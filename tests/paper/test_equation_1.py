"""PeerJ CS 141, Eq. 1: its exact optimum, and where Algorithm 2 lands."""

from __future__ import annotations

from collections import Counter

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from include.controllers.placement import FreeCapacity
from include.model.host import Capacity
from include.model.topology import Operator
from include.testing.builders import an_operator
from tests.builders import PAPER, free_capacities, manufacturing

HOST = PAPER.capacity
SEEDS = range(40)


def fewest_hosts(instances: list[Operator], host: Capacity, at_most: int) -> int:
    """The exact optimum of Eq. 1 for given instances and equal hosts, by HiGHS.

    With the instances given, its terms of leases and of unused CPU and memory grow with the number
    of hosts, and penalties do not depend on it, so the fewest hosts are optimal. Variables: y[h]
    whether host h is leased, then x[o, h] instances of o on h.
    """
    counts = Counter(op.name for op in instances)
    kinds = list({op.name: op for op in instances}.values())
    hosts, width = range(at_most), at_most * (1 + len(kinds))
    rows, lower, upper = [], [], []
    for o, op in enumerate(kinds):  # every instance is somewhere
        row = np.zeros(width)
        row[at_most * (1 + o) : at_most * (2 + o)] = 1
        rows.append(row)
        lower.append(counts[op.name])
        upper.append(counts[op.name])
    for h in hosts:  # no leased host is overbooked, and the others are empty
        for need, size in (("cpu_cores", host.cpu_cores), ("memory_mb", host.memory_mb)):
            row = np.zeros(width)
            row[h] = -size
            for o, op in enumerate(kinds):
                row[at_most * (1 + o) + h] = getattr(op, need)
            rows.append(row)
            lower.append(-np.inf)
            upper.append(0.0)
    cost = np.concatenate([np.ones(at_most), np.zeros(width - at_most)])
    most = np.concatenate([np.ones(at_most), np.full(width - at_most, len(instances))])
    solved = milp(
        cost,
        integrality=np.ones(width),
        bounds=Bounds(np.zeros(width), most),
        constraints=LinearConstraint(np.array(rows), lower, upper),
    )
    assert solved.success, solved.message
    return round(solved.fun)


def hosts_of_algorithm_2(instances: list[Operator], host: Capacity) -> int:
    """Instances come one by one; a host is leased when Algorithm 2 finds none (Fig. 4)."""
    rooms = free_capacities([])
    for op in instances:
        choice = rooms.best(op)
        name = f"h{len(rooms) + 1}" if choice is None else choice.host
        if choice is None:
            rooms[name] = FreeCapacity(name, host, host, frozenset(), up=True)
        rooms.reserve(name, op)
    return len(rooms)


def small_problem(seed: int) -> list[Operator]:
    """8 to 20 instances of the manufacturing topology with memory needs that differ."""
    draw = np.random.default_rng(seed)
    factor = draw.uniform(1.0, 4.0, size=9)
    kinds = [
        an_operator(op.name, cpu_cores=op.cpu_cores, memory_mb=op.memory_mb * share)
        for op, share in zip(manufacturing(1.0).operators, factor, strict=True)
    ]
    return [kinds[kind] for kind in draw.integers(0, 9, size=draw.integers(8, 21))]


def test_the_solver_finds_a_known_optimum() -> None:
    # bins of 10: {6, 4}, {6, 4}, {5, 5} fill three hosts; in this order first fit needs four
    bin_of_10 = Capacity(100.0, 10.0)
    sizes = (4.0, 4.0, 5.0, 5.0, 6.0, 6.0)
    pieces = [an_operator(f"P{size:.0f}", cpu_cores=1.0, memory_mb=size) for size in sizes]
    assert fewest_hosts(pieces, bin_of_10, at_most=6) == 3


def test_algorithm_2_is_optimal_on_most_small_problems_and_else_one_host_worse() -> None:
    gaps = []
    for seed in SEEDS:
        instances = small_problem(seed)
        heuristic = hosts_of_algorithm_2(instances, HOST)
        gaps.append(heuristic - fewest_hosts(instances, HOST, at_most=heuristic + 1))
    assert set(gaps) == {0, 1}, gaps
    assert gaps.count(0) / len(gaps) >= 0.6, gaps
