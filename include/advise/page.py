"""The page of an answer: the answer first, then cost against objective, then how it was known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from include.advise.answer import Answer
from include.advise.margins import CANNOT_TELL, HOLDS, MISSES
from include.model.billing import CloudPriceBook
from include.results.reports.figures.style import (
    HOSTS,
    INSTANCES,
    LOAD,
    TEXT,
    WAITING,
    as_svg,
    panels,
    titled,
)
from include.results.templates import templates_in
from include.workloads.recordings.recording import FloatArray

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
Place = tuple[float, float]
"""Cost of a month, percent within the limit."""
LISTED = 3
LEFT_OF = 0.85
"""Labels of points beyond this share of the highest cost are to their left."""
NEAR = (0.04, 0.8)
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
    groups: list[tuple[bool, Place, list[int], list[Place]]] = []
    for row in rows:
        kind = "as it was run" if row is answer.as_run else KIND_OF[row.holds]
        colour, size = KINDS[kind]
        place, misses = (row.cost_per_month, 100 * row.share_within), row.holds == MISSES
        axis.plot(*place, "o", color=colour, markersize=size)
        for below, (cost, within), numbers, corners in groups:
            near = abs(place[0] - cost) <= NEAR[0] * most and abs(place[1] - within) <= NEAR[1]
            if below == misses and near:
                numbers.append(row.rank)
                corners.append(place)
                break
        else:
            if place[1] > lowest:
                groups.append((misses, place, [row.rank], [place]))
    for below, _, numbers, corners in groups:
        aside = min(cost for cost, _ in corners) > LEFT_OF * most
        costs, shares = zip(*corners, strict=True)
        axis.annotate(
            _spans(numbers),
            ((min if aside else max)(costs), (min if below else max)(shares)),
            (-6 if aside else 5, -11 if below else 5),
            textcoords="offset points",
            ha="right" if aside else "left",
            fontsize=8,
            color=TEXT,
        )
    for kind, (colour, size) in KINDS.items():
        axis.plot([], [], "o", color=colour, markersize=size, label=kind)
    axis.legend(frameon=False, fontsize=8, loc="lower right", ncols=4, labelcolor=TEXT)
    axis.axhline(share, color=LOAD, linestyle="--", linewidth=1)
    axis.axvline(answer.bound.cost, color=LOAD, linestyle=":", linewidth=1)
    axis.set_xlim(left=0)
    axis.set_ylim(max(0.0, lowest), 100 + SHOWN_BELOW / 20)
    axis.set_xlabel(f"cost of a month, {answer.currency}")
    axis.set_ylabel(f"% within {answer.case.question.objective.limit_s:g} s")
    description = "Cost against objective; dashed: the objective, dotted: the bound"
    return as_svg(figure, "tradeoff", description)


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
    below.set_xlim(0, float(hours[-1]))
    below.set_xlabel("hours")
    below.legend(frameon=False, fontsize=8, loc="upper right", ncols=3, labelcolor=TEXT)
    titled(below, "Instances")
    return as_svg(figure, "over-time", "Load and instances over time")
