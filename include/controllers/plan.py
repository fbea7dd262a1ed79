"""The working copy of the cluster that one decision plans on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass

from include.controllers.base import Setting
from include.controllers.placement import Room
from include.model.decision import (
    Action,
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
from include.model.topology import Operator

VERBS: dict[type[Action], str] = {
    StartInstance: "start",
    StopInstance: "stop",
    MigrateInstance: "migrate",
    LeaseHost: "lease",
    ProlongLease: "prolong",
    ReleaseHost: "release",
}


@dataclass(frozen=True, slots=True)
class NoMemory:
    """The memory of a controller that needs none."""


class Plan:
    """The cluster as it will be once the steps decided so far are done.

    Made from an observation at the start of one ``decide`` and gone at its end. Every verb
    appends its step and keeps the copy true, so a later step cannot use the same room twice.
    Hosts, and instances of an operator, are in the order of their lease and start.
    """

    def __init__(self, setting: Setting, seen: Observation) -> None:
        """Copy what the monitor saw. Every host of a run has the flavor of the setting."""
        self.now_s = seen.now_s
        self.started: Counter[str] = Counter()
        self.stopped: Counter[str] = Counter()
        self._moved: Counter[str] = Counter()
        self._setting = setting
        self._steps: list[Reasoned] = []
        self._given: set[str] = set()
        self._serving: dict[str, dict[str, InstanceSample]] = {
            name: {} for name in setting.topology.operator_names
        }
        self._on_host: dict[str, dict[str, InstanceSample]] = {}
        self._latest_order_s = max((host.ordered_s for host in seen.hosts.values()), default=None)
        self.hosts = sorted(
            (host for host in seen.hosts.values() if not host.releasing), key=_by_lease
        )
        used = self._take_in(seen)
        self.rooms = {host.host: self._room(host, used) for host in self.hosts}
        self._occupied = set(used)

    def _take_in(self, seen: Observation) -> dict[str, Capacity]:
        """Sort in the instances and add up what they hold per host, stopping ones included."""
        cpu_cores: dict[str, float] = {}
        memory_mb: dict[str, float] = {}
        for one in sorted(seen.instances.values(), key=_by_start):
            op = self.operator(one.operator)
            cpu_cores[one.host] = cpu_cores.get(one.host, 0.0) + op.cpu_cores
            memory_mb[one.host] = memory_mb.get(one.host, 0.0) + op.memory_mb
            if not one.stopping:
                self._serving[one.operator][one.instance] = one
                self._on_host.setdefault(one.host, {})[one.instance] = one
        return {host: Capacity(cpu_cores[host], memory_mb[host]) for host in cpu_cores}

    def _room(self, host: HostSample, used: dict[str, Capacity]) -> Room:
        total = self._setting.flavor.capacity
        left = total
        if host.host in used:
            held = used[host.host]
            left = Capacity(total.cpu_cores - held.cpu_cores, total.memory_mb - held.memory_mb)
        return Room(host.host, total, left, host.images, host.up)

    def copy(self) -> Plan:
        """A copy to try steps on: nothing that is decided there is decided here."""
        other = copy(self)
        for name in ("started", "stopped", "_moved", "_steps", "_given", "hosts", "rooms"):
            setattr(other, name, copy(getattr(self, name)))
        other._serving = {name: dict(held) for name, held in self._serving.items()}
        other._on_host = {name: dict(held) for name, held in self._on_host.items()}
        return other

    def operator(self, name: str) -> Operator:
        """An operator of the topology."""
        return self._setting.topology.operator[name]

    def fits_an_empty_host(self, op: Operator) -> bool:
        """Whether leasing a host would help the operator, and there is one to lease."""
        return len(self.rooms) < self._setting.max_hosts and self._setting.flavor.capacity.fits(op)

    def count(self, operator: str) -> int:
        """o_#: instances that run or start, with what this plan starts, moves and stops."""
        return len(self._serving[operator]) + self.started[operator] + self._moved[operator]

    def serving(self, operator: str) -> tuple[InstanceSample, ...]:
        """Instances of the operator that this plan can still stop or move."""
        return tuple(self._serving[operator].values())

    def on_host(self, host: str) -> tuple[InstanceSample, ...]:
        """Instances on the host that this plan can still stop or move."""
        return tuple(self._on_host.get(host, {}).values())

    def may_stop(self, instance: InstanceSample, already: Iterable[str] = ()) -> bool:
        """Whether another instance of its operator stays, and a ready one if this one is.

        ``already`` are instances that the same thought has stopped but the plan has not.
        Instances that this plan starts or moves do not count: they take a while to be ready.
        """
        gone = {instance.instance, *already}
        stay = [one for name, one in self._serving[instance.operator].items() if name not in gone]
        return any(one.ready or not instance.ready for one in stay)

    def is_given_work(self, host: str) -> bool:
        """Whether this plan has put an instance on the host."""
        return host in self._given

    def is_empty(self, host: str) -> bool:
        """Whether nothing runs, starts, stops or was put on the host."""
        return host not in self._occupied and host not in self._given

    def last_order_was_within(self, seconds: float) -> bool:
        """Whether a host was ordered that recently, or by this plan."""
        if any(isinstance(step.action, LeaseHost) for step in self._steps):
            return True
        return self._latest_order_s is not None and self.now_s - self._latest_order_s < seconds

    def start(self, operator: str, host: str, because: str) -> None:
        """Start an instance on a host that has room."""
        self._add(StartInstance(operator, host), because)
        self._settle(operator, host)
        self.started[operator] += 1

    def stop(self, instance: InstanceSample, because: str) -> None:
        """Stop an instance. Its place can be given away at once: the testbed starts what this
        decision puts there when the old instance has drained.
        """
        self._add(StopInstance(instance.instance), because)
        self._forget(instance)
        self.stopped[instance.operator] += 1
        if instance.host in self.rooms:
            op = self.operator(instance.operator)
            self.rooms[instance.host] = self.rooms[instance.host].without_one(op)

    def migrate(self, instance: InstanceSample, host: str, because: str) -> None:
        """Move an instance. Its old place stays taken: only stopped ones leave theirs at once."""
        self._add(MigrateInstance(instance.instance, host), because)
        self._forget(instance)
        self._settle(instance.operator, host)
        self._moved[instance.operator] += 1

    def lease(self, because: str) -> str:
        """Order a host and return the handle that names it within this decision."""
        flavor = self._setting.flavor
        orders = sum(isinstance(step.action, LeaseHost) for step in self._steps)
        handle = f"new-{orders + 1}"
        self._add(LeaseHost(flavor.name, handle), because)
        empty = flavor.capacity
        self.rooms[handle] = Room(handle, empty, empty, frozenset(), up=False)
        return handle

    def prolong(self, host: HostSample, because: str) -> None:
        """Pay for one more BTU."""
        self._add(ProlongLease(host.host), because)
        self.hosts.remove(host)

    def release(self, host: HostSample, because: str) -> None:
        """Give the host back; it takes no more instances."""
        self._add(ReleaseHost(host.host), because)
        self.hosts.remove(host)
        del self.rooms[host.host]

    def keep_leases(self, interval_s: float) -> None:
        """Prolong every lease that nobody decided on and that ends within ``interval_s``.

        With the interval of the controller none runs out before its next tick; with 0 leases
        are prolonged once they have ended, as a cloud does that bills what goes on.
        """
        for host in list(self.hosts):
            left_s = host.paid_until_s - self.now_s
            if left_s <= interval_s:
                self.prolong(host, f"{host.host} is kept: its BTU ends in {left_s:.0f} s")

    def decision(self, waiting: str) -> Decision:
        """The steps and a summary of them, or ``waiting`` when there are none."""
        if not self._steps:
            return Decision((), waiting)
        counts = Counter(VERBS[type(step.action)] for step in self._steps)
        summary = ", ".join(f"{verb} {counts[verb]}" for verb in VERBS.values() if verb in counts)
        return Decision(tuple(self._steps), f"{summary}; {self._steps[0].because}")

    def _add(self, action: Action, because: str) -> None:
        self._steps.append(Reasoned(action, because))

    def _settle(self, operator: str, host: str) -> None:
        self.rooms[host] = self.rooms[host].with_one(self.operator(operator))
        self._given.add(host)

    def _forget(self, instance: InstanceSample) -> None:
        del self._serving[instance.operator][instance.instance]
        self._on_host[instance.host].pop(instance.instance)


def _by_lease(host: HostSample) -> tuple[float, int, str]:
    """Length before text: h2 comes before h10."""
    return (host.ordered_s, len(host.host), host.host)


def _by_start(one: InstanceSample) -> tuple[float, int, str]:
    return (one.started_s, len(one.instance), one.instance)
