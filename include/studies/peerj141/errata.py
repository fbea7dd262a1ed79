"""Printed figures that cannot be right, found by holding the tables against themselves.

Nothing here looks at what was measured. What is printed is rounded, so only what no rounding
explains is named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, pairwise

from include.model.compliance import LEVEL_NAMES
from include.results.reports.comparison import PublishedFigure
from include.results.tables.staged import gathered
from include.studies.peerj141.published import CellKey

PENALTY_PER_ITEM = 0.0001
RUNS = 3
HALF_POINT = 0.5
"""Compliance is printed as whole percents."""
HALF_CENT = 0.005
"""Costs are printed with two decimals."""
ITEMS_SLACK = 0.01
"""The three runs behind a mean did not process exactly the same number of items."""

Cells = Mapping[CellKey, PublishedFigure]
Column = tuple[str, str, float | None]
"""Pattern, approach and BTU: one column of a table."""


def find_errata(cells: Cells) -> dict[CellKey, str]:
    """What is wrong with each cell that cannot be right, in a sentence."""
    wrong = gathered(contradiction for check in CHECKS for contradiction in check(cells))
    return {key: " ".join(sentences) for key, sentences in wrong.items()}


def implied_items(cells: Cells, column: Column) -> dict[str, tuple[float, float]]:
    """Per level, the items of a run that penalty and compliance of a column speak of.

    The penalty is 0.0001 per delayed item, so penalty / 0.0001 / (1 - compliance) is the number
    of all items; lowest and highest value that the rounding of both allows.
    """
    pattern, approach, _ = column
    resource = cells.get((*column, "resource_cost"))
    ranges = {}
    for level in LEVEL_NAMES:
        total = cells.get((*column, f"{level}_total_cost"))
        share = cells.get((*column, f"{level}_compliance")) or cells.get(
            (pattern, approach, None, f"{level}_compliance")
        )
        if resource and total and share:
            late = (total.mean - resource.mean) / PENALTY_PER_ITEM
            margin = 2 * HALF_CENT / PENALTY_PER_ITEM
            ranges[level] = (
                (late - margin) / (1 - (share.mean - HALF_POINT) / 100),
                (late + margin) / (1 - (share.mean + HALF_POINT) / 100),
            )
    return ranges


def columns(cells: Cells) -> list[Column]:
    """The columns of the tables that have costs, in order."""
    return list(dict.fromkeys(key[:3] for key in cells if key[3] == "resource_cost"))


def _levels_in_order(cells: Cells) -> Iterator[tuple[CellKey, str]]:
    """A wider limit never lowers compliance and never raises the total; hosts are never free."""
    for pattern, approach, btu_min in dict.fromkeys(key[:3] for key in cells):
        column = (pattern, approach, btu_min)
        rising = [(*column, f"{level}_compliance") for level in LEVEL_NAMES]
        falling = [(*column, f"{level}_total_cost") for level in LEVEL_NAMES]
        for low, high in [
            *pairwise(rising),
            *pairwise([*falling, (*column, "resource_cost")][::-1]),
        ]:
            if low in cells and high in cells and cells[low].mean > cells[high].mean:
                yield high, f"It cannot be below {low[3]} ({cells[low].mean:g})."


def _same_items_at_every_level(cells: Cells) -> Iterator[tuple[CellKey, str]]:
    """The levels of one column are three views of the same items.

    Where one level contradicts two that agree, it is the one that is wrong; where a level
    contradicts one other only, nothing says which, and the later one is named.
    """
    for column in columns(cells):
        items = implied_items(cells, column)
        apart = {
            (one, other)
            for one, other in combinations(items, 2)
            if _are_apart(items[one], items[other])
        }
        odd = [level for level in items if sum(level in pair for pair in apart) == 2]
        for level, other in sorted(
            apart, key=lambda pair: [LEVEL_NAMES.index(one) for one in pair]
        ):
            wrong, right = (level, other) if odd == [level] else (other, level)
            sentence = (
                f"Penalty and compliance speak of {_million(items[right])} million items at "
                f"{right}, but of {_million(items[wrong])} million at {wrong}."
            )
            yield (*column, f"{wrong}_total_cost"), sentence


def _are_apart(one: tuple[float, float], two: tuple[float, float]) -> bool:
    return one[0] * (1 - ITEMS_SLACK) > two[1] or two[0] * (1 - ITEMS_SLACK) > one[1]


def _same_penalty_at_every_btu(cells: Cells) -> Iterator[tuple[CellKey, str]]:
    """The threshold runs were priced three times: their penalty has no BTU."""
    for level in LEVEL_NAMES:
        penalties: dict[tuple[str, str], tuple[float, float]] = {}
        for pattern, approach, btu_min in columns(cells):
            if approach != "threshold" or btu_min is None:
                continue
            key = (pattern, approach, btu_min, f"{level}_total_cost")
            if key not in cells:
                continue
            penalty = cells[key].mean - cells[(*key[:3], "resource_cost")].mean
            first, first_btu_min = penalties.setdefault((pattern, approach), (penalty, btu_min))
            if abs(penalty - first) > 4 * HALF_CENT:
                yield (
                    key,
                    f"The penalty is {penalty:.2f}, but {first:.2f} at BTU {first_btu_min:g}.",
                )


def _whole_btus(cells: Cells) -> Iterator[tuple[CellKey, str]]:
    """Three runs paid whole BTUs, so mean and sigma of resource cost are those of three counts."""
    for key, figure in cells.items():
        btu_min, metric = key[2:]
        if metric != "resource_cost" or btu_min is None:
            continue
        price = btu_min / 10
        total = figure.mean * RUNS / price
        if abs(total - round(total)) > RUNS * HALF_CENT / price + 1e-9:
            yield key, f"Three runs that pay {price:g} per BTU cannot have this mean."
        elif figure.sigma is not None:
            near = _nearest_sigma(round(total), price, figure.sigma)
            if abs(near - figure.sigma) > HALF_CENT + 1e-9:
                impossible = f"Three runs that pay {price:g} per BTU cannot have the sigma"
                yield key, f"{impossible} {figure.sigma:g}; the nearest possible one is {near:.2f}."


def _nearest_sigma(total_btus: int, price: float, sigma: float) -> float:
    """Of the sample sigmas of three whole numbers of BTUs with this sum, times the price."""
    third = total_btus // 3
    spans = range(third - 20, third + 21)
    mean = total_btus / RUNS
    sigmas = {
        price * math.sqrt(sum((x - mean) ** 2 for x in (a, b, total_btus - a - b)) / (RUNS - 1))
        for a, b in combinations([*spans, *spans], 2)
    }
    return min(sigmas, key=lambda one: abs(one - sigma))


def _million(span: tuple[float, float]) -> str:
    return f"{span[0] / 1e6:.2f}-{span[1] / 1e6:.2f}"


CHECKS: tuple[Callable[[Cells], Iterator[tuple[CellKey, str]]], ...] = (
    _levels_in_order,
    _same_items_at_every_level,
    _same_penalty_at_every_btu,
    _whole_btus,
)
