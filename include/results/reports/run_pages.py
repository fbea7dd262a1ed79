"""The figures of every run, and of many runs a page for each, so that the page of all stays small.

They lie beside it as files that nothing has to run to show: it may be a server that lets no script
run, or a folder on a disk.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup, escape

from include.model.compliance import in_words
from include.model.errors import command
from include.results.reports.documents import heading, page_text
from include.results.reports.figures import advice, compliance, rescales, scaling, timeline
from include.results.tables.catalogue import schema_of
from include.results.tables.staged import Row, grouped
from include.results.templates import templates_in

MANY_RUNS = 20
"""With more than these, tables are folded and every run has a page of its own."""
FIRST_FIGURES = 3
"""Of many runs, those whose figures are on the page of all."""

Tables = Mapping[str, Sequence[Row]]
Figures = Callable[[Row], Mapping[str, Markup]]
"""The figures of a run (a row of ``runs``) by name."""


@cache
def templates() -> Environment:
    """Those of the pages; whatever is put into one is escaped."""
    environment = templates_in(Path(__file__).parent)
    environment.globals.update(command=command)
    environment.filters["with_code"] = with_code
    return environment


def with_code(text: str) -> Markup:
    """Text of a schema as HTML, with what stands in backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def on_first_page(runs: Sequence[Row]) -> Sequence[Row]:
    """Runs whose figures are on the page of all."""
    return runs if len(runs) <= MANY_RUNS else runs[:FIRST_FIGURES]


def run_pages(tables: Tables, experiment: str, figures: Figures) -> Iterator[tuple[str, str]]:
    """Name and text of the page of each of many runs; nothing where there are few."""
    runs = tables["runs"]
    if len(runs) <= MANY_RUNS:
        return
    page, about = templates().get_template("run.html.j2"), about_runs(tables)
    for run in runs:
        text = page.render(about, run=run, figures=figures(run), experiment=experiment)
        yield f"runs/{run['run']}.html", text


def about_runs(tables: Tables) -> Mapping[str, Any]:
    """What parts.html.j2 needs to know."""
    return {
        "schema_of": schema_of,
        "heading": heading,
        "in_words": in_words,
        "page_text": page_text,
        "utilisation": {row["run"]: row for row in tables["utilisation"]},
        "adapt": by_run(tables["time_to_adapt"]),
        "advisors": by_run(tables["advisors"]),
        "rescales": by_run(tables["rescales"]),
    }


def figures_of(tables: Tables) -> Figures:
    """Draws the figures of a run; runs of one topology are compared, so they share their axes.

    Their frames are made by matplotlib and filled with numbers; both escape their text.
    """
    drawn = ("timeline", "compliance", "scaling", "advisors_timeline", "rescales")
    rows = {table: by_run(tables[table]) for table in drawn}
    scales = {}
    for topology, compared in grouped(tables["runs"], itemgetter("topology")).items():
        length_min = max(run["duration_min"] for run in compared)
        shared = {
            table: [row for run in compared for row in rows[table].get(run["run"], ())]
            for table in drawn
        }
        scales[topology] = (
            timeline.scale_of(shared["timeline"], length_min),
            scaling.scale_of(shared["scaling"], length_min),
            advice.scale_of(shared["advisors_timeline"], length_min),
            rescales.scale_of(shared["rescales"], shared["timeline"], length_min),
        )

    def figures(run: Row) -> Mapping[str, Markup]:
        name, (over_time, activity, advised, stops) = run["run"], scales[run["topology"]]
        own = {table: rows[table].get(name, []) for table in drawn}
        drawings = {
            "timeline": timeline.draw(name, own["timeline"], over_time),
            "compliance": compliance.draw(name, compliance.in_order(own["compliance"])),
            "scaling": scaling.draw(name, own["scaling"], activity),
            "advice": advice.draw(name, own["advisors_timeline"], advised),
            "rescales": rescales.draw(name, own["rescales"], own["timeline"], stops),
        }
        return {figure: Markup(drawing) for figure, drawing in drawings.items()}

    return figures


def by_run(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows by the run that they are about."""
    return grouped(rows, itemgetter("run"))
