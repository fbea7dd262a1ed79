"""What `make bench` compares with does the same work: the heap loop item by item, the others on
average."""

from __future__ import annotations

import math
from statistics import fmean, variance

import pytest

from include.testbeds.virtual.calibration import PARAMETERS
from include.workloads.pattern import Levels
from include.workloads.topologies import load_topology
from tests.bench.heap_network import HeapNetwork
from tests.bench.kernel_network import KernelNetwork
from tests.bench.simpy_network import SimpyNetwork

TOPOLOGY = load_topology("manufacturing")
# No stalls and exact time stamps: of what the peers leave out, the two that would show.
CALIBRATION = PARAMETERS.load_calibration("manufacturing").model_copy(
    update={"stalls_per_hour": 0, "timestamp_resolution_s": 0}
)
SERVERS = dict.fromkeys(TOPOLOGY.operator_names, 1) | {"O1": 5, "O2": 2}
"""At level 2 O1 and O2 work five sixths of the time, so that most of their items wait."""
DURATION_S = 200.0
SEEDS = range(1, 5)


def levels_of(level: float) -> dict[str, Levels]:
    return {source.name: Levels((0.0,), (level,)) for source in TOPOLOGY.sources}


def of_the_kernel(seed: int) -> tuple[int, list[tuple[str, int, int, int, int]]]:
    network = KernelNetwork(TOPOLOGY, CALIBRATION, seed)
    return network.run(levels_of(2), SERVERS, DURATION_S), sorted(network.recorded)


def test_the_heap_loop_and_the_kernel_record_the_same_to_the_microsecond():
    loop = HeapNetwork(TOPOLOGY, CALIBRATION, seed=3)
    executions = loop.run(levels_of(2), SERVERS, DURATION_S)
    assert (executions, sorted(loop.recorded)) == of_the_kernel(3)
    assert sum(wait_us > 0 for *_, wait_us in loop.recorded) > 200


def test_simpy_agrees_with_the_kernel_on_average():
    durations_s: dict[str, list[tuple[float, float]]] = {name: [] for name in SERVERS}
    for seed in SEEDS:
        executions, records = of_the_kernel(seed)
        network = SimpyNetwork(TOPOLOGY, CALIBRATION, seed)
        assert network.run(levels_of(2), SERVERS, DURATION_S) == pytest.approx(executions, rel=0.01)
        for name, theirs_s in network.durations_s.items():
            ours_s = [duration / 1e6 for operator, _, _, duration, _ in records if operator == name]
            durations_s[name].append((fmean(ours_s), fmean(theirs_s)))
    for name, means_s in durations_s.items():
        ours_s, theirs_s = map(list, zip(*means_s, strict=True))
        # A seed is one observation: durations of items that wait for each other are not alone.
        error_s = math.sqrt((variance(ours_s) + variance(theirs_s)) / len(SEEDS))
        assert abs(fmean(ours_s) - fmean(theirs_s)) < 4 * error_s, name
        assert error_s < 0.15 * fmean(ours_s), name
