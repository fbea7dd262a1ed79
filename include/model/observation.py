"""What a controller may know: one immutable picture per monitoring period.

Operators and hosts that the monitor could not read are absent. Absent never means zero.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean

from msgspec import Struct


class OperatorSample(Struct, frozen=True, kw_only=True, gc=False):
    """One operator, as the monitor read it. Item counts are since the last observation."""

    operator: str
    waiting_items: int
    durations_ms: tuple[float, ...]
    """The last recorded processing durations, oldest first; empty when none was recorded."""
    arrived_items: int
    completed_items: int
    longest_queue_items: int | None = None
    """Items of its longest incoming queue, as a broker counts them: waiting and unfinished ones.
    Absent where items are not counted by queue."""
    capacity: float | None = None
    """Henge, eq. 3: the highest share of time that one of its instances spent on items."""
    busy_share: float | None = None
    """The share of time since the last observation that its instances worked, all together; absent
    when none could have worked, or it was not read."""
    busiest_share: float | None = None
    """The same of the instance that worked most."""
    arrived_in_all: int | None = None
    """Items that arrived since the run began. Differences are exact even where others observe in
    between."""
    completed_in_all: int | None = None
    """Items that were completed since the run began."""
    busy_in_all_s: float | None = None
    """Seconds that its instances worked since the run began, all together, without noise. What one
    did between its last reading and its end is not in it. Absent where it is not counted."""
    oldest_waits_s: float | None = None
    """How long the item that waits longest has been in the queue; 0 when none waits. Absent where
    a broker does not say."""
    late_share: float | None = None
    """Of the items recorded since the last look, the share that took more than twice o_slo, so
    that they are not near real-time; absent when none was recorded."""

    @property
    def duration_ms(self) -> float | None:
        """o_d: the mean of the last durations, or None when there is none."""
        return fmean(self.durations_ms) if self.durations_ms else None


class HostSample(Struct, frozen=True, kw_only=True, gc=False):
    """A leased host. ``cpu_share`` and ``memory_share`` are absent (None) while it boots."""

    host: str
    flavor: str
    ordered_s: float
    paid_until_s: float
    up: bool
    releasing: bool
    images: frozenset[str]
    cpu_share: float | None = None
    memory_share: float | None = None
    runnable: float | None = None
    """CPU load: instances and other processes that run or wait for a core, on average."""


class InstanceSample(Struct, frozen=True, kw_only=True, gc=False):
    """A running copy of an operator. A stopping one holds its place, and takes no new items
    unless it was told to serve on."""

    instance: str
    operator: str
    host: str
    started_s: float
    ready: bool
    stopping: bool
    cpu_share: float | None = None
    """Of what it reserves, over the last monitoring period: 1 where it works all the time."""
    memory_share: float | None = None
    """Of what the instance reserves."""


class TenantSample(Struct, frozen=True, kw_only=True, gc=False):
    """One tenant of a shared cluster, as its users see it; a query is a tenant, too.

    ``latency_ms`` is the mean time from the source to the sinks, ``tail_latency_ms`` its 95th
    percentile, both absent while nothing left. ``juice`` follows Henge, eq. 5 and 6, over the
    last minute.
    """

    tenant: str
    latency_ms: float | None
    tail_latency_ms: float | None
    juice: float | None


@dataclass(frozen=True, kw_only=True)
class Observation:
    """Everything known at ``now_s`` (seconds since the run began)."""

    now_s: float
    operators: Mapping[str, OperatorSample]
    hosts: Mapping[str, HostSample]
    instances: Mapping[str, InstanceSample]
    tenants: Mapping[str, TenantSample] = field(default_factory=dict)
    published_in_all: Mapping[str, int] = field(default_factory=dict)
    """Items of each source since the run began, as of the last reading; its rate is the difference
    of two observations by the time between their readings. Empty where sources are not counted, and
    when the monitor missed."""
    job_started_s: float = 0.0
    """When the job as a whole was started last, where a change or a failure starts it again."""
    job_starts: int = 0
    """How often that was since the run began, as far as it is known how long nothing came out."""
    job_changes: int = 0
    """How many of them because instances were to come or go; the others followed a failure."""
    job_paused_in_all_s: float = 0.0
    """For how long nothing came out, over ``job_changes``."""
    operator_pauses: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    """By operator whose instances came or went since the run began: how often it stood still for
    that, and for how many seconds in all. Pauses that overlap are one; those of the whole job are
    not among them."""

    def serving(self, operator: str) -> tuple[InstanceSample, ...]:
        """Instances of the operator that run or start, in order of their start."""
        return self._by_operator.get(operator, ())

    def on_host(self, host: str) -> tuple[InstanceSample, ...]:
        """Instances on the host that run or start."""
        return tuple(instance for instance in self.holding(host) if not instance.stopping)

    def holding(self, host: str) -> tuple[InstanceSample, ...]:
        """All instances on the host, those that stop too."""
        return self._by_host.get(host, ())

    @cached_property
    def _by_operator(self) -> dict[str, tuple[InstanceSample, ...]]:
        groups: defaultdict[str, list[InstanceSample]] = defaultdict(list)
        for instance in self.instances.values():
            if not instance.stopping:
                groups[instance.operator].append(instance)
        return {name: tuple(group) for name, group in groups.items()}

    @cached_property
    def _by_host(self) -> dict[str, tuple[InstanceSample, ...]]:
        groups: defaultdict[str, list[InstanceSample]] = defaultdict(list)
        for instance in self.instances.values():
            groups[instance.host].append(instance)
        return {name: tuple(group) for name, group in groups.items()}
