"""Measured compliance and cost beside what was printed elsewhere for the same case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from include.model.compliance import LEVEL_NAMES, in_words
from include.results.tables.staged import Row

COMPLIANCE = tuple(f"{level}_compliance" for level in LEVEL_NAMES)
COST = ("resource_cost", *(f"{level}_total_cost" for level in LEVEL_NAMES))


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """A mean that a source prints, its unit, where it stands there, its standard deviation.

    ``source`` names the source, and says what the mean is of.
    """

    mean: float
    unit: str
    table: str
    sigma: float | None = None
    source: str = ""

    @property
    def where(self) -> str:
        """Source and table, as a reader looks them up."""
        return ", ".join(part for part in (self.source, self.table) if part)


Reference = Callable[[Mapping[str, Any], str, float], PublishedFigure | None]
"""What was printed about a run (a row of ``runs``): a metric, under a BTU in minutes."""


def nothing_printed(run: Mapping[str, Any], metric: str, btu_min: float) -> None:
    """A reference that knows no figure."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One measured number and the printed one, if there is one. ``unit`` is percent or cost.

    ``as_controlled`` is false under a price book that the run was not controlled with.
    """

    run: str
    label: str
    unit: str
    measured: float
    printed: PublishedFigure | None
    as_controlled: bool = True

    @property
    def published(self) -> float | None:
        return self.printed.mean if self.printed else None

    @property
    def where(self) -> str:
        """Where the printed one stands; empty where there is none."""
        return self.printed.where if self.printed else ""

    @property
    def difference(self) -> float | None:
        """Measured minus published; None where nothing was published."""
        return None if self.published is None else self.measured - self.published


def compared(
    tables: Mapping[str, Sequence[Row]], reference: Reference
) -> tuple[list[Comparison], list[Comparison]]:
    """Overall compliance of every run, and its cost under every price book."""
    about = {run["run"]: run for run in tables["runs"]}
    shares, costs = list[Comparison](), list[Comparison]()
    for row in tables["compliance"]:
        for metric in COMPLIANCE if row["scope"] == "overall" else ():
            label = in_words(metric.removesuffix("_compliance")).capitalize()
            printed = reference(about[row["run"]], metric, row["btu_min"])
            value = row[f"{metric}_percent"]
            shares.append(Comparison(row["run"], label, "percent", value, printed))
    books = billed_by(tables["cost"])
    for row in tables["cost"]:
        book_min, of_cloud = row["price_book_btu_min"], bool(row.get("price_source"))
        for metric in COST:
            name = in_words(metric.removeprefix("relaxed_").removesuffix("_cost"))
            label = f"{name.capitalize()}, {books[row['price_book']]}"
            # Nothing was printed of prices of a cloud.
            printed = None if of_cloud else reference(about[row["run"]], metric, book_min)
            as_controlled = book_min == row["btu_min"]
            cost = Comparison(row["run"], label, "cost", row[metric], printed, as_controlled)
            costs.append(cost)
    return shares, costs


def billed_by(cost: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """How a reader tells price books apart: by the BTU; by name as well where several share one,
    or one is that of a cloud."""
    books = {
        row["price_book"]: (row["price_book_btu_min"], bool(row.get("price_source")))
        for row in cost
    }
    alike = Counter(btu_min for btu_min, _ in books.values())
    return {
        name: f"BTU {btu_min:g} min" + (f", {name}" if of_cloud or alike[btu_min] > 1 else "")
        for name, (btu_min, of_cloud) in books.items()
    }


def cost_unit(cost: Sequence[Mapping[str, Any]]) -> str:
    """What such rows are counted in, as a heading says it."""
    more = " or in the currency of the book" if any(row.get("price_source") for row in cost) else ""
    return f"in units of the paper{more}"
