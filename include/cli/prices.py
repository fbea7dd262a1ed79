"""What hosts cost: list prices for a terminal, and as a price book that a spec can name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from include.model.errors import SpecError, all_checked

if TYPE_CHECKING:
    from include.experiment.prices.listed import Offer, PriceList

MOST_SHOWN = 15
_MOST_NAMED = 4
_MONTH_H = 730


def prices(
    provider: Annotated[str, typer.Argument(help="aws, azure or gce.")],
    region: Annotated[
        str, typer.Option(help="As the provider calls it; without it all are named.")
    ] = "",
    like: Annotated[str, typer.Option(help="List types of at least this size.")] = "4cpu-16gb",
    type_: Annotated[str, typer.Option("--type", help="This type, whatever its size.")] = "",
    out: Annotated[Path | None, typer.Option(help="Write a price book of the first one.")] = None,
) -> None:
    """List on-demand prices of a provider; write a price book."""
    from include.experiment.prices.listed import load_price_list, parse_size
    from include.files.whole import write_bytes

    size, _ = all_checked(
        "prices", lambda: parse_size(like), lambda: load_price_list(provider, region)
    )
    price_list = load_price_list(provider, region, size)
    offers = [price_list.offer(type_)] if type_ else price_list.at_least(*size)
    for line in _lines(price_list, offers):
        typer.echo(line)
    if out:
        _require_sized(price_list, offers, size, named=bool(type_))
        first = offers[0]
        write_bytes(out, _as_yaml(price_list, first).encode())
        size_text = f"{_plain(first.vcpus)} vCPU and {_plain(first.memory_gb)} GB"
        book = f"{out} ({first.instance_type}, {size_text})"
        typer.echo(f"Price book: {book}; name it in price_books of a spec")


def _require_sized(
    price_list: PriceList, offers: Sequence[Offer], size: tuple[float, float], *, named: bool
) -> None:
    """Raise SpecError unless a price book of the first offer is one of a host of that size.

    Types of unknown size may be closer to it and cheaper, so one that is larger in both CPUs and
    memory does not stand in for them; one that was named does, if its own size is known.
    """
    size_text = f"{_plain(size[0])} vCPU and {_plain(size[1])} GB"
    left_out = f"{_some(price_list.unsized)} have no known size and were left out"
    if not offers:
        raise SpecError("--out", [f"no type of {size_text} or more is known; {left_out}"])
    first = offers[0]
    if first.vcpus is None:
        problem = f"the size of {first.instance_type} is not known"
        how = "so a book of it compares with none; write it yourself (docs/prices.md)"
        raise SpecError("--out", [f"{problem}, {how}"])
    fits = any(offer.vcpus == size[0] or offer.memory_gb == size[1] for offer in offers)
    if price_list.unsized and not fits and not named:
        larger = f"{_plain(first.vcpus)} vCPU and {_plain(first.memory_gb)} GB"
        problem = f"no type of {size_text} is known; {left_out}"
        how = f"The cheapest that is known has {larger}: take it with --type {first.instance_type}"
        raise SpecError("--out", [f"{problem}. {how}"])


def _lines(price_list: PriceList, offers: list[Offer]) -> Iterator[str]:
    """The offers as a table, and what one must know of them."""
    from include.experiment.prices.books import RULES
    from include.experiment.prices.listed import CURRENCY

    costs = f"{CURRENCY + '/h':>10} {CURRENCY + '/month':>10}"
    yield f"{'type':<24} {'vCPU':>5} {'GB':>7} {costs}  remark"
    for offer in offers[:MOST_SHOWN]:
        size = f"{_plain(offer.vcpus):>5} {_plain(offer.memory_gb):>7}"
        price = f"{offer.per_hour:>10.4f} {offer.per_hour * _MONTH_H:>10.2f}"
        yield f"{offer.instance_type:<24} {size} {price}  {offer.remark}".rstrip()
    if len(offers) > MOST_SHOWN:
        yield f"and {len(offers) - MOST_SHOWN} that cost more"
    if not offers:
        yield "no type of a known size has so much; ask for less, or name one with --type"
    yield ""
    rule = RULES[price_list.provider]
    doubt = f"; NOT VERIFIED: {rule.unverified}" if rule.unverified else ""
    yield f"Billed:     {rule.says}{doubt}"
    yield f"As of:      {price_list.as_of}, on demand; {price_list.source}"
    if price_list.unsized:
        yield f"No size:    {_some(price_list.unsized)} were left out; --type shows one"
    if price_list.unpriced:
        yield f"No price:   {_some(price_list.unpriced)}"


def _plain(value: float | None) -> str:
    return "?" if value is None else f"{value:g}"


def _some(names: tuple[str, ...]) -> str:
    named = ", ".join(names[:_MOST_NAMED])
    return f"{len(names)} types ({named}{', ...' if len(names) > _MOST_NAMED else ''})"


def _as_yaml(price_list: PriceList, offer: Offer) -> str:
    """A price book of the offer, which ``load_book`` reads."""
    from include.experiment.prices.books import PENALTY_PER_ITEM, RULES
    from include.experiment.prices.listed import CURRENCY

    rule = RULES[price_list.provider]
    unverified = f"  # not verified: {rule.unverified}" if rule.unverified else ""
    return f"""\
# {offer.instance_type} of {price_list.provider} in {price_list.region}, on demand: {rule.says}.
name: {price_list.provider}_{price_list.region}_{offer.instance_type}
provider: {price_list.provider}
region: {price_list.region}
instance_type: {offer.instance_type}
currency: {CURRENCY}
per_hour: {offer.per_hour!r}
rule: {price_list.provider}{unverified}
as_of: {price_list.as_of}
source: {price_list.source}
penalty_per_item: {PENALTY_PER_ITEM!r}  # for every item that is late; say what one costs you
"""
