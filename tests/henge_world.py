"""A hand-made cluster for Henge: what its jobs feel is written down round by round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from msgspec import structs

from include.controllers.henge.controller import Henge
from include.controllers.henge.memory import HengeMemory
from include.model.decision import LeaseHost, StartInstance, StopInstance
from include.model.host import HostFlavor
from include.model.observation import InstanceSample, OperatorSample, TenantSample
from include.model.tenant import Intent, Tenant
from include.model.topology import Topology
from include.testing.builders import (
    a_host,
    a_sample,
    a_setting,
    a_topology,
    an_instance,
    an_observation,
    an_operator,
    decision,
)

SHARED = HostFlavor(name="shared", vcpus=4, memory_mb=64_000, cpu_shared=True)


def a_cluster(max_utilities: Mapping[str, float], instances: int = 10) -> Topology:
    """Jobs of two operators, ``<job>.first`` and ``<job>.second``, with an SLO of 100 ms."""
    operators = [
        an_operator(
            f"{job}.{name}",
            tenant=job,
            instances_at_start=instances,
            memory_mb=100.0,
            cpu_cores=0.1,
        )
        for job in max_utilities
        for name in ("first", "second")
    ]
    tenants = tuple(
        Tenant(name=job, intent=Intent(max_utility=worth, latency_ms=100.0))
        for job, worth in max_utilities.items()
    )
    return replace(a_topology(*operators), tenants=tenants)


class World:
    """Henge on four hosts; an action has been carried out when the next round comes."""

    def __init__(self, max_utilities: Mapping[str, float], **options: Any) -> None:
        self.topology = a_cluster(max_utilities)
        setting = a_setting(self.topology, flavor=SHARED, hosts_at_start=4, max_hosts=4)
        self.henge = Henge(setting=setting, **options)
        self.memory: HengeMemory = self.henge.initial_memory()
        self.latency_ms = dict.fromkeys(max_utilities, 100.0)
        self.capacity = dict.fromkeys(self.topology.operator_names, 0.1)
        self.load = 1.0
        self.unread: set[str] = set()
        self.joined = set(max_utilities)
        self.now_s = 0.0
        self._names = (f"i{n}" for n in count(1))
        self.running: dict[str, InstanceSample] = {}
        self.decision = decision()
        self.changed: Counter[str] = Counter()
        for op in self.topology.operators:
            self._start(op.name, op.instances_at_start)

    def _start(self, operator: str, number: int, host: str = "") -> None:
        for _ in range(number):
            name = next(self._names)
            where = host or f"h{len(self.running) % 4 + 1}"
            self.running[name] = an_instance(name, operator, where, started_s=self.now_s)

    def number(self, operator: str) -> int:
        """Instances of an operator that run now."""
        return sum(one.operator == operator for one in self.running.values())

    def round(self) -> Counter[str]:
        """The next round; returns by how much the number of instances of operators changed."""
        read = [op.name for op in self.topology.operators if op.tenant not in self.unread]
        seen = an_observation(
            now_s=self.now_s,
            operators=[self._sample(name) for name in read],
            hosts=[a_host(f"h{n}", flavor="shared", runnable=self.load) for n in range(1, 5)],
            running=self.running.values(),
        )
        seen = replace(seen, tenants=self._tenants())
        self.memory, self.decision = self.henge.decide(self.memory, seen)
        changed: Counter[str] = Counter()
        for action in self.decision.actions:
            match action:
                case StartInstance(operator=operator, host=host):
                    self._start(operator, 1, host)
                    changed[operator] += 1
                case StopInstance(instance=instance):
                    changed[self.running.pop(instance).operator] -= 1
                case LeaseHost():
                    raise AssertionError("a fixed cluster has no more hosts")
        self.now_s += self.henge.interval_s
        return changed

    def until(self, end_s: float) -> list[tuple[float, Counter[str]]]:
        """Every round before ``end_s``; returns when which instances came and went."""
        acted = []
        while self.now_s < end_s:
            now_s, changed = self.now_s, self.round()
            if changed:
                acted.append((now_s, changed))
        return acted

    def _sample(self, name: str) -> OperatorSample:
        items = {"arrived_items": 1, "completed_items": 1}
        return structs.replace(a_sample(name, 0, ()), **items, capacity=self.capacity[name])

    def _tenants(self) -> dict[str, TenantSample]:
        return {
            job: TenantSample(tenant=job, latency_ms=ms, tail_latency_ms=2 * ms, juice=1.0)
            for job, ms in self.latency_ms.items()
            if job in self.joined - self.unread
        }
