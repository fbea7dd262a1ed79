"""The working copy of the cluster that one decision plans on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from include.controllers.base import Setting
from include.controllers.placement import FreeCapacities, FreeCapacity
from include.model.decision import (
    ACTION_NAMES,
    Action,
    Decision,
    LeaseHost,
    MigrateInstance,
    ProlongLease,
    Reason,
    Reasoned,
    ReleaseHost,
    StartInstance,
    StopInstance,
    Why,
)
from include.model.host import Capacity
from include.model.observation import HostSample, InstanceSample, Observation
from include.model.topology import Operator

VERBS = {kind: name.partition("_")[0] for kind, name in ACTION_NAMES.items()}


@dataclass(frozen=True, slots=True)
class NoMemory:
    """The memory of a controller that needs none."""


class Plan:
    """The cluster as it will be once the steps decided so far are done.

    Made from an observation at the start of one ``decide`` and gone at its end. Every verb
    appends its step and keeps the copy true, so a later step cannot use the same room twice.
    Hosts, and instances of an operator, are in the order of their lease and start.
    """

    def __init__(self, setting: Setting, observation: Observation) -> None:
        """Copy the observation. Every host of a run has the flavor of the setting."""
        self.now_s = observation.now_s
        self.started: set[str] = set()
        """Operators that this plan starts an instance of."""
        self.moves = Counter[str]()
        """Instances that this plan migrates, by operator."""
        self._setting = setting
        self._observation = observation
        self._steps: list[Reasoned] = []
        self._orders = 0
        self._assigned: set[str] = set()
        self._gone: set[str] = set()
        # Sorted lazily: most groups are never read.
        self._serving: dict[str, tuple[InstanceSample, ...]] = {}
        self._on_host: dict[str, tuple[InstanceSample, ...]] = {}
        self._place = MappingProxyType(
            {name: i for i, name in enumerate(setting.topology.operator_names)}
        )
        self.counts = np.array(
            [len(observation.serving(name)) for name in self._place], dtype=np.int64
        )
        """Instances of every operator, in the order of the topology, as this plan leaves them."""
        self.scalings = np.zeros_like(self.counts)
        """Starts and stops of this plan per operator."""
        self._latest_order_s = max(
            (host.ordered_s for host in observation.hosts.values()), default=None
        )
        open_hosts = (host for host in observation.hosts.values() if not host.releasing)
        self._hosts = {host.host: host for host in sorted(open_hosts, key=_by_lease)}
        self.free = self._free_capacities()

    def _free_capacities(self) -> FreeCapacities:
        """Capacity of every host minus all its instances, including those that stop."""
        held = [self._observation.holding(host) for host in self._hosts]
        at = np.repeat(np.arange(len(held)), np.array([len(group) for group in held], np.int64))
        row = np.array([self._place[each.operator] for group in held for each in group], np.int64)
        needs = np.array([(op.cpu_cores, op.memory_mb) for op in map(self.operator, self._place)])
        cpu_cores, memory_mb = (np.bincount(at, need[row], len(held)) for need in needs.T)
        total = self._setting.flavor.capacity
        all_of = np.ones(len(held))
        numbers = (
            total.cpu_cores * all_of,
            total.memory_mb * all_of,
            total.cpu_cores - cpu_cores,
            total.memory_mb - memory_mb,
            [host.up for host in self._hosts.values()],
        )
        images = {host.host: host.images for host in self._hosts.values()}
        return FreeCapacities(images, np.array(numbers, dtype=np.float64))

    def copy(self) -> Plan:
        """A copy to try steps on; :meth:`adopt` takes them over."""
        other = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, dict | list | set | FreeCapacities | np.ndarray):
                setattr(other, name, value.copy())
        return other

    def adopt(self, tried: Plan) -> None:
        """Take over the steps tried on a copy."""
        vars(self).update(vars(tried))

    @property
    def order_of_lease(self) -> Mapping[str, int]:
        """Position of every host in the order of the leases."""
        return self.free.place

    @property
    def operator_names(self) -> tuple[str, ...]:
        return tuple(self._place)

    @property
    def hosts(self) -> list[HostSample]:
        """Hosts without a decision of this plan, in the order of their lease."""
        return list(self._hosts.values())

    def operator(self, name: str) -> Operator:
        return self._setting.topology.operator[name]

    def free_without_stopping(self, host: str) -> Capacity:
        """Free capacity of a host if its stopping instances took no room."""
        left = self.free[host].left
        for instance in self._observation.holding(host):
            if instance.stopping or instance.instance in self._gone:
                left = left.more(self.operator(instance.operator))
        return left

    @property
    def may_lease(self) -> bool:
        """Whether the limit of the run allows another host; those that leave count, too."""
        return len(self._observation.hosts) + self._orders < self._setting.max_hosts

    def fits_an_empty_host(self, op: Operator) -> bool:
        """Whether another host may be leased and would hold an instance of the operator."""
        return self.may_lease and self._setting.flavor.capacity.fits(op)

    def first_fit(self, op: Operator) -> str | None:
        """The first host with room, or None; where instances share the CPU, the emptiest.

        With a shared CPU a reservation limits nothing: first fit would put every instance on the
        first host and overload it (docs/deviations.md, CROSS-SHARED).
        """
        shared = self._setting.flavor.cpu_shared
        return self.free.emptiest(op) if shared else self.free.first(op)

    def may_have_room(self, *, only_up: bool) -> NDArray[np.bool_]:
        """False for operators without room for an instance, in the order of the topology.

        Quick, and true for some of them; with ``only_up`` hosts that boot do not count.
        """
        most = self.free.most_left(only_up=only_up)
        operators = map(self.operator, self._place)
        return np.array(
            [op.cpu_cores <= most.cpu_cores and op.memory_mb <= most.memory_mb for op in operators]
        )

    def most_suitable(self, op: Operator, *, only_up: bool = False) -> str | None:
        """Algorithm 2's host with room, or None; where instances share the CPU, the emptiest.

        With ``only_up`` hosts that boot do not count.
        """
        if self._setting.flavor.cpu_shared:
            return self.free.emptiest(op, only_up=only_up)
        choice = self.free.best(op, only_up=only_up)
        return choice.host if choice else None

    def count(self, operator: str) -> int:
        """o_#: instances that run or start once this plan is carried out."""
        return int(self.counts[self._place[operator]])

    def scaled(self) -> dict[str, int]:
        """Starts and stops of this plan by operator, without zeros."""
        counts = zip(self._place, self.scalings.tolist(), strict=True)
        return {operator: count for operator, count in counts if count}

    def serving(self, operator: str) -> tuple[InstanceSample, ...]:
        """Instances of the operator that this plan can still stop or move."""
        if operator not in self._serving:
            self._serving[operator] = self._sorted(self._observation.serving(operator))
        return self._serving[operator]

    def counts_on(self, hosts: Collection[str]) -> NDArray[np.int64]:
        """Instances on ``hosts`` that this plan can still stop or move, shape (operators,)."""
        place, gone, holding = self._place, self._gone, self._observation.holding
        # To hash thousands of names takes half of the time, so not where nothing is gone.
        rows = [
            place[instance.operator]
            for host in hosts
            for instance in holding(host)
            if not (instance.stopping or (gone and instance.instance in gone))
        ]
        return np.bincount(np.array(rows, dtype=np.int64), minlength=len(place))

    def on_host(self, host: str) -> tuple[InstanceSample, ...]:
        """Instances on the host that this plan can still stop or move."""
        if host not in self._on_host:
            self._on_host[host] = self._sorted(self._observation.on_host(host))
        return self._on_host[host]

    def was_on_host(self, host: str) -> tuple[InstanceSample, ...]:
        """The same with those that this plan has stopped or moved."""
        return tuple(sorted(self._observation.on_host(host), key=_by_start))

    def steps_of(self, *kinds: type[Action]) -> int:
        """How many steps of these kinds there are so far."""
        return sum(isinstance(step.action, kinds) for step in self._steps)

    def may_stop(self, instance: InstanceSample, already: Iterable[str] = ()) -> bool:
        """Whether its operator keeps another instance, and a ready one if this one is ready.

        ``already``: instances that the caller will also stop. Instances that this plan starts or
        moves do not count, because they are not ready at once.
        """
        gone = {instance.instance, *already}
        # In any order: `serving` would sort thousands, each time that one of them has gone.
        return any(
            (other.ready or not instance.ready)
            and other.instance not in gone
            and other.instance not in self._gone
            for other in self._observation.serving(instance.operator)
        )

    def stoppable(self, operator: str) -> list[InstanceSample]:
        """Instances of the operator that may stop, on hosts that stay, in order of their start."""
        return [
            instance
            for instance in self.serving(operator)
            if instance.host in self.free and self.may_stop(instance)
        ]

    def is_given_work(self, host: str) -> bool:
        """Whether this plan starts or moves an instance onto the host."""
        return host in self._assigned

    def is_empty(self, host: str) -> bool:
        """Whether the host has no instance and gets none from this plan."""
        return not self._observation.holding(host) and host not in self._assigned

    def last_order_was_within(self, seconds: float) -> bool:
        """Whether a host was ordered in the last ``seconds``, or by this plan."""
        if self._orders:
            return True
        return self._latest_order_s is not None and self.now_s - self._latest_order_s < seconds

    def start(self, operator: str, host: str, why: Why) -> None:
        """Start an instance on a host that has room."""
        self._add(StartInstance(operator, host), why)
        self._reserve(operator, host)
        self.started.add(operator)
        self.scalings[self._place[operator]] += 1

    def start_each(
        self,
        operators: Sequence[str],
        why: Callable[[Sequence[int]], Iterable[tuple[str, Reason]]],
        *,
        only_up: bool = False,
    ) -> list[int]:
        """Start an instance of one operator after the other, each on its most suitable host.

        Same steps as :meth:`start` on :meth:`most_suitable` for each, in less time. Returns the
        positions in ``operators`` of the started instances; ``why`` maps these positions to
        sentences and reasons.
        """
        starting = map(self._setting.topology.operator.__getitem__, operators)
        if self._setting.flavor.cpu_shared:
            hosts = [self._reserve_emptiest(op, only_up=only_up) for op in starting]
        else:
            hosts = self.free.reserve_best(starting, only_up=only_up)
        there = [i for i, host in enumerate(hosts) if host is not None]
        names, chosen = [operators[i] for i in there], [host for host in hosts if host is not None]
        self._steps += [
            Reasoned(StartInstance(name, host), sentence, reason)
            for name, host, (sentence, reason) in zip(names, chosen, why(there), strict=True)
        ]
        self._assigned.update(chosen)
        started = Counter(names)
        for name, count in started.items():
            self.counts[self._place[name]] += count
            self.scalings[self._place[name]] += count
        self.started.update(started)
        return there

    def _reserve_emptiest(self, op: Operator, *, only_up: bool) -> str | None:
        host = self.free.emptiest(op, only_up=only_up)
        if host is not None:
            self.free.reserve(host, op)
        return host

    def stop(
        self, instance: InstanceSample, why: Why, *, frees: bool = True, serves_s: float = 0.0
    ) -> None:
        """Stop an instance.

        Its place is free at once (both share the CPU until the old one has ended); with ``frees``
        false only when an observation shows it as empty.
        """
        self._add(StopInstance(instance.instance, serves_s), why)
        self._forget(instance)
        self.scalings[self._place[instance.operator]] += 1
        if frees and instance.host in self.free:
            op = self.operator(instance.operator)
            self.free[instance.host] = self.free[instance.host].without_one(op)

    def migrate(
        self,
        instance: InstanceSample,
        host: str,
        why: Why,
        *,
        serves_s: float = 0.0,
        overlaps: bool = False,
    ) -> None:
        """Move an instance; with ``overlaps`` it serves until its copy is ready.

        Its old place stays taken, unlike that of a stopped instance.
        """
        self._add(MigrateInstance(instance.instance, host, serves_s, overlaps), why)
        self.moves[instance.operator] += 1
        self._forget(instance)
        self._reserve(instance.operator, host)

    def leaves_in_time(self, instance: InstanceSample, host: str) -> bool:
        """Whether the BTU of its host outlasts an instance that serves until its copy is ready.

        ``host`` is up. Delays are means (``Setting.delays``); those that are not known count as 0.
        """
        delays, here = self._setting.delays, self._observation.hosts[instance.host]
        takes_s = (delays.instance_start_s or 0.0) + (delays.drain_s or 0.0)
        if instance.operator not in self.free[host].images:
            takes_s += delays.image_pull_s or 0.0
        return self.now_s + takes_s <= here.paid_until_s

    def lease(self, why: Why) -> str:
        """Order a host and return the handle that names it within this decision."""
        flavor = self._setting.flavor
        self._orders += 1
        handle = f"new-{self._orders}"
        self._add(LeaseHost(flavor.name, handle), why)
        empty = flavor.capacity
        self.free[handle] = FreeCapacity(handle, empty, empty, frozenset(), up=False)
        return handle

    def prolong(self, host: HostSample, why: Why) -> None:
        self._add(ProlongLease(host.host), why)
        del self._hosts[host.host]

    def release(self, host: HostSample, why: Why) -> None:
        """Give the host back; no more instances are placed on it."""
        self._add(ReleaseHost(host.host), why)
        del self._hosts[host.host]
        del self.free[host.host]

    def keep_leases(self, interval_s: float) -> None:
        """Prolong every undecided lease that ends within ``interval_s``.

        With the controller's interval no lease ends before the next tick, unless a BTU is shorter
        than that. With 0 leases are prolonged after they have ended, like a cloud that bills every
        started BTU.
        """
        for host in self.hosts:
            left_s = host.paid_until_s - self.now_s
            if left_s <= interval_s:
                over = f"ended {-left_s:.0f} s ago" if left_s < -0.5 else f"ends in {left_s:.0f} s"
                self.prolong(host, Why(Reason.LEASE_ENDS, f"{host.host} is kept: its BTU {over}"))

    def decision(self, waiting: Why) -> Decision:
        """The steps and their summary, or ``waiting`` if there are none."""
        if not self._steps:
            return Decision((), waiting.sentence, waiting.reason)
        steps = Counter(type(step.action) for step in self._steps)
        summary = ", ".join(f"{verb} {steps[kind]}" for kind, verb in VERBS.items() if steps[kind])
        first = self._steps[0]
        return Decision(tuple(self._steps), f"{summary}; {first.because}", first.reason)

    def _add(self, action: Action, why: Why) -> None:
        self._steps.append(Reasoned(action, why.sentence, why.reason))

    def _reserve(self, operator: str, host: str) -> None:
        self.free.reserve(host, self.operator(operator))
        self.counts[self._place[operator]] += 1
        self._assigned.add(host)

    def _forget(self, instance: InstanceSample) -> None:
        self.counts[self._place[instance.operator]] -= 1
        self._gone.add(instance.instance)
        for held, name in ((self._serving, instance.operator), (self._on_host, instance.host)):
            if name in held:
                held[name] = tuple(other for other in held[name] if other is not instance)

    def _sorted(self, group: Iterable[InstanceSample]) -> tuple[InstanceSample, ...]:
        """Instances by start time, without those already stopped or moved by this plan."""
        return tuple(
            sorted(
                (instance for instance in group if instance.instance not in self._gone),
                key=_by_start,
            )
        )


def _by_lease(host: HostSample) -> tuple[float, int, str]:
    """Length before text: h2 comes before h10."""
    return (host.ordered_s, len(host.host), host.host)


def _by_start(instance: InstanceSample) -> tuple[float, int, str]:
    return (instance.started_s, len(instance.instance), instance.instance)
