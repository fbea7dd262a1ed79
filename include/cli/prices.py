"""What hosts cost: list prices for a terminal, and as a price book that a spec can name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from include.experiment.prices.books import PENALTY_PER_ITEM
from include.experiment.prices.listed import CURRENCY, Listed, Offer, listed, size_of
from include.experiment.prices.rules import RULES
from include.files.whole import write_bytes
from include.model.errors import SpecError

MOST_SHOWN = 15
_MOST_NAMED = 4
_MONTH_H = 730


def prices(
    provider: Annotated[str, typer.Argument(help="aws, azure or gce.")],
    region: Annotated[str, typer.Option(help="As the provider calls it, such as eu-central-1.")],
    like: Annotated[str, typer.Option(help="Types with at least so much.")] = "4cpu-16gb",
    type_: Annotated[str, typer.Option("--type", help="This type, whatever its size.")] = "",
    out: Annotated[Path | None, typer.Option(help="Write a price book of the first one.")] = None,
) -> None:
    """List what hosts cost on demand, the cheapest first, from the data of apache-libcloud."""
    for line in shown(provider, region, like, type_, out):
        typer.echo(line)


def shown(
    provider: str, region: str, like: str, instance_type: str, out: Path | None
) -> Iterator[str]:
    """The lines that list offers of at least the size ``like``, or the one that is named.

    A price book of the first one is written to ``out``. Raises SpecError for unknown names.
    """
    size = size_of(like)
    found = listed(provider, region, size)
    offers = [found.named(instance_type)] if instance_type else found.at_least(*size)
    yield from _lines(found, offers)
    if out:
        _require_sized(found, offers, size, named=bool(instance_type))
        write_bytes(out, _as_yaml(found, offers[0]).encode())
        first = offers[0]
        told = f"{first.instance_type}, {_plain(first.vcpus)} vCPU and {_plain(first.memory_gb)} GB"
        yield f"Price book: {out} ({told}); name it in price_books of a spec"


def _require_sized(
    found: Listed, offers: Sequence[Offer], size: tuple[float, float], *, named: bool
) -> None:
    """Raise SpecError unless a price book of the first offer is one of a host of that size.

    Types of unknown size may be closer to it and cheaper, so one that is larger in both CPUs and
    memory does not stand in for them; one that was named does, if its own size is known.
    """
    asked = f"{_plain(size[0])} vCPU and {_plain(size[1])} GB"
    left_out = f"{_some(found.unsized)} have no known size and were left out"
    if not offers:
        raise SpecError("--out", [f"no type of {asked} or more is known; {left_out}"])
    first = offers[0]
    if first.vcpus is None:
        told = f"the size of {first.instance_type} is not known, so a book of it compares with none"
        raise SpecError("--out", [f"{told}; write it yourself (docs/prices.md)"])
    fits = any(one.vcpus == size[0] or one.memory_gb == size[1] for one in offers)
    if found.unsized and not fits and not named:
        larger = f"{_plain(first.vcpus)} vCPU and {_plain(first.memory_gb)} GB"
        told = f"no type of {asked} is known; {left_out}. The cheapest that is known has {larger}"
        raise SpecError("--out", [f"{told}: take it with --type {first.instance_type}"])


def _lines(found: Listed, offers: list[Offer]) -> Iterator[str]:
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
    rule = RULES[found.provider]
    doubt = f"; NOT VERIFIED: {rule.unverified}" if rule.unverified else ""
    yield f"Billed:     {rule.says}{doubt}"
    yield f"As of:      {found.as_of}, on demand; {found.source}"
    if found.unsized:
        yield f"No size:    {_some(found.unsized)} were left out; --type shows one"
    if found.unpriced:
        yield f"No price:   {_some(found.unpriced)}"


def _plain(value: float | None) -> str:
    return "?" if value is None else f"{value:g}"


def _some(names: tuple[str, ...]) -> str:
    named = ", ".join(names[:_MOST_NAMED])
    return f"{len(names)} types ({named}{', ...' if len(names) > _MOST_NAMED else ''})"


def _as_yaml(found: Listed, offer: Offer) -> str:
    """A price book of the offer, which ``load_book`` reads."""
    rule = RULES[found.provider]
    unverified = f"  # not verified: {rule.unverified}" if rule.unverified else ""
    return f"""\
# {offer.instance_type} of {found.provider} in {found.region}, on demand: {rule.says}.
name: {found.provider}_{found.region}_{offer.instance_type}
provider: {found.provider}
region: {found.region}
instance_type: {offer.instance_type}
currency: {CURRENCY}
per_hour: {offer.per_hour!r}
rule: {found.provider}{unverified}
as_of: {found.as_of}
source: {found.source}
penalty_per_item: {PENALTY_PER_ITEM!r}  # for every item that is late; say what one costs you
"""
