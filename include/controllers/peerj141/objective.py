"""What a deployment costs: the optimisation problem of PeerJ CS 141, Eq. 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from include.model.host import Capacity
from include.model.topology import Operator


@dataclass(frozen=True, slots=True)
class Objective:
    """The four terms of Eq. 1; ``total`` is what is to be minimised."""

    leases: float
    unused_cpu: float
    unused_memory: float
    penalties: float

    @property
    def total(self) -> float:
        """The sum of the four terms."""
        return self.leases + self.unused_cpu + self.unused_memory + self.penalties


def objective(
    hosts: Sequence[Capacity],
    instances: Sequence[Operator],
    *,
    violations: int = 0,
    cost_per_host: float = 1.0,
    penalty_per_violation: float = 0.0001,
) -> Objective:
    """Eq. 1: h_# h_cost, the unused shares of all CPU and memory, and the penalties.

    Without a host there is nothing to leave unused, and the second and third term are 0.
    """
    cpu_cores = sum(host.cpu_cores for host in hosts)
    memory_mb = sum(host.memory_mb for host in hosts)
    used_cpu_cores = sum(op.cpu_cores for op in instances)
    used_memory_mb = sum(op.memory_mb for op in instances)
    return Objective(
        leases=len(hosts) * cost_per_host,
        unused_cpu=(cpu_cores - used_cpu_cores) / cpu_cores if hosts else 0.0,
        unused_memory=(memory_mb - used_memory_mb) / memory_mb if hosts else 0.0,
        penalties=violations * penalty_per_violation,
    )
