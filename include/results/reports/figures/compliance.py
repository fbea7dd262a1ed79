"""Which share of the items of each operator met which compliance level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from include.model.compliance import LEVEL_NAMES
from include.results.reports.figures import style
from include.results.reports.figures.frame import Frame, Panel, framed

_THICK = 0.68
_LABELS = ("real-time (1 x)", "near real-time (2 x)", "relaxed (5 x)", "later")
_DIAMOND = "#1c2126"
"""In any theme, as the bars are."""


def draw(run: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """One stacked bar per scope from the rows of `compliance` of one run, top to bottom."""
    strict = [row["strict_relaxed_compliance_percent"] for row in rows]
    frame = _frame(tuple(_label(row["scope"]) for row in rows), strict != [None] * len(rows))
    (panel,) = frame.panels
    shares = [_share(panel, place, row) for place, row in enumerate(rows)]
    return frame.filled(run, [panel.holding(_bars(rows)), _diamonds(panel, strict), *shares])


@lru_cache(maxsize=64)
def _frame(names: tuple[str, ...], strict: bool) -> Frame:
    figure, (axis,) = style.panels([0.27 * len(names) + 0.85])
    for label, colour in zip(_LABELS, style.LEVELS, strict=True):
        axis.barh(names, 0, color=colour, label=label, height=_THICK)
    if strict:
        axis.plot(
            [], linestyle="", marker="D", markersize=4.5, color=_DIAMOND, mec="#ffffff",
            mew=0.6, label="strict relaxed",
        )  # fmt: skip
    axis.set_ylim(max(len(names), 1) - 0.5, -0.5)
    axis.set_xlim(0, 100)
    axis.set_xlabel("percent of sampled items", fontsize=9.5)
    axis.tick_params(labelsize=9)
    axis.grid(visible=False, axis="y")
    axis.tick_params(axis="y", length=0)
    style.legend_above(axis, 5, handlelength=1)
    return framed(figure, [axis], "compliance", "SLA compliance per operator of run")


def _bars(rows: Sequence[Mapping[str, Any]]) -> str:
    left, shapes = [0.0] * len(rows), ""
    for colour, shares in zip(style.LEVELS, _shares(rows), strict=True):
        path = ""
        for place, share in enumerate(shares):
            path += f"M{left[place]:g} {place - _THICK / 2:g}h{share:g}v{_THICK}h{-share:g}z"
            left[place] += share
        shapes += f'<path fill="{colour}" d="{path}"/>'
    return shapes


def _share(panel: Panel, place: int, row: Mapping[str, Any]) -> str:
    """The real-time share in words, inside its bar where that is wide enough."""
    percent = row["real_time_compliance_percent"]
    share = percent or 0.0
    x, y = panel.at(1.2 if share > 8 else share + 1.2, place)
    text = "nothing was sampled" if percent is None else f"{share:.0f} %"
    colour = "#ffffff" if share > 8 else "currentColor"
    return f'<text style="{style.FONT}; fill: {colour}" x="{x:.1f}" y="{y + 3:.1f}">{text}</text>'


def _diamonds(panel: Panel, strict: Sequence[float | None]) -> str:
    """Where the relaxed share of every scope would be if overdue items that were left counted."""
    path = ""
    for place, share in enumerate(strict):
        if share is not None:
            x, y = panel.at(share, place)
            path += f"M{x:.1f} {y - 3.2:.1f}l3.2 3.2-3.2 3.2-3.2-3.2z"
    return f'<path fill="{_DIAMOND}" stroke="#fff" stroke-width=".6" d="{path}"/>' if path else ""


def in_order(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Rows as they are drawn: totals first, operators after them by name."""

    def place(row: Mapping[str, Any]) -> tuple[bool, bool, str]:
        scope = row["scope"]
        return scope != "overall", not scope.startswith("without_"), scope

    return sorted(rows, key=place)


def _shares(rows: Sequence[Mapping[str, Any]]) -> list[list[float]]:
    """Items per level without those of the stricter level; the rest is later."""
    limits = [[row[f"{level}_compliance_percent"] or 0.0 for row in rows] for level in LEVEL_NAMES]
    whole = [100.0 if row["sampled_items"] else 0.0 for row in rows]
    steps = [[0.0] * len(rows), *limits, whole]
    return [
        [wide - strict for strict, wide in zip(below, above, strict=True)]
        for below, above in pairwise(steps)
    ]


def _label(scope: str) -> str:
    """without_o2_o6 as people write it; other scopes are names already."""
    if not scope.startswith("without_"):
        return scope
    return "without " + ", ".join(scope.removeprefix("without_").upper().split("_"))
