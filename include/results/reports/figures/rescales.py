"""When an engine stopped its job: over the items that waited, and how long its outputs were silent.

Figures of engines alone: nothing is drawn where no run has a row of `rescales`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

from include.results.reports.figures import style
from include.results.reports.figures.frame import Frame, area, beyond, framed, line
from include.results.tables.staged import Rows

CAUSES = {"controller": style.INSTANCES, "crash": "#c8443a", "engine": style.KEPT}
_LINES = ("-", "--", ":", "-.")
_COLOURS = (style.INSTANCES, style.HOSTS, style.WAITING, "#2f9360", "#c8443a", style.LOAD)
ROW_IN = 0.2
"""Height of a row of the legend."""
LONGEST_NAME = 24
"""Three longer ones have no room beside each other."""


def scale_of(rescales: Rows, timeline: Rows, length_min: float) -> style.Scale:
    """Axes that fit the rows of `rescales` and `timeline` of most runs that are compared.

    ``length_min`` is the length of the longest.
    """
    waiting = style.up_to_most(timeline, itemgetter("waiting_items"))
    gaps_s = (row["gap_s"] for row in rescales if row["gap_s"] is not None)
    return style.Scale(length_min, ((0.0, waiting), (0.0, style.up_to(gaps_s))))


def draw(run: str, rescales: Rows, timeline: Rows, scale: style.Scale) -> str:
    """Waiting items with a line where the job stopped, and below the gap of each stop.

    A gap that is not known has no line. Rows are those of one run, in time order.
    """
    if not rescales:
        return ""
    frame = _frame(scale)
    (_, highest), _ = scale.limits
    waits, gaps = frame.panels
    stops = "".join(_line(row, highest) for row in rescales)
    furthest = max((row["waiting_items"] or 0 for row in timeline), default=0)
    return frame.filled(
        run,
        [
            waits.holding(_area(timeline, highest) + stops),
            beyond(waits, scale.length_min, highest, furthest),
            gaps.holding("".join(_line(row, row["gap_s"] or 0.0, 2.5) for row in rescales)),
        ],
    )


@lru_cache(maxsize=64)
def _frame(scale: style.Scale) -> Frame:
    from matplotlib.patches import Patch

    figure, axes = style.panels([1.5, 1.1])
    titles = ("Items waiting in all queues, and stops of the job", "Gap of each stop, s")
    for axis, title, limits in zip(axes, titles, scale.limits, strict=True):
        style.titled(axis, title)
        axis.set_ylim(*limits)
        axis.grid(visible=False, axis="x")
        axis.tick_params(labelsize=9)
    style.whole(axes[0])
    style.legend(axes[0], [Patch(color=colour, label=cause) for cause, colour in CAUSES.items()])
    style.minutes(axes[-1], scale.length_min)
    return framed(figure, axes, "rescales", "Stops of the job and their gaps over the minutes of")


def _line(row: Mapping[str, Any], height: float, width: float = 1.0) -> str:
    """Upright at the time of a stop."""
    return line(CAUSES[row["cause"]], width, f"M{row['down_s'] / 60:g} 0V{height:g}")


def _area(rows: Rows, top: float) -> str:
    points = [
        (row["time_s"] / 60, min(row["waiting_items"], top))
        for row in rows
        if row["waiting_items"] is not None
    ]
    return area(style.WAITING, ".35", points) if points else ""


def draw_gaps(gaps_s: Mapping[str, Sequence[float]]) -> str:
    """The share of the stops with a gap of at most so many seconds, one line per controller."""
    lines = {name: sorted(gaps) for name, gaps in gaps_s.items() if gaps}
    if not lines:
        return ""
    columns = 3 if max(map(len, lines)) <= LONGEST_NAME else 1
    figure, (axis,) = style.panels([2.4 + ROW_IN * -(-len(lines) // columns)])
    longest_s = max(gaps[-1] for gaps in lines.values())
    for place, (name, gaps) in enumerate(sorted(lines.items())):
        shares = [(at + 1) / len(gaps) for at in range(len(gaps))]
        axis.step(
            [0.0, *gaps, longest_s * 1.05], [0.0, *shares, 1.0], where="post", linewidth=1.4,
            color=_COLOURS[place % len(_COLOURS)], linestyle=_LINES[place // len(_COLOURS) % 4],
            label=f"{name} ({len(gaps)})",
        )  # fmt: skip
    axis.set_xlim(0, longest_s * 1.05)
    axis.set_ylim(0, 1.02)
    axis.set_xlabel("gap of a stop, s", fontsize=9.5)
    axis.set_ylabel("share of stops", fontsize=9.5)
    axis.tick_params(labelsize=9)
    style.legend_above(axis, columns, handlelength=1.8)
    return style.as_svg(figure, "rescale-gaps", "Distribution of the gaps of stops by controller")
