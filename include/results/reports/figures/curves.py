"""Load, hosts and instances over time with one line per policy, as Figs. 8-11 of PeerJ CS 141."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from include.results.reports.figures import style

COLOURS = ("#7db8e8", "#2f7fc1", "#6a58c8", "#d97a1f")
"""The BTU-based approach from the shortest BTU to the longest, then the threshold."""

Curve = Sequence[tuple[float, float, float, float]]


def scale_of(curves: Iterable[Curve], length_min: float) -> style.Scale:
    """Axes that fit the curves of every policy, and of every pattern that is compared."""
    rows = [row for curve in curves for row in curve]
    limits = tuple((0.0, style.up_to(row[column] for row in rows)) for column in (1, 2, 3))
    return style.Scale(length_min, limits)


def draw(pattern: str, curves: Mapping[str, Curve], scale: style.Scale) -> str:
    """Three panels from the curves of each policy by its name, means over seeds.

    A curve has minute, level, hosts and instances at every monitoring time.
    """
    figure, axes = style.panels([0.95, 1.5, 1.9])
    first = next(iter(curves.values()))
    axes[0].fill_between(
        [row[0] for row in first], [row[1] for row in first], step="post",
        color=style.LOAD, alpha=0.35, linewidth=0,
    )  # fmt: skip
    for column, axis in ((2, axes[1]), (3, axes[2])):
        for (policy, curve), colour in zip(curves.items(), COLOURS, strict=False):
            axis.plot(
                [row[0] for row in curve], [row[column] for row in curve], label=policy,
                color=colour, linewidth=1.3, drawstyle="steps-post",
            )  # fmt: skip
    titles = ("Load: machines that publish", "Hosts leased", "Operator instances")
    for axis, title, limits in zip(axes, titles, scale.limits, strict=True):
        style.counted(axis, title, limits)
    style.legend_above(axes[2], 4, handlelength=1.6)
    style.minutes(axes[-1], scale.length_min)
    description = f"Load, hosts and operator instances over the minutes of pattern {pattern}"
    return style.as_svg(figure, f"curves {pattern}", description)
