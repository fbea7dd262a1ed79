"""Cost against what was got for it: a line per controller, two panels per workload."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from include.results.reports.figures import style
from include.results.reports.tournament import GROUPS, METRICS, OTHERS, Match, Standing, short_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = 4
"""Workloads beside each other, at most."""
COLOURS = dict(zip(GROUPS, ("#2f7fc1", "#d97a1f", "#8a97a6", "#2f9360"), strict=True))
COST = "resource_cost"
TITLE = 76
"""Characters that fit above all panels of a row; headings of the page have the whole title."""

Lines = Mapping[str, float]
"""Controllers, and how far down each one's line is."""


def draw(matches: Sequence[Match]) -> str:
    """Means with their 95 % confidence intervals, the groups of controllers below each other.

    Large points are on the Pareto front of their workload.
    """
    groups = _groups(matches)
    lines, titles = _lines(groups)
    shown = short_names(
        {each.name: each.controller for match in matches for each in match.standings}
    )
    rows = max(1, math.ceil(len(matches) / COLUMNS))
    most = max(1, math.ceil(len(matches) / rows))  # five are three and two
    blocks = [matches[at : at + most] for at in range(0, len(matches), most)]
    height_in = 0.155 * (max(lines.values(), default=0) + 1) + 0.85
    figure, axes = style.grid(len(blocks), 2 * most, height_in)
    for block, row in enumerate(blocks):
        row_axes = axes[2 * most * block : 2 * most * (block + 1)]
        for place, match in enumerate(row):
            got, paid = row_axes[2 * place : 2 * place + 2]
            topology, *about = match.title.split(" · ")
            fits = textwrap.shorten(
                ", ".join(about), TITLE // most, placeholder=" …", break_on_hyphens=False
            )
            style.titled(got, f"{topology}\n{fits}")
            _panels(got, paid, match, lines)
        for unused in row_axes[2 * len(row) :]:
            unused.set_visible(False)
        _names(row_axes[0], groups, lines, titles, shown)
    end_to_end = any(match.end_to_end for match in matches)
    quality = "End-to-end compliance" if end_to_end else "Strict compliance or utility"
    description = f"{quality}, and cost of the hosts, of every controller"
    return style.as_svg(figure, "tournament", description)


def _groups(matches: Sequence[Match]) -> list[tuple[str, list[str]]]:
    """The controllers that have a point somewhere, by group."""
    drawn = {
        (GROUPS.index(standing.group), standing.name)
        for match in matches
        for standing in match.standings
        if _is_drawn(standing, match)
    }
    by_group = groupby(sorted(drawn), lambda place: GROUPS[place[0]])
    return [(group, [name for _, name in names]) for group, names in by_group]


def _is_drawn(standing: Standing, match: Match) -> bool:
    cost = standing.cells.get(COST)
    return cost is not None and cost.mean > 0 and match.quality in standing.cells


def _lines(groups: Sequence[tuple[str, Sequence[str]]]) -> tuple[Lines, Lines]:
    """Where each controller is, and the title of each group."""
    lines, titles, down = dict[str, float](), dict[str, float](), 0.0
    for group, names in groups:
        titles[group] = down
        lines |= {name: down + 1 + at for at, name in enumerate(names)}
        down += len(names) + 1.6
    return lines, titles


def _panels(got: Axes, paid: Axes, match: Match, lines: Lines) -> None:
    """What was got on the left, what the hosts cost on the right."""
    shown = [standing for standing in match.standings if _is_drawn(standing, match)]
    places = [place_of(standing, match.quality) for standing in shown]
    for standing in shown:
        down, colour = lines[standing.name], COLOURS[standing.group]
        for axis, metric in ((got, match.quality), (paid, COST)):
            cell = standing.cells[metric]
            half = cell.half or 0.0
            axis.plot(
                [max(cell.mean - half, 0.1 * cell.mean), cell.mean + half], [down, down],
                color=colour, linewidth=1, zorder=2,
            )  # fmt: skip
            axis.plot(
                cell.mean, down, color=colour, linestyle="", marker="o", zorder=3, clip_on=False,
                markersize=6 if unbeaten(place_of(standing, match.quality), places) else 2.6,
            )  # fmt: skip
    for axis, metric in ((got, match.quality), (paid, COST)):
        axis.set_ylim(max(lines.values(), default=0) + 0.8, -0.8)
        axis.set_yticks(list(lines.values()), [])
        axis.tick_params(labelsize=8, length=0)
        axis.set_xlabel(METRICS[metric][0], fontsize=7)
        axis.grid(visible=True, axis="y", alpha=0.5)
    got.set_xlim(0, 104)
    got.set_xticks([0, 50, 100])
    paid.set_xscale("log")
    _plain_ticks(paid)


def unbeaten(place: tuple[float, float], others: Iterable[tuple[float, float]]) -> bool:
    """Whether no other point is at least as low in both and lower in one."""
    return not any(
        other != place and other[0] <= place[0] and other[1] <= place[1] for other in others
    )


def place_of(standing: Standing, quality: str) -> tuple[float, float]:
    """The means of cost and, negative, of ``quality``: lower is better in both."""
    return standing.cells[COST].mean, -standing.cells[quality].mean


def _names(
    axis: Axes,
    groups: Sequence[tuple[str, Sequence[str]]],
    lines: Lines,
    titles: Lines,
    shown: Mapping[str, str],
) -> None:
    """Controllers at the left, in the colour of their group, below its title."""
    named = [(titles[group], group or OTHERS, COLOURS[group], "bold") for group, _ in groups]
    named += [
        (lines[name], shown[name], COLOURS[group], "normal")
        for group, names in groups
        for name in names
    ]
    axis.set_yticks([down for down, *_ in named], [text for _, text, *_ in named])
    for label, (_, _, colour, weight) in zip(axis.get_yticklabels(), named, strict=True):
        label.set(color=colour if weight == "bold" else style.TEXT, fontweight=weight)
    # A title has no line of its own.
    for line, (*_, weight) in zip(axis.yaxis.get_gridlines(), named, strict=True):
        line.set_visible(weight != "bold")


def _plain_ticks(axis: Axes) -> None:
    """The lowest and the highest of 1, 2, 5, 10, ... between the ends, there is room for two; of 1,
    2, 3, ... or 10, 11, 12, ... where fewer are between them."""
    low, high = axis.get_xlim()
    ends = list[float]()
    for digits in ((1, 2, 5), range(1, 10), range(10, 100)):
        steps = (digit * 10.0**power for power in range(-6, 10) for digit in digits)
        inside = [step for step in steps if low <= step <= high]
        ends = sorted({min(inside), max(inside)}) if inside else []
        if len(ends) > 1:
            break
    axis.set_xticks(ends, [f"{step:g}" for step in ends])
    axis.set_xticks([], minor=True)
