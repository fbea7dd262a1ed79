"""docs/fidelity.md and its CSV file, from predictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from statistics import fmean
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from include.files.whole import csv_rows, csv_text
from include.model.errors import SpecError
from include.results.reports.tournament import short_names
from include.results.tables.staged import gathered
from include.studies.base import plain
from include.studies.fidelity.comparison import (
    AGAIN,
    FITTED,
    HELD_OUT,
    LEAST_TAU,
    RANKED_BY,
    Order,
    Prediction,
    Promise,
    orders,
    recommendations,
)
from include.studies.fidelity.figures import FIGURES

ROLES = (FITTED, HELD_OUT)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class FidelityPage:
    """What the page says. ``asked``: the load of every run that there will be, measured or not;
    ``unsound``: runs that do not count, and why; ``csv``: where the figures are, seen from it."""

    rows: Sequence[Prediction]
    asked: Sequence[str]
    unsound: Mapping[str, str]
    command: str
    csv: str

    def csv_text(self) -> str:
        """Every figure of every run, one a line; an empty ``holds`` has no limit."""
        names = [field.name for field in fields(Prediction)]
        return csv_text(names, ([plain(value, 6) for value in astuple(row)] for row in self.rows))

    def unsound_csv_text(self) -> str:
        """The runs that do not count, one a line."""
        return csv_text(("run", "why"), self.unsound.items())

    def markdown(self) -> str:
        rows = self.rows
        roles = {"fitted": FITTED, "held_out": HELD_OUT, "again": AGAIN}
        text = [INTRODUCTION.format(command=self.command, csv=self.csv, **roles)]
        text += ["## What is measured so far\n", *_coverage(rows, Counter(self.asked))]
        if self.unsound:
            text += [UNSOUND, *(f"- {run}: {why}" for run, why in self.unsound.items()), ""]
        text += ["## Errors, and how many are within the limit\n", EXPLAINED, *_errors(rows)]
        text += ["## The order of controllers\n", ORDERED, *_orders(list(orders(rows)))]
        text += ["## Recommendations\n", RECOMMENDED, *_recommendations([*recommendations(rows)])]
        return "\n".join(text).rstrip() + "\n"


@dataclass(frozen=True, slots=True)
class _Unsound:
    run: str
    why: str


def stored_predictions(path: Path) -> list[Prediction]:
    """What :meth:`FidelityPage.csv_text` wrote; nothing where there is no file.

    Raises SpecError when it is damaged.
    """
    return _stored(path, TypeAdapter(list[Prediction]))


def stored_unsound(path: Path) -> dict[str, str]:
    """What :meth:`FidelityPage.unsound_csv_text` wrote; nothing where there is no file.

    Raises SpecError when it is damaged.
    """
    return {row.run: row.why for row in _stored(path, TypeAdapter(list[_Unsound]))}


def _stored(path: Path, rows: TypeAdapter[list[T]]) -> list[T]:
    if not path.is_file():
        return []
    read = [{**row, "holds": row.get("holds") or None} for row in csv_rows(path)]
    try:
        return rows.validate_python(read)
    except ValidationError as error:
        lines = sorted({int(problem["loc"][0]) + 2 for problem in error.errors()})
        damage = f"damaged in {len(lines)} rows, first in line {lines[0]}"
        raise SpecError(str(path), [f"{damage}; restore it, or move it away"]) from None


INTRODUCTION = """# How true the simulator is

Made by `{command}`; do not edit. Every run was measured on a real Apache Flink (docs/flink.md)
and simulated with the same specification, pattern, seed and controller. [{csv}]({csv}) has every
figure.

Runs marked *{fitted}* were used to make the simulator or a calibration, those marked
*{held_out}* were not (docs/notes/flink.md has what was seen). Where a run was measured twice, the
second measurement is listed as a prediction (*{again}*): a better model cannot be told from it.
"""

EXPLAINED = """Mean absolute error over runs, mean error in brackets, and the number of runs
within the limit, if any. Compliance is strict (docs/metrics.md) and in points, all else in percent
of the measured value. Lag is the number of items that wait in all queues and at the sources.
"""

ORDERED = f"""Kendall's tau between the measured and the predicted order of controllers, by the mean
over those seeds of a load that have the most controllers. 1 is the same order; what is below
{LEAST_TAU:g} is bold. Empty if all controllers are equal or no run has the figure.
"""

RECOMMENDED = """For every load and seed of which three controllers or more were held out, and every
share of items that may be asked for: the controller of the lowest predicted cost that is sure to
hold it, which then ran on Flink. It is sure where the predicted share less a margin holds it; the
margin is its largest error in the n runs under other seeds, times (n + 1) / n, and that of the
cost likewise. Bold is what did not hold.
"""

UNSOUND = """These runs were measured and do not count: without faults in the spec, the machine
lost hosts or was late. They say more about the machine than about a policy.
"""


def _coverage(rows: Sequence[Prediction], asked: Mapping[str, int]) -> Iterator[str]:
    yield "| load | runs measured | of |\n|---|--:|--:|"
    for load, count in asked.items():
        cases = {(row.controller, row.seed) for row in rows if row.load == load}
        yield f"| {load} | {len(cases)} | {count} |"
    yield ""


def _errors(rows: Sequence[Prediction]) -> Iterator[str]:
    yield "| figure | limit | predicted by | " + " | ".join(ROLES) + " |"
    yield "|---|---|---|" + "---|" * len(ROLES)
    for name, figure in FIGURES.items():
        for by in dict.fromkeys(row.by for row in rows):
            cells = []
            for role in ROLES:
                own = [row for row in rows if (row.figure, row.by, row.role) == (name, by, role)]
                cells.append(_error_cell(own, points=figure.points is not None))
            title = f"{figure.title}, {figure.unit}" if figure.unit else figure.title
            yield f"| {title} | {figure.limit} | {by} | " + " | ".join(cells) + " |"
    yield ""


def _error_cell(rows: Sequence[Prediction], *, points: bool) -> str:
    if not rows:
        return ""
    scale, unit = (1, "") if points else (100, " %")
    errors = [scale * row.error for row in rows]
    text = f"{fmean(map(abs, errors)):.1f}{unit} ({fmean(errors):+.1f})"
    verdicts = [row.holds for row in rows if row.holds is not None]
    return f"{text}, {sum(verdicts)} of {len(verdicts)}" if verdicts else text


def _orders(orders: Sequence[Order]) -> Iterator[str]:
    orders = [order for order in orders if order.controllers > 2]
    if not orders:
        yield "No load has three controllers yet.\n"
        return
    titles = " | ".join(FIGURES[name].title for name in RANKED_BY)
    yield f"| load | predicted by | runs | {titles} |\n|---|---|---|" + "--:|" * len(RANKED_BY)
    short = short_names({order.load: order.load.split()[0] for order in orders})
    for (load, by, role), own in gathered(
        ((order.load, order.by, order.role), order) for order in orders
    ).items():
        of = {order.figure: order for order in own}
        cells = " | ".join(_tau_cell(of.get(name)) for name in RANKED_BY)
        yield f"| {short[load]} | {by} | {role} | {cells} |"
    yield ""


def _tau_cell(order: Order | None) -> str:
    if order is None or order.tau is None:
        return ""
    return _bold(f"{order.tau:.2f}", round(order.tau, 2) >= LEAST_TAU)


def _recommendations(made: Sequence[Promise]) -> Iterator[str]:
    promised = [promise for promise in made if promise.controller is not None]
    if not promised:
        yield "None yet.\n"
        return
    for by in dict.fromkeys(promise.by for promise in promised):
        own = [promise for promise in promised if promise.by == by]
        shares, costs = (
            sum(promise.share_holds for promise in own),
            sum(promise.cost_holds for promise in own),
        )
        none = sum(promise.by == by for promise in made) - len(own)
        runs = len({(promise.load, promise.seed, promise.controller) for promise in own})
        yield (
            f"**{by}**: {len(own)} recommendations, tried in {runs} runs; {shares} held the share "
            f"and {costs} the range of the cost. For {none} no controller was sure.\n"
        )
    titles = "asked, % | promised | measured | hosts, cost | measured"
    yield f"| predicted by | load | seed | controller | {titles} |"
    yield "|---|---|--:|---|---|--:|--:|---|--:|"
    short = short_names({promise.load: promise.load.split()[0] for promise in promised})
    names = short_names(
        {str(promise.controller): str(promise.controller).split()[0] for promise in promised}
    )
    for (by, load, seed, name), promises in gathered(
        ((promise.by, promise.load, promise.seed, str(promise.controller)), promise)
        for promise in promised
    ).items():
        asked = ", ".join(
            _bold(f"{promise.asked_percent:g}", promise.share_holds) for promise in promises
        )
        of = promises[0]
        cost = _bold(f"{of.measured_cost:.1f}", of.cost_holds)
        yield (
            f"| {by} | {short[load]} | {seed} | {names[name]} | {asked} "
            f"| {of.promised_percent:.1f} | {of.measured_percent:.1f} "
            f"| {of.lowest_cost:.1f} to {of.highest_cost:.1f} | {cost} |"
        )
    yield ""


def _bold(text: str, holds: bool | None) -> str:
    """What is beyond a limit stands out."""
    return f"**{text}**" if holds is False else text
