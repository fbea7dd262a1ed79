"""The work that arrives, on an even grid of time: what every bound is computed from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from include.experiment.run import Run
from include.model.host import HostFlavor
from include.model.topology import Operator

STEP_S = 60.0
"""Every BTU that is in use is a multiple of it."""
Series = NDArray[np.float64]


@dataclass(frozen=True)
class Demand:
    """What arrives in every step of a run; nothing of it is random.

    ``operators`` have instances. ``work_s`` says how long an execution of each node, an operator
    or a guest in one, keeps an instance of each of them busy: shape (operators, nodes).
    ``outside`` are items that sources publish to each node, and ``peak_per_s`` the highest rate
    of executions within a step where nothing waits: shape (nodes, steps). ``inside`` has the
    items that a node gets per execution of another: shape (nodes, nodes). ``busy_cores`` are cores
    that a busy instance takes where CPU is shared: shape (operators,). ``slots`` are those of a
    host on an engine that places by them alone, 0 elsewhere.
    """

    operators: Sequence[Operator]
    work_s: Series
    outside: Series
    inside: Series
    peak_per_s: Series
    step_s: float
    busy_cores: Series
    slots: int = 0

    @property
    def steps(self) -> int:
        return int(self.outside.shape[1])

    @cached_property
    def arriving(self) -> Series:
        """Executions of every node in every step where nothing waits."""
        before = np.eye(len(self.inside)) - self.inside
        return np.linalg.solve(before, self.outside).astype(np.float64)

    @cached_property
    def peak_busy(self) -> Series:
        """Instances of every operator that the highest rate within a step keeps busy."""
        busy: Series = self.work_s @ self.peak_per_s
        return busy


def demand_of(run: Run) -> Demand:
    """The demand of a run of whole steps, from its levels, edges and mean service times."""
    steps = round(run.spec.duration_s / STEP_S)
    topology = run.topology
    nodes = {name: place for place, name in enumerate(topology.flow_order)}
    operators = {name: place for place, name in enumerate(topology.operator_names)}
    cores = _cores_of_one(run)
    work_s = np.zeros((len(operators), len(nodes)))
    for name, place in nodes.items():
        runs_in = topology.operator[name].runs_in or name
        work_s[operators[runs_in], place] = run.calibration["service_ms"][name] / 1000 / cores
    inside = np.zeros((len(nodes), len(nodes)))
    from_source = np.zeros((len(nodes), len(topology.sources)))
    sources = {source.name: place for place, source in enumerate(topology.sources)}
    for edge in topology.edges:
        into = from_source if edge.origin in sources else inside
        origin = sources.get(edge.origin, nodes.get(edge.origin, -1))
        into[nodes[edge.target], origin] += edge.items_out / edge.items_in
    through = np.linalg.solve(np.eye(len(nodes)) - inside, from_source)
    outside, peak_per_s = np.zeros((len(nodes), steps)), np.zeros((len(nodes), steps))
    for start_s, end_s, per_s in _pieces(run):
        published = np.array([per_s[name] for name in sources])
        for step in range(int(start_s // STEP_S), math.ceil(end_s / STEP_S)):
            within_s = min(end_s, (step + 1) * STEP_S) - max(start_s, step * STEP_S)
            outside[:, step] += from_source @ published * within_s
            peak_per_s[:, step] = np.maximum(peak_per_s[:, step], through @ published)
    owners = [topology.operator[name] for name in operators]
    # On ``simulated`` instances slow down only where more cores are reserved than a host has.
    reserves, slots = run.spec.testbed == "simulated", _slots_of(run)
    busy_cores = np.array([op.cpu_cores if reserves else cores for op in owners])
    if slots:
        busy_cores[:] = 0.0
    return Demand(owners, work_s, outside, inside, peak_per_s, STEP_S, busy_cores, slots)


def _cores_of_one(run: Run) -> float:
    """Cores that a busy instance gets: below one on a host that has no more, if it needs them."""
    shares = run.spec.testbed == "flow" and run.flavor.cpu_shared
    return min(1.0, run.flavor.vcpus) if shares or run.calibration.get("work") == "burn" else 1.0


def _slots_of(run: Run) -> int:
    calibration, testbed = run.calibration, run.spec.testbed
    packs = testbed == "simulated" and (calibration.get("rescale") or {}).get("packs")
    if not packs and not (testbed == "flink" and calibration["placement"] == "flink"):
        return 0
    slots = run.flavor.capacity.slots(run.topology.operators)
    return int(calibration.get("slots_per_host") or slots)


def _pieces(run: Run) -> Iterator[tuple[float, float, Mapping[str, float]]]:
    """(start_s, end_s, items per second by source) between any two changes of a level."""
    levels_of, period_s = run.levels_of, run.topology.emission_period_s
    cuts = {t_s for levels in run.levels for t_s in levels.starts_s if t_s < run.spec.duration_s}
    for start_s, end_s in pairwise(sorted({0.0, *cuts, run.spec.duration_s})):
        yield (
            start_s,
            end_s,
            {
                source.name: source.items_per_level * levels_of[source.name].at(start_s) / period_s
                for source in run.topology.sources
            },
        )


def room_of(flavor: HostFlavor, demand: Demand) -> tuple[Series, Series]:
    """What a host offers and what instances reserve: memory, and CPU where it is not shared; slots
    on an engine that places by these alone.

    Shapes (resources,) and (resources, operators).
    """
    operators, room = demand.operators, flavor.capacity
    if demand.slots:
        return np.array([float(demand.slots)]), np.ones((1, len(operators)))
    needs = [[op.memory_mb for op in operators]]
    offered = [room.memory_mb]
    if not flavor.cpu_shared:
        needs.append([op.cpu_cores for op in operators])
        offered.append(room.cpu_cores)
    return np.array(offered), np.array(needs)
