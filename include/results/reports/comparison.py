"""Measured compliance and cost beside what was printed elsewhere for the same case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from include.model.compliance import LEVEL_NAMES, in_words

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
Printed = Callable[[str, str, float], PublishedFigure | None]
"""The same by the id of a run."""


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
    published: float | None
    where: str
    as_controlled: bool = True

    @property
    def difference(self) -> float | None:
        """Measured minus published; None where nothing was published."""
        return None if self.published is None else self.measured - self.published


def printed_for(runs: Sequence[dict[str, Any]], reference: Reference) -> Printed:
    """What was printed about the runs of an experiment (rows of ``runs``), by run id."""
    about = {run["run"]: run for run in runs}
    return lambda run, metric, btu_min: reference(about[run], metric, btu_min)


def compare_compliance(
    compliance: Sequence[dict[str, Any]], printed: Printed
) -> Iterator[Comparison]:
    """Overall compliance of every run, in percent of sampled items."""
    for row in compliance:
        if row["scope"] != "overall":
            continue
        for metric in COMPLIANCE:
            figure = printed(row["run"], metric, row["btu_min"])
            label = in_words(metric.removesuffix("_compliance")).capitalize()
            yield _compared(row["run"], label, "percent", row[f"{metric}_percent"], figure)


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


def compare_cost(cost: Sequence[dict[str, Any]], printed: Printed) -> Iterator[Comparison]:
    """Cost of every run under every price book; nothing was printed of prices of a cloud."""
    books = billed_by(cost)
    for row in cost:
        book_min = row["price_book_btu_min"]
        for metric in COST:
            figure = None if row.get("price_source") else printed(row["run"], metric, book_min)
            name = in_words(metric.removeprefix("relaxed_").removesuffix("_cost"))
            label = f"{name.capitalize()}, {books[row['price_book']]}"
            compared = _compared(row["run"], label, "cost", row[metric], figure)
            yield replace(compared, as_controlled=book_min == row["btu_min"])


def _compared(
    run: str, label: str, unit: str, measured: float, figure: PublishedFigure | None
) -> Comparison:
    published = figure.mean if figure else None
    return Comparison(run, label, unit, measured, published, figure.where if figure else "")
