"""The hosts that a controller believes in: TaskManagers, and which instances would be where.

Flink says how many subtasks run; which slot they take is its own affair, and nobody may lease a
TaskManager here. So every controller has hosts of its own, on paper, with the leases that it asked
for. Instances are always as many as really run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from include.controllers.base import Setting
from include.model.cluster import ROUNDING, PlannedCluster
from include.model.observation import HostSample, InstanceSample


@dataclass(slots=True)
class PaperHost:
    """Times in seconds of the service."""

    ordered_s: float
    paid_until_s: float


@dataclass(slots=True)
class PaperInstance:
    """Which operator it is of, and on which host."""

    operator: str
    host: str
    started_s: float


@dataclass(slots=True)
class PaperFleet:
    """Hosts and instances by name; plain values, so that state files can have them."""

    hosts: dict[str, PaperHost] = field(default_factory=dict)
    instances: dict[str, PaperInstance] = field(default_factory=dict)
    numbers: int = 0

    def follow(self, counts: Mapping[str, int], setting: Setting, now_s: float) -> None:
        """Have as many instances as run. Leases go on until they are ended.

        One too many goes from the host whose lease ends first, one that is missing comes where the
        lease lasts longest.
        """
        for host in self.hosts.values():
            while host.paid_until_s <= now_s:
                host.paid_until_s += setting.btu_s
        for name, instance in list(self.instances.items()):
            if instance.operator not in counts:
                del self.instances[name]
        for operator, count in counts.items():
            there = [n for n, instance in self.instances.items() if instance.operator == operator]
            there.sort(key=lambda name: -self.hosts[self.instances[name].host].paid_until_s)
            for name in there[count:]:
                del self.instances[name]
            for _ in range(count - len(there)):
                place = next(self._with_room(operator, setting), None)
                self._start(operator, place or self._lease(setting, now_s), now_s)

    def adopt(self, cluster: PlannedCluster) -> None:
        """Have the hosts and instances that a decision leaves; new ones get names of this fleet.

        `follow` has as many instances again as really run, so that a start and a stop are a move.
        """
        names = {host.host: self._new("host") for host in cluster.ordered.values()}
        self.hosts = {
            names.get(host.host, host.host): PaperHost(host.ordered_s, host.paid_until_s)
            for host in (*cluster.hosts.values(), *cluster.ordered.values())
        }
        self.instances = {
            name: PaperInstance(instance.operator, instance.host, instance.started_s)
            for name, instance in cluster.instances.items()
        }
        for instance in cluster.started.values():
            host = names.get(instance.host, instance.host)
            self._start(instance.operator, host, instance.started_s)

    def hosts_seen(self, setting: Setting, busy: Mapping[str, float]) -> dict[str, HostSample]:
        """Hosts as a controller sees them; ``busy`` is the share of each operator."""
        return {
            name: HostSample(
                host=name,
                flavor=setting.flavor.name,
                ordered_s=host.ordered_s,
                paid_until_s=host.paid_until_s,
                up=True,
                releasing=False,
                images=frozenset(setting.topology.operator_names),
                cpu_share=min(1.0, self._used(name, setting, busy) / setting.flavor.vcpus),
                memory_share=min(1.0, self._used(name, setting) / setting.flavor.vcpus),
            )
            for name, host in self.hosts.items()
        }

    def instances_seen(self, busy: Mapping[str, float]) -> dict[str, InstanceSample]:
        return {
            name: InstanceSample(
                instance=name,
                operator=instance.operator,
                host=instance.host,
                started_s=instance.started_s,
                ready=True,
                stopping=False,
                cpu_share=busy.get(instance.operator),
                memory_share=1.0,
            )
            for name, instance in self.instances.items()
        }

    def _start(self, operator: str, host: str, now_s: float) -> None:
        self.instances[self._new(operator)] = PaperInstance(operator, host, now_s)

    def _with_room(self, operator: str, setting: Setting) -> Iterator[str]:
        needs = setting.topology.operator[operator].cpu_cores
        for name in sorted(self.hosts, key=lambda host: -self.hosts[host].paid_until_s):
            if self._used(name, setting) + needs <= setting.flavor.vcpus + ROUNDING:
                yield name

    def _used(self, host: str, setting: Setting, busy: Mapping[str, float] | None = None) -> float:
        """Cores that its instances reserve, or with ``busy`` use of that."""
        operators = setting.topology.operator
        names = [instance.operator for instance in self.instances.values() if instance.host == host]
        return sum(
            operators[name].cpu_cores * (1.0 if busy is None else busy.get(name, 0))
            for name in names
        )

    def _lease(self, setting: Setting, now_s: float) -> str:
        name = self._new("host")
        self.hosts[name] = PaperHost(now_s, now_s + setting.btu_s)
        return name

    def _new(self, kind: str) -> str:
        self.numbers += 1
        return f"{kind}-{self.numbers}"
