"""List prices of clouds, as the data of apache-libcloud has them: on demand, for one hour.

A price of 0 there is one that is missing, never a host that is free.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from include.model.errors import SpecError, unknown_name

_LIKE = re.compile(r"(\d+(?:\.\d+)?)cpu-(\d+(?:\.\d+)?)gb", re.IGNORECASE)
CURRENCY = "USD"
MOST_NAMED = 5
"""Types that are named where one is not known; a region has hundreds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A type of host in a region. ``per_hour`` is in USD; a size that nobody knows is None."""

    instance_type: str
    per_hour: float
    vcpus: float | None = None
    memory_gb: float | None = None
    remark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """What a provider offers in a region, as of a day; ``unpriced`` types have no price there."""

    provider: str
    region: str
    offers: tuple[Offer, ...]
    unpriced: tuple[str, ...]
    as_of: str
    source: str

    @property
    def unsized(self) -> tuple[str, ...]:
        """Types of which the data has a price, but neither CPUs nor memory."""
        return tuple(offer.instance_type for offer in self.offers if offer.vcpus is None)

    def at_least(self, vcpus: float, memory_gb: float) -> list[Offer]:
        """Types with so much of both, the cheapest first; of two as cheap the one by name."""
        offers = [
            offer
            for offer in self.offers
            if offer.vcpus is not None
            and offer.vcpus >= vcpus
            and (offer.memory_gb or 0) >= memory_gb
        ]
        return sorted(offers, key=lambda offer: (offer.per_hour, offer.instance_type))

    def offer(self, instance_type: str) -> Offer:
        """The offer of a type. Raises SpecError when there is none, or it has no price."""
        if instance_type in self.unpriced:
            problem = f"{instance_type} has no price in {self.region}; take another type or region"
            raise SpecError("prices", [problem])
        by_name = {offer.instance_type: offer for offer in self.offers}
        if instance_type not in by_name:
            problem = unknown_name("type", instance_type, by_name, most=MOST_NAMED)
            raise SpecError("--type", [problem])
        return by_name[instance_type]


def parse_size(like: str) -> tuple[float, float]:
    """CPUs and GB of ``4cpu-16gb``. Raises SpecError."""
    match = _LIKE.fullmatch(like.strip())
    if not match:
        raise SpecError("--like", [f"write CPUs and memory such as 4cpu-16gb, got {like!r:.40}"])
    cpus, memory_gb = float(match[1]), float(match[2])
    if not (cpus > 0 and memory_gb > 0):
        raise SpecError("--like", [f"write a size above 0, such as 4cpu-16gb, got {like!r:.40}"])
    return cpus, memory_gb


def load_price_list(
    provider: str, region: str, like: tuple[float, float] = (1.0, 1.0)
) -> PriceList:
    """What a provider offers in a region. Raises SpecError for one that is not known.

    GCE has prices of cores and memory alone, so its offers are hosts of just the size ``like``.
    """
    if provider not in _READERS:
        raise SpecError("provider", [unknown_name("provider", provider, _READERS)])
    prices = _READERS[provider](like)
    regions = {name for by_region in prices.values() for name in by_region[1]}
    if not region:
        raise SpecError("--region", [f"name one; {provider} has {', '.join(sorted(regions))}"])
    if region not in regions:
        raise SpecError("--region", [unknown_name(f"region of {provider}", region, regions)])
    here = {name: (about, by[region]) for name, (about, by) in prices.items() if region in by}
    return PriceList(
        provider=provider,
        region=region,
        offers=tuple(
            Offer(instance_type=name, per_hour=per_hour, **about)
            for name, (about, per_hour) in here.items()
            if per_hour > 0
        ),
        unpriced=tuple(sorted(name for name, (_, per_hour) in here.items() if not per_hour > 0)),
        as_of=datetime.fromtimestamp(_data()["updated"], UTC).date().isoformat(),
        source=f"apache-libcloud {version('apache-libcloud')}, data/pricing.json",
    )


Prices = dict[str, tuple[dict[str, Any], Mapping[str, float]]]
"""By type: its size and remark, as an `Offer` has them, and the price of every region."""


def _ec2(_: tuple[float, float]) -> Prices:
    from libcloud.compute.constants.ec2_instance_types import INSTANCE_TYPES

    prices: Prices = {}
    for name, by_region in _data()["compute"]["ec2_linux"].items():
        size: Any = INSTANCE_TYPES.get(name)
        extra = size["extra"] if size else {}
        about: dict[str, Any] = {"remark": str(extra.get("physicalProcessor", ""))}
        if "vcpu" in extra:
            about |= {"vcpus": float(extra["vcpu"]), "memory_gb": size["ram"] / 1024}
        prices[name] = (about, by_region)
    return prices


def _azure(_: tuple[float, float]) -> Prices:
    from libcloud.compute.drivers.azure import AZURE_COMPUTE_INSTANCE_TYPES

    sizes: dict[str, Any] = {
        f"standard{name.lower()}": size for name, size in AZURE_COMPUTE_INSTANCE_TYPES.items()
    }
    prices: Prices = {}
    for name, by_region in _data()["compute"]["azure_linux"].items():
        if name.startswith("lowpriority"):
            continue  # may be taken back at any time
        about, size = {}, sizes.get(name)
        if size and isinstance(size["cores"], int):
            about = {"vcpus": float(size["cores"]), "memory_gb": size["ram"] / 1024}
        prices[name] = (about, by_region)
    return prices


def _gce(like: tuple[float, float]) -> Prices:
    vcpus, memory_gb = like
    prices: Prices = {}
    for family, parts in _data()["compute"]["gce_instances"].items():
        cores, memory = (parts.get(part, {}).get("on_demand", {}) for part in ("cpu", "ram"))
        name = f"{family}-{vcpus:g}cpu-{memory_gb:g}gb"
        remark = "cores and memory added up; check that the family has this size"
        about = {"vcpus": vcpus, "memory_gb": memory_gb, "remark": remark}
        by_region = {
            region: _sum_known(vcpus, cores[region]["price"], memory_gb, memory[region]["price"])
            for region in cores.keys() & memory.keys()
        }
        if by_region:
            prices[name] = (about, by_region)
    return prices


def _sum_known(vcpus: float, per_core: float, memory_gb: float, per_gb: float) -> float:
    """The price of cores and memory; 0, which means missing, where one of them is missing."""
    return vcpus * per_core + memory_gb * per_gb if per_core > 0 and per_gb > 0 else 0.0


_READERS: Mapping[str, Callable[[tuple[float, float]], Prices]] = {
    "aws": _ec2,
    "azure": _azure,
    "gce": _gce,
}


@cache
def _data() -> Any:
    """The prices that libcloud ships, never a download of newer ones: a result names its source."""
    return json.loads((files("libcloud") / "data" / "pricing.json").read_text(encoding="utf-8"))
