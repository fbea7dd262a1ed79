"""What each action does to a cluster: the one place that says so, on paper and without delays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import inf

from msgspec import structs

from include.model.decision import (
    Action,
    LeaseHost,
    MigrateInstance,
    ProlongLease,
    ReleaseHost,
    StartInstance,
    StopInstance,
)
from include.model.host import Capacity, HostFlavor, btus_to_pay
from include.model.observation import HostSample, InstanceSample, Observation
from include.model.topology import Topology

ROUNDING = 1e-6
"""Sums of reserved cores and megabytes may miss a full host by this much."""


@dataclass(slots=True, kw_only=True)
class PlannedCluster:
    """An observed cluster after the actions that were applied to it, one after the other.

    A stopped instance gives its room back at once, one that serves until its copy is ready does
    not. A host that is given back counts as leased until it is gone. What a decision starts or
    leases, it cannot stop, move or give back itself.
    """

    observed: Observation
    topology: Topology
    flavor: HostFlavor
    max_hosts: int
    btu_s: float
    hosts: dict[str, HostSample] = field(init=False)
    """Observed hosts that take instances."""
    ordered: dict[str, HostSample] = field(init=False, default_factory=dict)
    """Hosts that were leased, by their handle."""
    instances: dict[str, InstanceSample] = field(init=False)
    """Observed instances that nothing has stopped."""
    started: dict[str, InstanceSample] = field(init=False, default_factory=dict)
    left: dict[str, Capacity] = field(init=False)
    """Free capacity by host; leased hosts by their handle."""
    serving: Counter[str] = field(init=False)
    """Instances by operator, with those that were started."""
    on_host: Counter[str] = field(init=False)
    numbers: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.hosts = {
            name: host for name, host in self.observed.hosts.items() if not host.releasing
        }
        self.instances = {
            n: instance for n, instance in self.observed.instances.items() if not instance.stopping
        }
        self.left = dict.fromkeys(self.hosts, self._capacity)
        self.serving = Counter(instance.operator for instance in self.instances.values())
        self.on_host = Counter(instance.host for instance in self.instances.values())
        for instance in self.observed.instances.values():
            if instance.host in self.left:
                self.left[instance.host] = self.left[instance.host].less(
                    self.topology.operator[instance.operator]
                )

    @property
    def _capacity(self) -> Capacity:
        """Capacity of an empty host. With a shared CPU only memory limits placement."""
        capacity = self.flavor.capacity
        return replace(capacity, cpu_cores=inf) if self.flavor.cpu_shared else capacity

    def apply(self, action: Action) -> str:
        """Why the action cannot be done, or "" and it is done."""
        match action:
            case LeaseHost():
                refusals = self._lease(action)
            case StartInstance():
                refusals = self._start(action.operator, action.host)
            case StopInstance():
                refusals = self._stop(action.instance, last_may_go=False)
            case MigrateInstance():
                refusals = self._migrate(action)
            case ProlongLease():
                refusals = self._prolong(action.host)
            case ReleaseHost():
                refusals = self._release(action.host)
        return next(refusals, "")

    def after(self, later_s: float) -> Observation:
        """The planned cluster ``later_s`` seconds later, if nothing else happens."""
        leaving = {name: host for name, host in self.observed.hosts.items() if host.releasing}
        stopping = {
            name: instance
            for name, instance in self.observed.instances.items()
            if instance.stopping
        }
        new = {host.host: host for host in self.ordered.values()}
        return Observation(
            now_s=self.observed.now_s + later_s,
            operators=self.observed.operators,
            hosts={**leaving, **self.hosts, **new},
            instances={**stopping, **self.instances, **self.started},
        )

    def _lease(self, action: LeaseHost) -> Iterator[str]:
        if action.flavor != self.flavor.name:
            yield f"the run leases flavor {self.flavor.name}, not {action.flavor}"
        elif len(self.observed.hosts) + len(self.ordered) >= self.max_hosts:
            yield f"all {self.max_hosts} hosts of the run are leased"
        elif action.handle in self.left:
            yield f"the handle {action.handle} is taken"
        else:
            now_s = self.observed.now_s
            self.ordered[action.handle] = HostSample(
                host=self._new("h"),
                flavor=action.flavor,
                ordered_s=now_s,
                paid_until_s=now_s + self.btu_s,
                up=True,
                releasing=False,
                images=frozenset(),
            )
            self.left[action.handle] = self._capacity

    def _prolong(self, host: str) -> Iterator[str]:
        if host in self.hosts:
            paid_until_s = self.hosts[host].paid_until_s
            paid_until_s += self.btu_s * btus_to_pay(paid_until_s, self.observed.now_s, self.btu_s)
            self.hosts[host] = structs.replace(self.hosts[host], paid_until_s=paid_until_s)
        else:
            yield f"there is no lease of {host} to prolong"

    def _release(self, host: str) -> Iterator[str]:
        if host not in self.hosts:
            yield f"there is no lease of {host} to end"
        elif self.on_host[host]:
            yield f"instances still run on {host}; stop or migrate them first"
        else:
            del self.hosts[host], self.left[host]

    def _migrate(self, action: MigrateInstance) -> Iterator[str]:
        instance = self.instances.get(action.instance)
        if instance is None:
            yield f"there is no running instance {action.instance}"
        elif instance.host == action.host:
            yield f"{action.instance} is on {action.host} already"
        elif action.overlaps and action.serves_s:
            yield f"{action.instance} serves until its copy is ready; leave serves_s at 0"
        else:
            yield from self._start(instance.operator, action.host)
            yield from self._stop(action.instance, last_may_go=True, frees=not action.overlaps)

    def _start(self, operator: str, host: str) -> Iterator[str]:
        op = self.topology.operator.get(operator)
        if op is None:
            yield f"the topology has no operator {operator}"
        elif host not in self.left:
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
            name, where = self._new("i"), self.ordered.get(host)
            self.started[name] = InstanceSample(
                instance=name,
                operator=operator,
                host=where.host if where else host,
                started_s=self.observed.now_s,
                ready=True,
                stopping=False,
            )

    def _stop(self, name: str, *, last_may_go: bool, frees: bool = True) -> Iterator[str]:
        instance = self.instances.get(name)
        if instance is None:
            yield f"there is no running instance {name}"
        elif not last_may_go and self.serving[instance.operator] <= 1:
            yield f"{name} is the last instance of {instance.operator}"
        else:
            del self.instances[name]
            self.serving[instance.operator] -= 1
            self.on_host[instance.host] -= 1
            if frees and instance.host in self.left:
                self.left[instance.host] = self.left[instance.host].more(
                    self.topology.operator[instance.operator]
                )

    def _new(self, kind: str) -> str:
        self.numbers += 1
        return f"{kind}{self.observed.now_s:.0f}-{self.numbers}"


@dataclass(frozen=True, slots=True)
class Changes:
    """By how much actions change the instances of each operator, and the hosts."""

    instances: Counter[str]
    leases: int
    releases: int

    @classmethod
    def from_actions(cls, actions: Iterable[Action], observation: Observation) -> Changes:
        """Sum the changes of all actions, as if all were carried out."""
        instances, leases, releases = Counter[str](), 0, 0
        for action in actions:
            match action:
                case StartInstance():
                    instances[action.operator] += 1
                case StopInstance():
                    instances[operator_of(action, observation)] -= 1
                case LeaseHost():
                    leases += 1
                case ReleaseHost():
                    releases += 1
        return cls(instances, leases, releases)


def operator_of(action: Action, observation: Observation) -> str:
    """The operator of the action's instance; "" for hosts and unobserved instances."""
    match action:
        case StartInstance():
            return action.operator
        case StopInstance() | MigrateInstance():
            instance = observation.instances.get(action.instance)
            return instance.operator if instance else ""
        case _:
            return ""
