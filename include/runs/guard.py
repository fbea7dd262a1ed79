"""Refuse what cannot be done, and say why: a pure check between controller and testbed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import inf

from include.controllers.base import Setting
from include.model.decision import (
    Decision,
    LeaseHost,
    MigrateInstance,
    ProlongLease,
    Reasoned,
    ReleaseHost,
    StartInstance,
    StopInstance,
)
from include.model.host import Capacity
from include.model.observation import HostSample, InstanceSample, Observation

ROUNDING = 1e-6
"""Sums of reserved cores and megabytes may miss a full host by this much."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One step, and why it is refused ("" when it is not)."""

    step: Reasoned
    refusal: str


def check(decision: Decision, seen: Observation, setting: Setting) -> list[Checked]:
    """Every step of a decision with its refusal, as if those before it were carried out."""
    cluster = _Cluster(seen, setting)
    return [Checked(step, cluster.refusal(step)) for step in decision.steps]


@dataclass(slots=True)
class _Cluster:
    """What is left after the steps so far. A stopped instance gives its room back at once, one that
    serves until its copy is ready does not.
    """

    seen: Observation
    setting: Setting
    hosts: dict[str, HostSample | None] = field(init=False)
    instances: dict[str, InstanceSample] = field(init=False)
    left: dict[str, Capacity] = field(init=False)
    serving: Counter[str] = field(init=False)
    """Running instances by operator, with those that were started."""
    on_host: Counter[str] = field(init=False)

    def __post_init__(self) -> None:
        self.hosts = {name: host for name, host in self.seen.hosts.items() if not host.releasing}
        self.instances = {n: one for n, one in self.seen.instances.items() if not one.stopping}
        self.left = dict.fromkeys(self.hosts, self._capacity)
        self.serving = Counter(one.operator for one in self.instances.values())
        self.on_host = Counter(one.host for one in self.instances.values())
        for one in self.seen.instances.values():
            if one.host in self.left:
                op = self.setting.topology.operator[one.operator]
                self.left[one.host] = self.left[one.host].less(op)

    @property
    def _capacity(self) -> Capacity:
        """Of an empty host; where instances share the CPU it is memory that ends."""
        capacity = self.setting.flavor.capacity
        return replace(capacity, cpu_cores=inf) if self.setting.flavor.cpu_shared else capacity

    def refusal(self, step: Reasoned) -> str:
        """Why the step cannot be done, or "" and it counts as done."""
        match step.action:
            case LeaseHost():
                found = self._lease(step.action)
            case StartInstance():
                found = self._start(step.action.operator, step.action.host)
            case StopInstance():
                found = self._stop(step.action.instance, last_may_go=False)
            case MigrateInstance():
                found = self._migrate(step.action)
            case ProlongLease():
                found = self._leased(step.action.host, "prolong")
            case ReleaseHost():
                found = self._release(step.action.host)
        return next(found, "")

    def _lease(self, action: LeaseHost) -> Iterator[str]:
        flavor = self.setting.flavor.name
        if action.flavor != flavor:
            yield f"the run leases flavor {flavor}, not {action.flavor}"
        elif len(self.hosts) >= self.setting.max_hosts:
            yield f"all {self.setting.max_hosts} hosts of the run are leased"
        elif action.handle in self.hosts:
            yield f"the handle {action.handle} is taken"
        else:
            self.hosts[action.handle], self.left[action.handle] = None, self._capacity

    def _leased(self, host: str, verb: str) -> Iterator[str]:
        if self.hosts.get(host) is None:
            yield f"there is no lease of {host} to {verb}"

    def _release(self, host: str) -> Iterator[str]:
        yield from self._leased(host, "end")
        if self.on_host[host]:
            yield f"instances still run on {host}; stop or migrate them first"
        else:
            del self.hosts[host], self.left[host]

    def _migrate(self, action: MigrateInstance) -> Iterator[str]:
        one = self.instances.get(action.instance)
        if one is None:
            yield f"there is no running instance {action.instance}"
        elif one.host == action.host:
            yield f"{action.instance} is on {action.host} already"
        elif action.overlaps and action.serves_s:
            yield f"{action.instance} serves until its copy is ready; leave serves_s at 0"
        else:
            yield from self._start(one.operator, action.host)
            yield from self._stop(action.instance, last_may_go=True, frees=not action.overlaps)

    def _start(self, operator: str, host: str) -> Iterator[str]:
        op = self.setting.topology.operator.get(operator)
        if op is None:
            yield f"the topology has no operator {operator}"
        elif host not in self.hosts:
            yield f"{host} is not a leased host that takes instances"
        elif self.left[host].instances_of(op) < 1 - ROUNDING:
            left = self.left[host]
            yield (
                f"{host} has no room for {operator}: {left.cpu_cores:.2f} cores and "
                f"{left.memory_mb:.0f} MB left"
            )
        else:
            self.left[host] = self.left[host].less(op)
            self.serving[operator] += 1
            self.on_host[host] += 1

    def _stop(self, instance: str, *, last_may_go: bool, frees: bool = True) -> Iterator[str]:
        one = self.instances.get(instance)
        if one is None:
            yield f"there is no running instance {instance}"
            return
        if not last_may_go and self.serving[one.operator] <= 1:
            yield f"{instance} is the last instance of {one.operator}"
            return
        del self.instances[instance]
        self.serving[one.operator] -= 1
        self.on_host[one.host] -= 1
        if frees and one.host in self.left:
            op = self.setting.topology.operator[one.operator]
            self.left[one.host] = self.left[one.host].more(op)
