"""Hosts, what fits on them, and the leases they are paid by."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

from include.model.topology import Operator


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFlavor:
    """A size of host. ``usable_memory_share`` is what is left beside the engine and the system.

    With ``cpu_shared`` instances may be promised more CPU than there is and then share it;
    otherwise their promises must fit.
    """

    name: str
    vcpus: float
    memory_mb: float
    usable_memory_share: float = 1.0
    cpu_shared: bool = False

    @property
    def capacity(self) -> Capacity:
        """What instances may reserve together."""
        return Capacity(self.vcpus, self.memory_mb * self.usable_memory_share)


@dataclass(frozen=True, slots=True)
class Capacity:
    """An amount of CPU (cores) and memory (MB)."""

    cpu_cores: float
    memory_mb: float

    def instances_of(self, op: Operator) -> float:
        """How many instances fit (Alg. 2, line 2: feasibilityThreshold), not rounded."""
        return min(self.cpu_cores / op.cpu_cores, self.memory_mb / op.memory_mb)

    def slots(self, operators: Iterable[Operator]) -> int:
        """How many instances of the operator that needs least fit; at least one."""
        return max(1, math.floor(max(map(self.instances_of, operators)) + 1e-9))

    def fits(self, op: Operator) -> bool:
        """Whether one more instance fits (Alg. 2, line 3)."""
        return self.instances_of(op) >= 1.0

    def less(self, op: Operator) -> Capacity:
        """What is left with one more instance."""
        return Capacity(self.cpu_cores - op.cpu_cores, self.memory_mb - op.memory_mb)

    def more(self, op: Operator) -> Capacity:
        """What is left with one instance fewer."""
        return Capacity(self.cpu_cores + op.cpu_cores, self.memory_mb + op.memory_mb)


def btus_to_pay(paid_until: float, now: float, btu: float) -> int:
    """BTUs that a lease is prolonged by: those that have begun since, and one at least."""
    return max(1, int((now - paid_until) // btu) + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceBook:
    """How a lease is billed: whole BTUs from the order, each at ``price_per_btu``.

    One lease log can be priced by several books. Money is in cost units of the paper.
    """

    name: str
    btu_s: float
    price_per_btu: float
    penalty_per_item: float

    def resource_cost(self, leased_s: float, paid_for_s: float = 0.0) -> float:
        """Cost of one lease that lasted ``leased_s``; an order costs at least one BTU.

        ``paid_for_s`` is from the order to where the lease was prolonged to, under the book that
        the run planned with. The rule of sql/tables/cost, and a test holds the two together.
        """
        # A lease that ends with its BTU pays for no further one, whatever the last digit says.
        begun = math.ceil(leased_s / self.btu_s - 1e-9)
        return max(1, begun, round(paid_for_s / self.btu_s)) * self.price_per_btu

    def bill(self, leased_s: float, active_s: float | None = None, *, lost: bool = False) -> float:
        """Cost of one lease that lasted ``leased_s`` from the order, ``active_s`` from the boot.

        ``lost`` says that the provider took the host back. Neither matters to these books.
        """
        return self.resource_cost(leased_s)

    def by_at_least(self, btu_s: float) -> Self:
        """The same price in BTUs of at least so long, which controllers plan with."""
        longer_s = max(btu_s, self.btu_s)
        price = self.price_per_btu * longer_s / self.btu_s
        return replace(self, btu_s=longer_s, price_per_btu=price)

    @property
    def pays_whole_btus(self) -> bool:
        """Whether a lease pays the BTUs it has begun, and nothing else decides."""
        return True
