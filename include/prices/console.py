"""List prices as a terminal shows them, and as a price book that one can name in a spec."""

from __future__ import annotations

from collections.abc import Iterator

from include.prices.books import PENALTY_PER_ITEM
from include.prices.listed import CURRENCY, Listed, Offer
from include.prices.rules import RULES

MOST_SHOWN = 15
_MOST_NAMED = 4
_MONTH_H = 730


def lines_of(listed: Listed, offers: list[Offer]) -> Iterator[str]:
    """The offers as a table, and what one must know of them."""
    costs = f"{CURRENCY + '/h':>10} {CURRENCY + '/month':>10}"
    yield f"{'type':<24} {'vCPU':>5} {'GB':>7} {costs}  remark"
    for one in offers[:MOST_SHOWN]:
        size = f"{_plain(one.vcpus):>5} {_plain(one.memory_gb):>7}"
        price = f"{one.per_hour:>10.4f} {one.per_hour * _MONTH_H:>10.2f}"
        yield f"{one.instance_type:<24} {size} {price}  {one.remark}".rstrip()
    if len(offers) > MOST_SHOWN:
        yield f"and {len(offers) - MOST_SHOWN} that cost more"
    if not offers:
        yield "no type of a known size has so much; ask for less, or name one with --type"
    yield ""
    rule = RULES[listed.provider]
    doubt = f"; NOT VERIFIED: {rule.unverified}" if rule.unverified else ""
    yield f"Billed:     {rule.says}{doubt}"
    yield f"As of:      {listed.as_of}, on demand; {listed.source}"
    if listed.unsized:
        yield f"No size:    {_some(listed.unsized)}; take one with --type"
    if listed.unpriced:
        yield f"No price:   {_some(listed.unpriced)}"


def _plain(value: float | None) -> str:
    return "?" if value is None else f"{value:g}"


def _some(names: tuple[str, ...]) -> str:
    listed = ", ".join(names[:_MOST_NAMED])
    return f"{len(names)} types ({listed}{', ...' if len(names) > _MOST_NAMED else ''})"


def as_yaml(listed: Listed, offer: Offer) -> str:
    """A price book of the offer, which ``load_book`` reads."""
    rule = RULES[listed.provider]
    unverified = f"  # not verified: {rule.unverified}" if rule.unverified else ""
    return f"""\
# {offer.instance_type} of {listed.provider} in {listed.region}, on demand: {rule.says}.
name: {listed.provider}_{listed.region}_{offer.instance_type}
provider: {listed.provider}
region: {listed.region}
instance_type: {offer.instance_type}
currency: {CURRENCY}
per_hour: {offer.per_hour!r}
rule: {listed.provider}{unverified}
as_of: {listed.as_of}
source: {listed.source}
penalty_per_item: {PENALTY_PER_ITEM!r}  # for every item that is late; say what one costs you
"""
