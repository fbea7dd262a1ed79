"""The cluster of a replay: instances and hosts as a controller's decisions leave them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from include.model.decision import (
    Decision,
    LeaseHost,
    MigrateInstance,
    ProlongLease,
    ReleaseHost,
    StartInstance,
    StopInstance,
)
from include.model.observation import HostSample, InstanceSample

OPERATOR = "job"


@dataclass(slots=True)
class _Instance:
    host: str
    started_s: float
    ready_s: float
    stops_s: float = math.inf


@dataclass(slots=True)
class ReplayLease:
    """A host from its order to its end (seconds); infinite while it is held."""

    ordered_s: float
    paid_until_s: float
    ends_s: float = math.inf
    releasing: bool = False


@dataclass(slots=True)
class ReplayCluster:
    """Changes take effect ``takes_s`` after they were decided; new hosts are up at once, as the
    time to boot is part of it."""

    flavor: str
    btu_s: float
    takes_s: float
    max_hosts: int
    max_instances: int
    instances: dict[str, _Instance] = field(default_factory=dict)
    leases: dict[str, ReplayLease] = field(default_factory=dict)
    numbers: int = 0

    def apply(self, decision: Decision, now_s: float) -> None:
        """Carry out what can be; hosts and instances beyond the most are left out."""
        real: dict[str, str] = {}
        for action in decision.actions:
            if isinstance(action, LeaseHost):
                if len(self.held()) < self.max_hosts:
                    real[action.handle] = self._lease(now_s)
            elif isinstance(action, StartInstance):
                self._start(real.get(action.host, action.host), now_s)
            elif isinstance(action, StopInstance):
                self._stop(action.instance, now_s)
            elif isinstance(action, MigrateInstance):
                self._migrate(action, real.get(action.host, action.host), now_s)
            elif isinstance(action, ProlongLease):
                self.leases[action.host].paid_until_s += self.btu_s
            elif isinstance(action, ReleaseHost):
                self.leases[action.host].releasing = True

    def _lease(self, now_s: float) -> str:
        self.numbers += 1
        name = f"host-{self.numbers}"
        self.leases[name] = ReplayLease(now_s, now_s + self.btu_s)
        return name

    def _migrate(self, action: MigrateInstance, host: str, now_s: float) -> None:
        """The instance stops when its copy works: all migrations overlap.

        Where no copy can start, only one that asked for it goes on.
        """
        one = self.instances[action.instance]
        stops_s = one.stops_s
        self._stop(action.instance, now_s)  # first: the copy takes its place
        if not self._start(host, now_s) and action.overlaps:
            one.stops_s = stops_s

    def _start(self, host: str, now_s: float) -> bool:
        """Whether there is room for one."""
        lasting = sum(math.isinf(one.stops_s) for one in self.instances.values())
        if host not in self.held() or lasting >= self.max_instances:
            return False
        self.numbers += 1
        ready_s = now_s + self.takes_s
        self.instances[f"{OPERATOR}-{self.numbers}"] = _Instance(host, now_s, ready_s)
        return True

    def _stop(self, name: str, now_s: float) -> None:
        self.instances[name].stops_s = min(self.instances[name].stops_s, now_s + self.takes_s)

    def held(self) -> dict[str, ReplayLease]:
        """Hosts that are paid for."""
        return {name: one for name, one in self.leases.items() if math.isinf(one.ends_s)}

    def settle(self, now_s: float) -> None:
        """What has stopped is gone, released hosts end when they are empty, leases go on."""
        self.instances = {n: one for n, one in self.instances.items() if one.stops_s > now_s}
        used = {one.host for one in self.instances.values()}
        for name, lease in self.held().items():
            if lease.releasing and name not in used:
                lease.ends_s = now_s
            while math.isinf(lease.ends_s) and lease.paid_until_s <= now_s:
                lease.paid_until_s += self.btu_s

    def running(self, now_s: float) -> int:
        """Instances that work."""
        return sum(one.ready_s <= now_s for one in self.instances.values())

    def hosts_seen(self) -> dict[str, HostSample]:
        """Hosts as a controller sees them."""
        return {
            name: HostSample(
                host=name,
                flavor=self.flavor,
                ordered_s=one.ordered_s,
                paid_until_s=one.paid_until_s,
                up=True,
                releasing=one.releasing,
                images=frozenset(),
            )
            for name, one in self.held().items()
        }

    def instances_seen(
        self, now_s: float, cpu_share: float | None, readable_since_s: float
    ) -> dict[str, InstanceSample]:
        """Instances as a controller sees them: ready once the reading covers them wholly.

        So does the HPA (kubernetes, replica_calculator.go, ``groupPods``): it passes over metrics
        that are older than a window after the pod became ready.
        """
        return {
            name: InstanceSample(
                instance=name,
                operator=OPERATOR,
                host=one.host,
                started_s=one.started_s,
                ready=one.ready_s <= readable_since_s,
                stopping=not math.isinf(one.stops_s),
                cpu_share=cpu_share if one.ready_s <= now_s else None,
            )
            for name, one in self.instances.items()
        }
