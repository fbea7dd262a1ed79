"""Shared builders: a small world in a few lines. Every default is harmless (idle, in time)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from include.controllers.base import Setting
from include.model.decision import Action, Decision, Reason, Reasoned, Why
from include.model.host import HostFlavor
from include.model.observation import HostSample, InstanceSample, Observation, OperatorSample
from include.model.topology import Edge, Operator, Source, Topology

SMALL = HostFlavor(name="small", vcpus=4, memory_mb=4000)
"""Room for four instances of ``an_operator()``."""


def an_operator(name: str = "O1", **changes: Any) -> Operator:
    """An operator of which four fit a SMALL host, and that should take a second per item."""
    values: dict[str, Any] = {
        "label": name,
        "slo_ms": 1000.0,
        "cpu_cores": 0.5,
        "memory_mb": 1000.0,
        "storage_mb": 70.0,
    }
    return Operator(name=name, **(values | changes))


def a_topology(*operators: Operator | str) -> Topology:
    """A chain of operators (names become ``an_operator``) behind one source."""
    made = tuple(an_operator(op) if isinstance(op, str) else op for op in operators or ("O1",))
    names = ["S1", *(op.name for op in made)]
    return Topology(
        name="chain",
        level_unit="machines",
        emission_period_s=1.0,
        operators=made,
        sources=(Source(name="S1", label="S1", items_per_level=1, size_bytes=100),),
        edges=tuple(Edge(origin=a, target=b) for a, b in pairwise(names)),
    )


def a_setting(topology: Topology | None = None, **changes: Any) -> Setting:
    """SMALL hosts and a BTU of ten minutes."""
    values: dict[str, Any] = {"flavor": SMALL, "btu_s": 600.0, "seed": 1}
    return Setting(topology=topology or a_topology("O1", "O2", "O3"), **(values | changes))


def a_sample(
    name: str = "O1", waiting_items: int = 10, durations_ms: Iterable[float] = (500.0,) * 5
) -> OperatorSample:
    """An operator in time (500 ms of 1000 ms) whose queue is neither long nor empty."""
    return OperatorSample(
        operator=name,
        waiting_items=waiting_items,
        durations_ms=tuple(durations_ms),
        arrived_items=0,
        completed_items=0,
    )


def late(name: str = "O1", waiting_items: int = 51, duration_ms: float = 1200.0) -> OperatorSample:
    """An operator that Algorithm 1 scales up."""
    return a_sample(name, waiting_items, (duration_ms,) * 5)


def idle(name: str = "O1") -> OperatorSample:
    """An operator in time with nothing to do: Algorithm 3 likes to shrink it."""
    return a_sample(name, 0)


def a_host(name: str = "h1", **changes: Any) -> HostSample:
    """A host that is up and paid for long, with no image in its cache."""
    values: dict[str, Any] = {
        "flavor": SMALL.name,
        "ordered_s": 0.0,
        "paid_until_s": 100_000.0,
        "up": True,
        "releasing": False,
        "images": frozenset(),
    }
    return HostSample(host=name, **(values | changes))


def an_instance(name: str, operator: str, host: str = "h1", **changes: Any) -> InstanceSample:
    """A running instance."""
    values: dict[str, Any] = {"started_s": 0.0, "ready": True, "stopping": False}
    return InstanceSample(instance=name, operator=operator, host=host, **(values | changes))


def instances(on: Mapping[str, str], **changes: Any) -> list[InstanceSample]:
    """``{"h1": "O1 O2 O2"}`` becomes the instances i1 (O1), i2 (O2) and i3 (O2) on h1."""
    places = [(host, operator) for host, operators in on.items() for operator in operators.split()]
    return [
        an_instance(f"i{number}", operator, host, **changes)
        for number, (host, operator) in enumerate(places, start=1)
    ]


def an_observation(
    *,
    operators: Iterable[OperatorSample] = (),
    hosts: Iterable[HostSample] = (),
    running: Iterable[InstanceSample] = (),
    now_s: float = 3600.0,
) -> Observation:
    """What the monitor sees, an hour into the run: long after every guard."""
    return Observation(
        now_s=now_s,
        operators={sample.operator: sample for sample in operators},
        hosts={host.host: host for host in hosts},
        instances={instance.instance: instance for instance in running},
    )


def cluster_of(
    on: Mapping[str, str],
    *operators: OperatorSample,
    hosts: Iterable[HostSample] = (),
    now_s: float = 3600.0,
) -> Observation:
    """These operators, on hosts that run what ``on`` says; ``hosts`` are unlike ``a_host``."""
    unlike = {host.host: host for host in hosts}
    return an_observation(
        operators=operators,
        hosts=[unlike.get(name, a_host(name)) for name in on],
        running=instances(on),
        now_s=now_s,
    )


def why(sentence: str = "the test says so") -> Why:
    """A reason for what only a test decides."""
    return Why(Reason.NOTHING_TO_DO, sentence)


def decision(*actions: Action) -> Decision:
    """These actions, without a reason worth mentioning."""
    reason = why()
    steps = (Reasoned(action, reason.sentence, reason.reason) for action in actions)
    return Decision(tuple(steps), reason.sentence, reason.reason)
