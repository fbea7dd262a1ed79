"""The cluster of a replay: a testbed's bookkeeping, with changes that take effect later."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from include.model.decision import Decision, LeaseHost, MigrateInstance
from include.model.errors import TestbedError
from include.model.observation import HostSample, InstanceSample
from include.testbeds.actions import carry_out
from include.testbeds.fleet import Fleet, FleetHost, FleetInstance
from include.workloads.recordings.recording import FloatArray

OPERATOR = "job"


@dataclass(slots=True)
class ReplayLease:
    """A host from its order to its end (seconds); infinite while it is held."""

    ordered_s: float
    paid_until_s: float
    ends_s: float = math.inf


def leases_of(hosts: FloatArray, step_s: float) -> list[ReplayLease]:
    """Leases that give so many hosts in every step."""
    held, ended = list[ReplayLease](), list[ReplayLease]()
    for step, count in enumerate(hosts.tolist()):
        while len(held) < count:
            held.append(ReplayLease(step * step_s, step * step_s))
        while len(held) > count:
            lease = held.pop()
            lease.ends_s = step * step_s
            ended.append(lease)
    for lease in held:
        lease.ends_s = hosts.size * step_s
    return [*ended, *held]


@dataclass(slots=True, kw_only=True)
class ReplayHost(FleetHost):
    """A host with its lease."""

    lease: ReplayLease

    @property
    def ended(self) -> bool:
        return not math.isinf(self.lease.ends_s)


@dataclass(slots=True, kw_only=True)
class ReplayInstance(FleetInstance):
    """An instance that works from ``ready_s`` to ``stops_s``."""

    started_s: float
    ready_s: float
    stops_s: float = math.inf

    @property
    def stopping(self) -> bool:
        return not math.isinf(self.stops_s)


@dataclass(slots=True)
class ReplayCluster:
    """Changes take effect ``takes_s`` after they were decided; new hosts are up at once, as the
    time to boot is part of it. Hosts and instances have numbers of one series."""

    flavor: str
    btu_s: float
    takes_s: float
    max_hosts: int
    max_instances: int
    fleet: Fleet[ReplayHost, ReplayInstance] = field(default_factory=Fleet)
    now_s: float = 0.0
    operator_names: tuple[str, ...] = (OPERATOR,)

    def apply(self, decision: Decision, now_s: float) -> None:
        """Carry out what can be; hosts and instances beyond the most are left out."""
        self.now_s = now_s
        carry_out(decision, self)

    def lease(self, action: LeaseHost) -> ReplayHost:
        if len(self.fleet.leased()) >= self.max_hosts:
            raise TestbedError(f"all {self.max_hosts} hosts are leased")
        lease = ReplayLease(self.now_s, self.now_s + self.btu_s)
        host = ReplayHost(number=self._next_number(), flavor=action.flavor, lease=lease)
        self.fleet.hosts[host.number] = host
        self.fleet.hosts_leased += 1
        return host

    def start(self, operator: str, host: ReplayHost) -> ReplayInstance:
        lasting = sum(not instance.stopping for instance in self.fleet.instances.values())
        if lasting >= self.max_instances:
            raise TestbedError(f"all {self.max_instances} instances are started")
        instance = ReplayInstance(
            number=self._next_number(),
            operator=operator,
            host=host.number,
            started_s=self.now_s,
            ready_s=self.now_s + self.takes_s,
        )
        self.fleet.instances[instance.number] = instance
        self.fleet.instances_started += 1
        return instance

    def stop(self, instance: ReplayInstance, serves_s: float) -> None:
        instance.stops_s = self.now_s + self.takes_s

    def migrate(
        self, instance: ReplayInstance, host: ReplayHost, action: MigrateInstance
    ) -> ReplayInstance:
        """The instance stops when its copy works: all migrations overlap."""
        self.stop(instance, action.serves_s)  # first: the copy takes its place
        return self.start(instance.operator, host)

    def prolong(self, host: ReplayHost) -> None:
        host.lease.paid_until_s += self.btu_s

    def release(self, host: ReplayHost) -> None:
        host.releasing = True

    def _next_number(self) -> int:
        return self.fleet.hosts_leased + self.fleet.instances_started + 1

    @property
    def leases(self) -> list[ReplayLease]:
        """All leases, ended ones too, in the order of the hosts."""
        return [host.lease for host in self.fleet.hosts.values()]

    def settle(self, now_s: float) -> None:
        """What has stopped is gone, released hosts end when they are empty, leases go on."""
        instances = self.fleet.instances
        for number in [n for n, instance in instances.items() if instance.stops_s <= now_s]:
            del instances[number]
        used = {instance.host for instance in instances.values()}
        for host in self.fleet.leased():
            if host.releasing and host.number not in used:
                host.lease.ends_s = now_s
            while not host.ended and host.lease.paid_until_s <= now_s:
                host.lease.paid_until_s += self.btu_s

    def running(self, now_s: float) -> int:
        """Instances that work."""
        return sum(instance.ready_s <= now_s for instance in self.fleet.instances.values())

    def host_samples(self) -> dict[str, HostSample]:
        return {
            host.name: HostSample(
                host=host.name,
                flavor=self.flavor,
                ordered_s=host.lease.ordered_s,
                paid_until_s=host.lease.paid_until_s,
                up=True,
                releasing=host.releasing,
                images=frozenset(),
            )
            for host in self.fleet.leased()
        }

    def instance_samples(
        self, now_s: float, cpu_share: float | None, readable_since_s: float
    ) -> dict[str, InstanceSample]:
        """An instance is ready once the reading covers it wholly.

        So does the HPA (kubernetes, replica_calculator.go, ``groupPods``): it passes over metrics
        that are older than a window after the pod became ready.
        """
        return {
            instance.name: InstanceSample(
                instance=instance.name,
                operator=instance.operator,
                host=self.fleet.hosts[instance.host].name,
                started_s=instance.started_s,
                ready=instance.ready_s <= readable_since_s,
                stopping=instance.stopping,
                cpu_share=cpu_share if instance.ready_s <= now_s else None,
            )
            for instance in self.fleet.instances.values()
        }
