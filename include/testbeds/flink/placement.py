"""Which instance each subtask is, and where instances are to go: pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from include.testbeds.base import TestbedConfig
from include.testbeds.flink.calibration import FlinkCalibration
from include.testbeds.flink.fleet import FlinkFleet, FlinkInstance
from include.testbeds.flink.instances import JobStart
from include.testbeds.flink.job import state_mb_of


@dataclass(frozen=True, slots=True)
class Placement:
    """The instances of one start of the job.

    ``names`` by operator, in order of the subtasks; ``hosts`` by the instance's number: that of
    the host it runs on, 0 where that is none of the run's; ``moved`` runs elsewhere than booked.
    """

    names: dict[str, list[str]]
    hosts: dict[int, int]
    moved: tuple[str, ...]


def placed(instances: Iterable[FlinkInstance], start: JobStart, fleet: FlinkFleet) -> Placement:
    """Whose place each subtask is: first of those booked on its host, then of the others.

    A subtask more than there are instances is that of nobody: operator-0.
    """
    names: dict[str, list[str]] = {}
    hosts: dict[int, int] = {}
    moved = []
    candidates = sorted((one for one in instances if one.runs), key=lambda one: one.number)
    for operator in start.parallelism():
        left = [one for one in candidates if one.operator == operator]
        subtasks = sorted(
            (each for each in start.subtasks if each.operator == operator),
            key=lambda each: each.number,
        )
        named: dict[int, FlinkInstance] = {}
        for at_home in (True, False):
            for each in subtasks:
                fitting = [one for one in left if not at_home or f"host-{one.host}" == each.host]
                if each.number not in named and fitting:
                    named[each.number] = fitting[0]
                    left.remove(fitting[0])
        for each in subtasks:
            one = named.get(each.number)
            names.setdefault(operator, []).append(one.name if one else f"{operator}-0")
            if one is None:
                continue
            host = fleet.host(each.host)
            hosts[one.number] = host.number if host else 0
            if each.host != f"host-{one.host}":
                moved.append(f"{one.name} on {each.host}")
    return Placement(names, hosts, tuple(moved))


def plan_lines(
    instances: Iterable[FlinkInstance],
    ids: Mapping[str, str],
    sources: Sequence[str],
    provider: str,
) -> str:
    """What the slot assigner reads: lines of vertex id, host, and how many."""
    counts = Counter((ids[one.operator], f"host-{one.host}") for one in instances)
    counts.update((ids[name], provider) for name in sources[:1])
    return "".join(f"{vertex} {host} {count}\n" for (vertex, host), count in counts.items())


def slots_of(config: TestbedConfig, limits: FlinkCalibration) -> int:
    """Slots of a host: as many as fit of the operator that needs least, unless said otherwise."""
    return limits.slots_per_host or config.flavor.capacity.slots(config.topology.operators)


def heap_mb(config: TestbedConfig, limits: FlinkCalibration) -> int:
    """Of a TaskManager: any may get all of the state, and a copy of it while it is stored."""
    topology = config.topology
    state_mb = sum(state_mb_of(topology, limits, name) for name in topology.operator)
    return 64 + math.ceil(3 * state_mb)
