"""How every figure looks, and how it becomes an inline SVG that is the same byte for byte.

Text and lines take the colours of the page through CSS, so that one figure is readable on a
light and on a dark background; the series colours are of middle lightness for both.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOAD, HOSTS, INSTANCES, WAITING = "#8a97a6", "#d97a1f", "#2f7fc1", "#9a63b5"
UP, DOWN, MOVED, KEPT = "#2f7fc1", "#d97a1f", "#9a63b5", "#8a97a6"
LEVELS = ("#157f78", "#4fb0a5", "#a9d5cd", "#d9604a")

FONT = "font-size: 8.5px; font-family: 'DejaVu Sans', 'Verdana', sans-serif"
TEXT, _LINE = "#101112", "#d0d1d2"
_CSS = {TEXT: "currentColor", _LINE: "var(--line)"}
_SETTINGS: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana"],
    "font.size": 9.5,
    "text.color": TEXT,
    "axes.labelcolor": TEXT,
    "axes.edgecolor": _LINE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _LINE,
    "grid.linewidth": 0.6,
    "xtick.color": _LINE,
    "xtick.labelcolor": TEXT,
    "ytick.color": _LINE,
    "ytick.labelcolor": TEXT,
    "svg.fonttype": "none",
}


@dataclass(frozen=True, slots=True)
class Scale:
    """The axes of a figure, for all figures it is compared with: their x axis in minutes, and
    where the y axis of each panel begins and ends."""

    length_min: float
    limits: tuple[tuple[float, float], ...]


def up_to(values: Iterable[float]) -> float:
    """Where an axis ends that shows all of these and has some room above them."""
    return max([1.0, *values]) * 1.08


BEYOND = 3.0
"""A run whose highest value is more than so many times the median of all leaves the chart."""


def up_to_most(rows: Iterable[Mapping[str, Any]], value: Callable[[Any], float | None]) -> float:
    """Where an axis ends that compares runs: one run far above the others, which would make lines
    on the ground of all of them, leaves it."""
    highest: dict[str, float] = {}
    for row in rows:
        if (of_row := value(row)) is not None and of_row > highest.get(row["run"], 0.0):
            highest[row["run"]] = of_row
    most = BEYOND * median(highest.values()) if highest else 0.0
    return up_to(peak for peak in highest.values() if peak <= most)


def share_limits(axes: Sequence[Axes]) -> None:
    """Give panels that were drawn the limits that fit all of them."""
    low, high = zip(*(axis.get_ylim() for axis in axes), strict=True)
    left, right = zip(*(axis.get_xlim() for axis in axes), strict=True)
    for axis in axes:
        axis.set_ylim(min(low), max(high))
        axis.set_xlim(min(left), max(right))


WIDTH_IN = 7.6


def panels(heights: Sequence[float], width_in: float = WIDTH_IN) -> tuple[Figure, list[Axes]]:
    """A figure of panels above each other that share the x axis; heights in inches."""
    shared = {"sharex": True, "height_ratios": list(heights)}
    return _drawn((width_in, sum(heights)), len(heights), 1, **shared)


def grid(rows: int, columns: int, height_in: float) -> tuple[Figure, list[Axes]]:
    """A figure of panels in rows and columns, each with axes of its own, row by row."""
    return _drawn((WIDTH_IN, rows * height_in), rows, columns)


def _drawn(
    size_in: tuple[float, float], rows: int, columns: int, **options: Any
) -> tuple[Figure, list[Axes]]:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_SETTINGS):
        figure = Figure(figsize=size_in, layout="constrained")
        return figure, list(figure.subplots(rows, columns, squeeze=False, **options).flat)


def minutes(axis: Axes, length_min: float) -> None:
    """Label the x axis in minutes of the run, at round numbers."""
    from matplotlib.ticker import MaxNLocator

    axis.set_xlim(0, length_min)
    axis.xaxis.set_major_locator(MaxNLocator(nbins=12, steps=[1, 2, 3, 5, 6, 10], integer=True))
    axis.set_xlabel("minutes", fontsize=9.5)
    axis.tick_params(labelsize=9)


def titled(axis: Axes, text: str) -> None:
    """What a panel shows, above its left end."""
    axis.set_title(text, loc="left", fontsize=9.5, fontweight="bold", pad=5)


def counted(axis: Axes, title: str, limits: tuple[float, float]) -> None:
    """A panel of whole numbers over time: its title and where its y axis begins and ends."""
    titled(axis, title)
    axis.set_ylim(*limits)
    whole(axis)
    axis.grid(visible=False, axis="x")


def legend(axis: Axes, handles: Sequence[Artist]) -> None:
    """What the colours of a panel mean, above its right end."""
    axis.legend(
        handles=handles, loc="lower right", bbox_to_anchor=(1, 1), ncols=len(handles),
        frameon=False, labelcolor=TEXT, fontsize=9, handlelength=1, borderaxespad=0.2,
        columnspacing=1.4,
    )  # fmt: skip


def legend_above(axis: Axes, columns: int, **look: Any) -> None:
    """What the colours of a panel mean, above the left end of its figure."""
    axis.figure.legend(
        *axis.get_legend_handles_labels(), loc="outside upper left", ncols=columns, frameon=False,
        **{"fontsize": 9, "columnspacing": 1.4, "labelcolor": TEXT, **look},
    )  # fmt: skip


def whole(axis: Axes, bins: int = 4) -> None:
    """Whole numbers on the y axis: there is no half host."""
    from matplotlib.ticker import MaxNLocator

    axis.yaxis.set_major_locator(MaxNLocator(nbins=bins, integer=True))
    axis.tick_params(labelsize=9)


def as_svg(figure: Figure, name: str, description: str) -> str:
    """The figure as an ``<svg>`` element; ``name``, unique on the page, starts all its ids."""
    from matplotlib import rc_context

    sink = io.StringIO()
    with rc_context({**_SETTINGS, "svg.hashsalt": f"tidebench-{name}"}):
        figure.savefig(sink, format="svg", transparent=True, metadata={"Date": None})
    svg = sink.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = _without_ballast(svg)
    prefix = id_of(name)
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", svg)
    for placeholder, colour in _CSS.items():
        svg = svg.replace(placeholder, colour)
    svg = re.sub(r'^<svg [^>]*?(viewBox="[^"]*")[^>]*>', _opening(prefix), svg, count=1)
    return svg.replace("@description@", escape(description, quote=False), 1)


def id_of(name: str) -> str:
    """A name as an id, which keeps letters and digits."""
    return re.sub(r"[^a-zA-Z0-9]+", "-", name)


def _without_ballast(svg: str) -> str:
    """Without ids that nothing refers to, rotations by nothing and indentation: half the size."""
    used = set(re.findall(r'#([^")]+)', svg))
    svg = re.sub(r' id="([^"]+)"', lambda match: match[0] if match[1] in used else "", svg)
    svg = re.sub(r' transform="rotate\(-0 [^"]*"', "", svg)
    return re.sub(r" *\n *", "\n", svg)


_LIGHT = {"currentColor": "#1c2126", "var(--line)": "#dcdfe2", "paper": "#ffffff"}
_DARK = {"currentColor": "#e4e7ea", "var(--line)": "#3d444b", "paper": "#14181c"}


def standalone(svg: str) -> str:
    """The same figure for a place without the page's colours: dark on white, and light on dark for
    whoever prefers that. Coordinates are rounded to a tenth of a point."""
    for css in ("currentColor", "var(--line)"):
        svg = svg.replace(css, _LIGHT[css])
    svg = re.sub(r' d="([^"]*)"', lambda path: f' d="{_rounded(path[1])}"', svg)
    paper = f'<style>{_dark_rules()}</style><rect width="100%" height="100%" fill="#ffffff"/>'
    return svg.replace("</title>", f"</title>{paper}", 1)


def _rounded(path: str) -> str:
    short = re.sub(
        r"-?\d+\.\d+", lambda number: f"{float(number[0]):.1f}".rstrip("0").rstrip("."), path
    )
    return short.replace("\n", " ").strip()


def _dark_rules() -> str:
    """Readers that know no style sheets keep the light colours, which are in the elements."""
    rules = "".join(
        f'[style*="{what}: {light}"]{{{what}:{_DARK[css]}!important}}'
        for css, light in _LIGHT.items()
        for what in ("fill", "stroke")
    )
    rules += f'rect[fill="{_LIGHT["paper"]}"]{{fill:{_DARK["paper"]}}}'
    return f"@media (prefers-color-scheme:dark){{{rules}}}"


def _opening(prefix: str) -> str:
    return (
        rf'<svg \1 role="img" aria-labelledby="{prefix}-title" '
        'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
        rf'<title id="{prefix}-title">@description@</title>'
    )
