"""Figures of one run, drawn from its published rows when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from threading import Lock

from include.results.reports.results import read_runs

FIGURES: Mapping[str, str] = {
    "timeline": "Load, hosts, instances and waiting items over time",
    "compliance": "Compliance, total and by operator",
    "scaling": "Scaling activities over time",
}
"""What each shows, by the table that it is drawn from."""
_DRAWING = Lock()
"""matplotlib keeps its settings in one place for all threads."""


def figure_of(database_url: str, figure: str, chosen: Sequence[str]) -> str | None:
    """The figure of the first run that is asked for as SVG, dark on white.

    Its axes fit all of the runs, each given as `experiment/run`, so that their figures can be
    compared. None when the first was not published.
    """
    names = [(experiment, run) for experiment, _, run in (text.partition("/") for text in chosen)]
    tables_by_run = read_runs(database_url, names)
    if tables_by_run[0] is None:
        return None
    editions = tuple(
        (*name, str(tables["runs"][0]["edition"]))
        for name, tables in zip(names, tables_by_run, strict=True)
        if tables
    )
    with _DRAWING:
        return _drawn(database_url, figure, editions)


@lru_cache(maxsize=256)
def _drawn(database_url: str, figure: str, runs: tuple[tuple[str, str, str], ...]) -> str | None:
    """Drawn once per experiment, run and edition: what is published does not change."""
    from include.results.reports.figures import compliance, scaling, style, timeline

    names = [(experiment, run) for experiment, run, _ in runs]
    tables_by_run = read_runs(database_url, names, (figure,))
    compared = [tables for tables in tables_by_run if tables is not None]
    if tables_by_run[0] is None:
        return None
    run, rows = runs[0][1], tables_by_run[0][figure]
    if figure == "compliance":
        return style.standalone(compliance.draw(run, compliance.in_order(rows)))
    kind = timeline if figure == "timeline" else scaling
    scale = kind.scale_of(
        [row for tables in compared for row in tables[figure]],
        max(tables["runs"][0]["duration_min"] for tables in compared),
    )
    return style.standalone(kind.draw(run, rows, scale))
