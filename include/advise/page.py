"""The page of an answer: the answer first, then cost against objective, then how it was known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from include.advise.answer import Answer
from include.advise.margins import CANNOT_TELL, HOLDS, MISSES
from include.model.billing import CloudPriceBook
from include.results.reports.figures.names import Place, box_of, covered, outside
from include.results.reports.figures.style import (
    HOSTS,
    INSTANCES,
    LOAD,
    TEXT,
    WAITING,
    as_svg,
    legend_above,
    panels,
    titled,
    whole,
)
from include.results.templates import templates_in
from include.workloads.recordings.recording import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HERE = Path(__file__).parent
MOST_POINTS = 1200
KINDS = {
    "as it was run": (WAITING, 8),
    "holds": (INSTANCES, 5),
    "cannot tell": (LOAD, 5),
    "misses": (HOSTS, 5),
}
KIND_OF = {HOLDS: "holds", CANNOT_TELL: "cannot tell", MISSES: "misses"}
SHOWN_BELOW = 10.0
"""Percent points below the objective at which the figure of cost ends."""
Point = tuple[float, float]
"""Cost of a month, percent within the limit."""
LISTED = 3
LABEL_PT = 8
LABEL_PLACES: Sequence[Place] = tuple(
    (right, up, side)
    for far in (0, 9, 18)
    for up in (5 + far, -11 - far)
    for right, side in ((5, "left"), (-6, "right"), (0, "center"))
)
"""Where the numbers of points may stand; the first that covers the least is taken."""
NEAR = (0.02, 0.6)
"""Points so near each other (share of the highest cost, percent points) have one label."""


def page_of(answer: Answer, how_to_use: str, pasted: str) -> str:
    """The page as HTML; ``how_to_use`` says what to do with ``pasted``."""
    templates = templates_in(HERE, HERE.parent / "results" / "reports")
    return templates.get_template("advice.html.j2").render(
        answer=answer,
        rows=(answer.as_run, *answer.rows),
        shown=answer.best,
        how_to_use=how_to_use,
        pasted=pasted,
        currency=answer.currency,
        origin=origin_of(answer),
        tradeoff=_tradeoff(answer),
        over_time=_over_time(answer, answer.best.policy),
        seconds=lambda value: f"{value:.1f}" if value < 100 else f"{value:,.0f}",
        figure=lambda value: "not recorded" if np.isnan(value) else f"{value:.4g}",
    )


def origin_of(answer: Answer) -> str:
    """Where the price is from."""
    book = answer.case.question.book
    if not isinstance(book, CloudPriceBook):
        return f"the book {book.name}, in the cost units of the papers"
    where = f"{book.provider}, {book.region}, {book.instance_type}"
    return f"{where}, as of {book.as_of} ({book.source})"


def _tradeoff(answer: Answer) -> str:
    """Cost of a month against the share within the limit, a point per policy; empty where all of
    them would be below the figure."""
    share = 100 * answer.case.question.objective.share
    lowest = share - SHOWN_BELOW
    rows = (answer.as_run, *answer.rows)
    if all(100 * row.share_within <= lowest for row in rows):
        return ""
    figure, (axis,) = panels([3.2])
    most = max(row.cost_per_month for row in rows)
    groups: list[tuple[bool, Point, list[int]]] = []
    for row in rows:
        kind = "as it was run" if row is answer.as_run else KIND_OF[row.holds]
        colour, size = KINDS[kind]
        place, misses = (row.cost_per_month, 100 * row.share_within), row.holds == MISSES
        axis.plot(*place, "o", color=colour, markersize=size)
        for below, (cost, within), numbers in groups:
            near = abs(place[0] - cost) <= NEAR[0] * most and abs(place[1] - within) <= NEAR[1]
            if below == misses and near:
                numbers.append(row.rank)
                break
        else:
            if place[1] > lowest:
                groups.append((misses, place, [row.rank]))
    for kind, (colour, size) in KINDS.items():
        axis.plot([], [], "o", color=colour, markersize=size, label=kind)
    axis.axhline(share, color=LOAD, linestyle="--", linewidth=1, label="objective")
    axis.axvline(answer.bound.cost, color=LOAD, linestyle=":", linewidth=1, label="bound")
    legend_above(axis, len(KINDS) + 2, fontsize=8, handlelength=1.8)
    axis.set_xlim(left=0)
    axis.set_ylim(max(0.0, lowest), 100 + SHOWN_BELOW / 20)
    axis.set_xlabel(f"cost of a month, {answer.currency}")
    axis.set_ylabel(f"% within {answer.case.question.objective.limit_s:g} s")
    points = [(row.cost_per_month, 100 * row.share_within) for row in rows]
    _label(figure, axis, {place: _spans(numbers) for _, place, numbers in groups}, points)
    description = "Cost against objective; dashed: the objective, dotted: the bound"
    return as_svg(figure, "tradeoff", description)


def _label(
    figure: Figure, axis: Axes, labels: Mapping[Point, str], points: Sequence[Point]
) -> None:
    """Labels beside their points, where they cover neither another point nor another label."""
    figure.draw_without_rendering()  # from here on it is known where a point is
    to_points = 72 / figure.dpi
    at = {point: tuple(axis.transData.transform(point) * to_points) for point in points}
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in at.values()]
    left, low, right, high = (edge * to_points for edge in axis.get_window_extent().extents)
    for point, label in labels.items():
        boxes = np.array([box_of(at[point], label, place, LABEL_PT) for place in LABEL_PLACES])
        costs = covered(boxes, np.array(taken)) + 4 * outside(boxes, (left, low, right, high))
        best = int(costs.argmin())
        taken.append(tuple(boxes[best]))
        right_by, up_by, side = LABEL_PLACES[best]
        axis.annotate(
            label,
            point,
            (right_by, up_by),
            textcoords="offset points",
            ha=side,
            fontsize=LABEL_PT,
            color=TEXT,
        )


def _spans(numbers: Sequence[int]) -> str:
    """The label of policies in one place: a few, or the first and how many more there are."""
    if len(numbers) > LISTED:
        return f"{numbers[0]} and {len(numbers) - 1} more"
    return ", ".join(map(str, numbers))


def _over_time(answer: Answer, name: str) -> str:
    """Load, and instances as run, as advised, and of the bound."""
    figure, (above, below) = panels([1.6, 2.4])
    read, step_s = answer.case.read, answer.case.read.step_s
    every = max(1, read.load_per_s.size // MOST_POINTS)
    hours = np.arange(0, read.load_per_s.size, every) * step_s / 3600
    above.plot(hours, read.load_per_s[::every], color=LOAD, linewidth=1)
    above.set_ylim(bottom=0)
    titled(above, "Load, records per second")
    per_host = answer.case.question.conditions.instances_per_host
    series: Sequence[tuple[str, FloatArray, str]] = (
        ("as it was run", read.instances, WAITING),
        (name, answer.shown.instances, INSTANCES),
        ("bound", answer.bound.hosts * per_host, HOSTS),
    )
    for label, values, colour in series:
        thin = values[::every]
        below.plot(hours, thin, color=colour, linewidth=1, label=label, drawstyle="steps-post")
    below.set_ylim(0, 1.25 * max(np.nanmax(values) for _, values, _ in series))  # and a legend
    whole(below, 6)
    below.set_xlim(0, float(hours[-1]))
    below.set_xlabel("hours")
    below.legend(frameon=False, fontsize=8, loc="upper right", ncols=3, labelcolor=TEXT)
    titled(below, "Instances")
    return as_svg(figure, "over-time", "Load and instances over time")
