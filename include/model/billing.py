"""Price books of clouds: what providers bill for a lease, and for hosts that are reserved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from include.model.host import PriceBook

MONTH_S = 730 * 3600.0
"""What providers mean by a month of hours: a year of 8,760 hours in twelve parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudPriceBook(PriceBook):
    """A lease of length L costs min(cap, p * max(m, q * ceil(L / q))) a month.

    q is ``btu_s``, p is ``price_per_btu`` / q, m is ``minimum_s`` and a multiple of q; with m = q
    and no cap it is a PriceBook. Money is in ``currency``. ``billed_from`` says where L begins;
    a host that the provider takes back within ``interrupted_free_s`` costs nothing. Where
    ``reserved`` hosts are paid at ``reserved_per_hour`` each, used or not, only those beyond
    are leased. The rest says where the price is from and of which day (``as_of``).
    """

    minimum_s: float
    cap_per_month: float | None = None
    billed_from: Literal["order", "active"] = "order"
    interrupted_free_s: float = 0.0
    reserved: int = 0
    reserved_per_hour: float = 0.0
    currency: str
    provider: str
    region: str
    instance_type: str
    as_of: str
    source: str

    def resource_cost(self, leased_s: float, paid_for_s: float = 0.0) -> float:
        """Cost of one lease that is billed for ``leased_s``; see PriceBook for the rest.

        The rule of sql/tables/cost for up to a month, and a test holds the two together.
        """
        months = math.floor(leased_s / MONTH_S) if self.cap_per_month is not None else 0
        whole = months * self._capped(MONTH_S, 0.0)
        rest_s = leased_s - months * MONTH_S
        if months and rest_s <= 0:
            return whole
        return whole + self._capped(rest_s, paid_for_s)

    def _capped(self, leased_s: float, paid_for_s: float) -> float:
        begun = math.ceil(leased_s / self.btu_s - 1e-9)
        least = round(self.minimum_s / self.btu_s)
        cost = max(least, begun, round(paid_for_s / self.btu_s)) * self.price_per_btu
        return cost if self.cap_per_month is None else min(self.cap_per_month, cost)

    def bill(self, leased_s: float, active_s: float | None = None, *, lost: bool = False) -> float:
        """Cost of one lease; ``active_s`` is how long the host was up, None if that is unknown.

        A host that never came up costs nothing where leases are billed from then.
        """
        billed_s = leased_s if active_s is None or self.billed_from == "order" else active_s
        if self.billed_from == "active" and billed_s <= 0:
            return 0.0
        if lost and billed_s < self.interrupted_free_s:
            return 0.0
        return self.resource_cost(billed_s)

    @property
    def pays_whole_btus(self) -> bool:
        """Whether a lease pays the BTUs it has begun, and nothing else decides."""
        return self.minimum_s == self.btu_s and self.cap_per_month is None

    def fleet_cost(self, hosts: Sequence[float], step_s: float) -> float:
        """Cost of ``hosts[t]`` hosts in every step, where ``reserved`` are paid at any rate.

        What is beyond them is billed by the time that it is used, without regard to single leases:
        the integral of max(0, hosts - reserved).
        """
        beyond = math.fsum(max(0.0, count - self.reserved) for count in hosts) * step_s
        kept_h = len(hosts) * step_s / 3600 * self.reserved
        return beyond * self.price_per_btu / self.btu_s + kept_h * self.reserved_per_hour
