"""Which share of the items of each operator met which compliance level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from include.reports.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LABELS = ("real-time (1 x)", "near real-time (2 x)", "relaxed (5 x)", "later")


def draw(run: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """One stacked bar per scope from the rows of `compliance` of one run, top to bottom."""
    figure, (axis,) = style.panels([0.27 * len(rows) + 0.85])
    names = [_label(row["scope"]) for row in rows]
    left = [0.0] * len(rows)
    for label, colour, shares in zip(_LABELS, style.LEVELS, _shares(rows), strict=True):
        axis.barh(names, shares, left=left, color=colour, label=label, height=0.68)
        left = [a + b for a, b in zip(left, shares, strict=True)]
    for position, row in enumerate(rows):
        share = row["real_time_compliance_percent"] or 0.0
        known = row["real_time_compliance_percent"] is not None
        axis.text(
            1.2 if share > 8 else share + 1.2,
            position,
            f"{share:.0f} %" if known else "nothing was sampled",
            va="center",
            fontsize=8.5,
            color="#ffffff" if share > 8 else style.TEXT,
        )
    _diamonds(axis, rows)
    axis.invert_yaxis()
    axis.set_xlim(0, 100)
    axis.set_xlabel("percent of sampled items", fontsize=9.5)
    axis.tick_params(labelsize=9)
    axis.grid(visible=False, axis="y")
    axis.tick_params(axis="y", length=0)
    figure.legend(
        loc="outside upper left",
        ncols=5,
        frameon=False,
        labelcolor=style.TEXT,
        fontsize=9,
        handlelength=1,
        columnspacing=1.4,
    )
    return style.as_svg(figure, f"compliance {run}", f"SLA compliance per operator of run {run}")


def _diamonds(axis: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """Where the relaxed share of every scope would be if overdue items that were left counted."""
    strict = [row["strict_relaxed_compliance_percent"] for row in rows]
    places = [place for place, share in enumerate(strict) if share is not None]
    if places:
        axis.plot(
            [strict[place] for place in places], places, linestyle="", marker="D", markersize=4.5,
            color=style.TEXT, label="strict relaxed",
        )  # fmt: skip


def in_order(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Rows as they are drawn: totals first, operators after them by name."""
    return sorted(rows, key=lambda row: (_rank(row["scope"]), row["scope"]))


def _rank(scope: str) -> int:
    return 0 if scope == "overall" else 1 if scope.startswith("without_") else 2


def _shares(rows: Sequence[Mapping[str, Any]]) -> list[list[float]]:
    """Items per level without those of the stricter level; the rest is later."""
    limits = [
        [row[f"{level}_compliance_percent"] or 0.0 for row in rows]
        for level in ("real_time", "near_real_time", "relaxed")
    ]
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
