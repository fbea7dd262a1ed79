"""A figure that is drawn once for all runs on the same axes, and filled in for each of them.

What differs from run to run are a few paths. matplotlib takes half a second for a figure, writing
these takes a millisecond, so that a thousand runs can have figures of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from include.results.reports.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RUN = "0run0"
"""Stands for the run in ids and texts of a frame: an id keeps letters and digits."""


@dataclass(frozen=True, slots=True)
class Panel:
    """Where data lies in the picture, in points: x and y times a factor, then moved."""

    factors: tuple[float, float]
    origin: tuple[float, float]

    def holding(self, shapes: str) -> str:
        """SVG elements whose coordinates are data."""
        numbers = (self.factors[0], 0, 0, self.factors[1], *self.origin)
        return (
            f'<g transform="matrix({" ".join(f"{number:.6g}" for number in numbers)})">{shapes}</g>'
        )

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The point of the picture for a point of the data."""
        return self.origin[0] + self.factors[0] * x, self.origin[1] + self.factors[1] * y


def beyond(panel: Panel, right: float, edge: float, furthest: float) -> str:
    """A note at the right end of an axis for what goes further than its ``edge``, else nothing."""
    if furthest <= abs(edge):
        return ""
    x, y = panel.at(right, edge)
    text = f"leaves the chart: {furthest:,.0f}"
    look = f"{style.FONT}; fill: currentColor; text-anchor: end"
    y += 10 if edge > 0 else -4
    return f'<text style="{look}" x="{x - 2:.1f}" y="{y:.1f}">{text}</text>'


@dataclass(frozen=True, slots=True)
class Frame:
    """Axes, titles and legend as SVG, and the panels between them, from top to bottom."""

    svg: str
    panels: tuple[Panel, ...]

    def filled(self, run: str, shapes: Iterable[str]) -> str:
        """The figure of one run: ``shapes`` are SVG elements, drawn above each other."""
        svg = self.svg.replace(f"-{RUN}", f"-{style.id_of(run)}")
        before, end, rest = svg.replace(RUN, escape(run, quote=False)).rpartition("</g>")
        return "".join([before, *shapes, end, rest])


def framed(figure: Figure, axes: Sequence[Axes], kind: str, description: str) -> Frame:
    """The frame that a figure without data makes; ``description`` ends with the run."""
    svg = style.as_svg(figure, f"{kind} {RUN}", f"{description} {RUN}")
    width, height = figure.get_figwidth() * 72, figure.get_figheight() * 72
    return Frame(svg, tuple(_panel(axis, width, height) for axis in axes))


def step_path(points: Sequence[tuple[float, float]]) -> str:
    """An SVG path through (minute, value) in steps, which turns only where the value does, to the
    last minute."""
    (begin_min, before), *later = points
    path = f"M{begin_min:g} {before:g}"
    for minute, value in later:
        if value != before:
            path += f"H{minute:g}V{value:g}"
            before = value
    return f"{path}H{points[-1][0]:g}"


def line(colour: str, width: float, path: str) -> str:
    """A path as a line whose width is that of the picture."""
    return (
        f'<path fill="none" stroke="{colour}" stroke-width="{width:g}" '
        f'vector-effect="non-scaling-stroke" d="{path}"/>'
    )


def area(colour: str, opacity: str, points: Sequence[tuple[float, float]]) -> str:
    """What is between points, in steps, and 0."""
    path = f"{step_path(points)}V0H{points[0][0]:g}Z"
    return f'<path fill="{colour}" fill-opacity="{opacity}" d="{path}"/>'


def _panel(axis: Axes, width: float, height: float) -> Panel:
    place, (left, right), (low, high) = axis.get_position(), axis.get_xlim(), axis.get_ylim()
    across, up = place.width * width / (right - left), -place.height * height / (high - low)
    bottom = (1 - place.y0) * height
    return Panel((across, up), (place.x0 * width - across * left, bottom - up * low))
