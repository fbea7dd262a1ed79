"""Price books that users write: YAML files with a price, a billing rule and where it is from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError

from include.files.plain_yaml import input_yaml
from include.model.billing import CloudPriceBook
from include.model.errors import SpecError, unknown_name
from include.workloads.topologies import validation_problems
from include.workloads.topology_file import Strict

PENALTY_PER_ITEM = 0.0001
Text = Annotated[
    str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f=+@-][^\x00-\x1f]*$")
]
"""In one line; what begins as a formula would be one where a table is opened as a spreadsheet."""


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ValueError(f"write the day of the price as 2026-01-31, got {text!r:.40}") from None


Day = Annotated[str, AfterValidator(_day)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,79}$")]
Money = Annotated[float, Field(ge=0, lt=1e9, allow_inf_nan=False)]
Price = Annotated[float, Field(gt=0, lt=1e9, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=1, lt=1e8, allow_inf_nan=False)]


class _Reserved(Strict):
    hosts: Annotated[int, Field(ge=1, le=100_000)]
    per_hour: Price


class _Book(Strict):
    """What the file may say. Billing is that of the rule unless it is said here."""

    name: Name
    provider: Text
    region: Text
    instance_type: Text
    currency: Text
    per_hour: Price
    as_of: Day
    source: Text
    rule: str = ""
    billed_every_s: Seconds | None = None
    minimum_s: Seconds | None = None
    cap_per_month: Price | None = None
    billed_from: Literal["order", "active"] | None = None
    interrupted_free_s: Annotated[float, Field(ge=0, lt=1e8)] | None = None
    penalty_per_item: Money = PENALTY_PER_ITEM
    reserved: _Reserved | None = None


Check = Callable[[CloudPriceBook], Iterable[str]]
"""What else is wrong with a book."""


def load_book(path: str | Path, check: Check = lambda book: ()) -> CloudPriceBook:
    """The book in a YAML file. Raises SpecError with everything that is wrong with it."""
    name = Path(path).name
    raw = input_yaml(path, "price book")
    if not isinstance(raw, Mapping):
        raise SpecError(name, ["a price book is a mapping: name, provider, per_hour, rule, ..."])
    return book_of(raw, name, check)


def book_of(raw: Mapping[str, Any], source: str, check: Check = lambda book: ()) -> CloudPriceBook:
    """The book that such values say. Raises SpecError with everything that is wrong with them."""
    problems = [] if raw.get("per_hour") != 0 else ["per_hour is 0: a price that is missing"]
    try:
        book = _Book.model_validate(dict(raw))
    except ValidationError as error:
        shape_problems = [
            problem
            for problem in validation_problems(error)
            if not problems or "per_hour" not in problem
        ]
        raise SpecError(source, [*problems, *shape_problems, *_unknown_rule(raw)]) from None
    problems += _unknown_rule(raw)
    if problems:
        raise SpecError(source, problems)
    every_s = _billing(book, "billed_every_s") or 1.0
    made = CloudPriceBook(
        name=book.name,
        btu_s=every_s,
        price_per_btu=book.per_hour * every_s / 3600,
        penalty_per_item=book.penalty_per_item,
        minimum_s=_billing(book, "minimum_s") or every_s,
        cap_per_month=book.cap_per_month,
        billed_from=_billing(book, "billed_from") or "order",
        interrupted_free_s=_billing(book, "interrupted_free_s") or 0.0,
        reserved=book.reserved.hosts if book.reserved else 0,
        reserved_per_hour=book.reserved.per_hour if book.reserved else 0.0,
        currency=book.currency,
        provider=book.provider,
        region=book.region,
        instance_type=book.instance_type,
        as_of=book.as_of,
        source=book.source,
    )
    if problems := [*_billing_problems(book), *check(made)]:
        raise SpecError(source, problems)
    return made


def _unknown_rule(raw: Mapping[str, Any]) -> Iterator[str]:
    rule = raw.get("rule")
    if rule and isinstance(rule, str) and rule not in RULES:
        yield unknown_name("rule", rule, RULES)


def _billing(book: _Book, name: str) -> Any:
    """A field of billing from the book, else from its rule."""
    value = getattr(book, name)
    return getattr(RULES[book.rule], name) if value is None and book.rule else value


def _billing_problems(book: _Book) -> Iterator[str]:
    every_s, minimum_s = _billing(book, "billed_every_s"), _billing(book, "minimum_s")
    for name, value in (("billed_every_s", every_s), ("minimum_s", minimum_s)):
        if value is None:
            yield f"{name}: missing; give it, or a rule ({', '.join(RULES)})"
    if every_s and minimum_s:
        units = minimum_s / every_s
        if units < 1 or abs(units - round(units)) > 1e-9:
            yield f"minimum_s must be a multiple of billed_every_s ({every_s:g}), got {minimum_s:g}"
    if book.rule and RULES[book.rule].needs_cap and book.cap_per_month is None:
        yield f"cap_per_month: missing; {book.rule} bills {RULES[book.rule].says}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BillingRule:
    """Every ``billed_every_s`` begun is billed, at least ``minimum_s``; ``says`` in words.

    ``unverified`` says what of it nobody has checked against the provider's own pages.
    """

    billed_every_s: float
    minimum_s: float
    says: str
    billed_from: Literal["order", "active"] = "order"
    interrupted_free_s: float = 0.0
    needs_cap: bool = False
    unverified: str = ""


RULES: Mapping[str, BillingRule] = {
    "aws": BillingRule(
        billed_every_s=1, minimum_s=60, says="EC2 Linux: by the second, at least a minute"
    ),
    "aws-spot": BillingRule(
        billed_every_s=1,
        minimum_s=60,
        interrupted_free_s=3600,
        says="EC2 spot: by the second; free if EC2 takes the host back within its first hour",
    ),
    "gce": BillingRule(billed_every_s=1, minimum_s=60, says="by the second, at least a minute"),
    "azure": BillingRule(
        billed_every_s=60,
        minimum_s=60,
        says="by the minute",
        unverified="nobody has checked how Azure bills; the minute is presumed",
    ),
    "hetzner": BillingRule(
        billed_every_s=3600,
        minimum_s=3600,
        needs_cap=True,
        says="hours begun up to a cap a month, also while the host is stopped",
    ),
    "ovh": BillingRule(billed_every_s=3600, minimum_s=3600, says="hours begun"),
    "scaleway": BillingRule(
        billed_every_s=60,
        minimum_s=3600,
        says="at least an hour, then by the minute",
        unverified="only the hour is known; the minutes after it are presumed",
    ),
}
"""How providers bill a lease, by the name that a price book gives. To add a rule, add a line."""
