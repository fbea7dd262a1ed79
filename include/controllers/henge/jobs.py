"""What Henge reads from an observation: utilities, congested operators, congested hosts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from include.model.observation import Observation, OperatorSample
from include.model.tenant import Intent
from include.model.topology import Topology
from include.model.utility import latency_share, utility

CONGESTION_THRESHOLD = 0.3
"""Operators that use more of their capacity are congested (eq. 3)."""
INSTANCES_PER_UNIT = 10.0
"""Instances per unit of excess capacity in eq. 4."""


@dataclass(frozen=True, slots=True)
class Job:
    """A tenant and its operators; the o_slo of each where the tenant states no intent."""

    name: str
    intent: Intent | None
    slo_ms: Mapping[str, float]

    @property
    def max_utility(self) -> float:
        """Its priority; 1 without an intent."""
        return self.intent.max_utility if self.intent else 1.0


def jobs_of(topology: Topology) -> tuple[Job, ...]:
    """The tenants; a topology without tenants is one job (docs/deviations.md, HENGE-ADAPTER)."""
    slo_ms: dict[str, dict[str, float]] = {}
    for op in topology.operators:
        if not op.runs_in:  # nothing is measured of one without instances
            slo_ms.setdefault(op.tenant, {})[op.name] = op.slo_ms
    intents = {tenant.name: tenant.intent for tenant in topology.tenants}
    return tuple(
        Job(name or topology.name, intents.get(name), slos_ms) for name, slos_ms in slo_ms.items()
    )


def utility_of(job: Job, observation: Observation) -> float | None:
    """The current utility of a job, or None when what it takes was not measured.

    Without an intent a job is as well off as its operator that is latest against its o_slo.
    """
    if not job.slo_ms.keys() <= observation.operators.keys():
        return None
    if job.intent is not None:
        sample = observation.tenants.get(job.name)
        return utility(job.intent, sample) if sample else None
    shares = [
        latency_share(duration_ms, slo_ms)
        for name, slo_ms in job.slo_ms.items()
        if (duration_ms := observation.operators[name].duration_ms) is not None
    ]
    return min(shares, default=None)


def is_mute(job: Job, observation: Observation, *, has_reported: bool) -> bool:
    """Whether the monitor failed to reach the job.

    A tenant without a sample that never had one (``has_reported``) has not joined yet.
    """
    if not job.slo_ms.keys() <= observation.operators.keys():
        return True
    return has_reported and job.intent is not None and job.name not in observation.tenants


def capacity_of(sample: OperatorSample, observation: Observation) -> float | None:
    """Eq. 3: the time its busiest instance spends on items, from 0 to 1; None if unknown.

    Where the monitor gives no capacity it is the CPU share of the busiest ready instance.
    """
    if sample.capacity is not None:
        return min(1.0, sample.capacity)
    shares = [
        instance.cpu_share
        for instance in observation.serving(sample.operator)
        if instance.ready and instance.cpu_share is not None
    ]
    return min(1.0, max(shares)) if shares else None


def capacities(job: Job, observation: Observation) -> Iterator[tuple[str, float]]:
    """The operators of a job whose capacity is known, and it."""
    for name in job.slo_ms:
        if name in observation.operators:
            capacity = capacity_of(observation.operators[name], observation)
            if capacity is not None:
                yield name, capacity


def extra_instances(capacity: float) -> int:
    """Eq. 4, rounded up: a congested operator always gets one (HENGE-ROUND)."""
    return math.ceil((capacity / CONGESTION_THRESHOLD - 1) * INSTANCES_PER_UNIT - 1e-9)


def congested_hosts(observation: Observation, cores: float) -> tuple[int, int]:
    """How many hosts have a CPU load above their cores, and of how many the load is known."""
    loads = [host.runnable for host in observation.hosts.values() if host.runnable is not None]
    return sum(load > cores for load in loads), len(loads)


def worst_first(jobs: Sequence[Job], utilities: Mapping[str, float], share: float) -> list[Job]:
    """Jobs below ``share`` of their maximal utility: the highest maximum first, then the lowest
    current utility, then by name.
    """
    missing = [job for job in jobs if utilities.get(job.name, math.inf) < share * job.max_utility]
    return sorted(missing, key=lambda job: (-job.max_utility, utilities[job.name], job.name))
