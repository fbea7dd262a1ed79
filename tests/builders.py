"""Testbeds and worlds of the papers, in a few lines. Others are in include.testing.builders."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from include.controllers.placement import FreeCapacities, FreeCapacity
from include.experiment.spec import RunSpec
from include.model.decision import Action, LeaseHost, Outcome, StartInstance
from include.model.host import HostFlavor
from include.model.topology import Edge, Source, Topology
from include.runs import stages
from include.runs.measurements.store import RunStore, to_arrow
from include.testbeds import TESTBEDS
from include.testbeds.base import TestbedConfig
from include.testing.builders import SMALL, decision
from include.workloads.pattern import Levels
from include.workloads.topologies import load_topology

PAPER = HostFlavor(name="docker-host", vcpus=4, memory_mb=7168, usable_memory_share=0.9)
"""The Dockerhost VM of PeerJ CS 141."""


def manufacturing(memory_factor: float = 2.0) -> Topology:
    """O1 to O9 of Tables 1 and 2 with the calibrated memory need."""
    topology = load_topology("manufacturing")
    operators = (replace(op, memory_mb=op.memory_mb * memory_factor) for op in topology.operators)
    return replace(topology, operators=tuple(operators))


def fed_by(topology: Topology, sources: Mapping[str, str], *edges: Edge) -> Topology:
    """Its operators, each behind those of the sources that name it, with these edges between."""
    into = (Edge(origin=source, target=operator) for source, operator in sources.items())
    made = (Source(name=name, label=name, items_per_level=1, size_bytes=1) for name in sources)
    return replace(topology, sources=tuple(made), edges=(*into, *edges))


def a_config(topology: Topology, level: float | Levels = 1.0, **changes: Any) -> TestbedConfig:
    """An hour on ten SMALL hosts; every source publishes at this level."""
    levels = level if isinstance(level, Levels) else Levels((0.0,), (level,))
    values: dict[str, Any] = {
        "topology": topology,
        "levels_of": {source.name: levels for source in topology.sources},
        "flavor": SMALL,
        "max_hosts": 10,
        "btu_s": 600.0,
        "duration_s": 3600.0,
        "seed": 7,
        "monitor_every_s": 15.0,
        "calibration": {},
        "faults": {},
    }
    return TestbedConfig(**(values | changes))


def started(config: TestbedConfig, testbed: str, *, hosts: int = 1, instances: int = 1) -> Any:
    """A testbed on which ``instances`` of every operator are up, dealt out to ``hosts`` hosts."""
    made = TESTBEDS[testbed].build(config)
    leases = [LeaseHost(config.flavor.name, f"h{number}") for number in range(hosts)]
    names = [name for name in config.topology.operator_names for _ in range(instances)]
    starts = [StartInstance(name, f"h{i % hosts}") for i, name in enumerate(names)]
    made.deploy(decision(*leases, *starts))
    return made


def apply_at(testbed: Any, at_s: float, *actions: Action) -> tuple[Outcome, ...]:
    """What becomes of a decision at this time."""
    testbed.advance_to(at_s)
    outcomes: tuple[Outcome, ...] = testbed.apply(decision(*actions))
    return outcomes


def seen_at(testbed: Any, at_s: float) -> Any:
    """What a controller sees at this time."""
    testbed.advance_to(at_s)
    return testbed.observe()


def measured_at(testbed: Any, at_s: float) -> Any:
    """What was measured until this time and nobody has taken yet."""
    testbed.advance_to(at_s)
    return testbed.take_measurements()


def tables_of(testbed: Any) -> dict[str, pa.Table]:
    """What was measured and nobody has taken yet, as it is stored."""
    return {name: to_arrow(name, of) for name, of in testbed.take_measurements().items()}


def resumed(testbed: Any) -> Any:
    """Another testbed of the same configuration, from a snapshot of this one on."""
    other = type(testbed)(testbed.config)
    other.restore(testbed.snapshot())
    return other


def rows_cut(
    testbed: Any, moves: Mapping[float, Sequence[Action]], cuts_s: Collection[float], end_s: float
) -> tuple[dict[str, pa.Table], Any]:
    """What is measured to the end by a testbed that is stored and taken up again at every cut,
    after the moves of that time; and that testbed."""
    parts: dict[str, list[pa.Table]] = {}
    for t_s in sorted({*moves, *cuts_s, end_s}):
        testbed.advance_to(t_s)
        if t_s in moves:
            testbed.apply(decision(*moves[t_s]))
        if t_s in cuts_s or t_s == end_s:
            for name, table in tables_of(testbed).items():
                parts.setdefault(name, []).append(table)
            testbed = resumed(testbed)
    rows = {name: pa.concat_tables(taken).combine_chunks() for name, taken in parts.items()}
    return rows, testbed


def begun(spec: RunSpec, root: Path, windows: int = 0) -> RunStore:
    """A run that was deployed and controlled for so many windows."""
    stages.provision(spec, root)
    stages.deploy(spec, root)
    stages.replay_arrivals(spec, root)
    if windows:
        stages.control_windows(spec, root, 0, windows - 1)
    return stages.store_of(spec, root)


def run_spec(**changes: Any) -> RunSpec:
    """A run of twenty minutes."""
    values: dict[str, Any] = {
        "experiment": "test",
        "controller": "btu",
        "pattern": "stepwise",
        "btu_min": 10,
        "seed": 1,
        "duration_min": 20,
    }
    return RunSpec(**(values | changes))


def free_capacities(hosts: Iterable[FreeCapacity]) -> FreeCapacities:
    """As a plan has them at the beginning of a decision, in the order of ``hosts``."""
    rooms = list(hosts)
    numbers = [(*astuple(room.total), *astuple(room.left), float(room.up)) for room in rooms]
    return FreeCapacities(
        {room.host: room.images for room in rooms}, np.array(numbers).reshape(-1, 5).T.copy()
    )
