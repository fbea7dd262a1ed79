"""Figures of one run, drawn from its published rows when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from threading import Lock

from include.reports.results import read_run

FIGURES: Mapping[str, tuple[str, str]] = {
    "timeline": ("timeline", "Load, hosts, instances and waiting items over time"),
    "compliance": ("compliance", "Compliance, total and by operator"),
    "scaling": ("scaling", "Scaling activities over time"),
}
"""The table that each is drawn from, and what it shows."""
_DRAWING = Lock()
"""matplotlib keeps its settings in one place for all threads."""


def figure_of(database_url: str, experiment: str, run: str, figure: str) -> str | None:
    """The figure as SVG, dark on white; None when no such run was published."""
    found = read_run(database_url, experiment, run)
    if found is None:
        return None
    edition = str(found["runs"][0]["edition"])
    with _DRAWING:
        return _drawn(database_url, experiment, run, figure, edition)


@lru_cache(maxsize=256)
def _drawn(database_url: str, experiment: str, run: str, figure: str, edition: str) -> str | None:
    """Drawn once per edition: what is published does not change."""
    from include.reports.figures import compliance, scaling, style, timeline

    table, _ = FIGURES[figure]
    found = read_run(database_url, experiment, run, (table,))
    if found is None:
        return None
    rows, length_min = found[table], found["runs"][0]["duration_min"]
    if figure == "compliance":
        svg = compliance.draw(run, compliance.in_order(rows))
    else:
        draw = timeline.draw if figure == "timeline" else scaling.draw
        svg = draw(run, rows, length_min)
    return style.standalone(svg)
