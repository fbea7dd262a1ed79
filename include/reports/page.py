"""report.html: one file with everything in it, so that it can be mailed, printed and kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from include.reports.comparison import (
    Comparison,
    Reference,
    compare_compliance,
    compare_cost,
    nothing_printed,
    printed_for,
)
from include.reports.documents import shown
from include.reports.figures import compliance, scaling, timeline
from include.reports.figures import tournament as tournament_figure
from include.reports.names import named
from include.reports.tournament import METRICS, is_tournament, matches
from include.tables.catalogue import PUBLISHED, schema_of
from include.tables.staged import Row

OPEN_FIGURES = 3
"""Runs whose figures are open when the page is; those of the others unfold."""

FORMATS = {"parquet": "Parquet", "csv": "CSV", "md": "Markdown", "tex": "LaTeX"}
"""What every table can be downloaded as, by the suffix of the file beside the page."""

_SPEC_COLUMNS = (
    "controller",
    "variant",
    "pattern",
    "conditions",
    "btu_min",
    "seed",
    "duration_min",
    "topology",
    "testbed",
    "flavor",
    "vcpus",
    "memory_mb",
    "sample_every_items",
)

_PAGE = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render_page(
    tables: Mapping[str, Sequence[Row]],
    verdict: Mapping[str, Any],
    origin: Mapping[str, Any],
    reference: Reference = nothing_printed,
) -> str:
    """The page as HTML text; equal arguments give equal text.

    ``tables`` are the published tables by name, ``verdict`` is verdict.json, ``origin`` says
    experiment, edition, git_commit and versions, ``reference`` what was printed about a run.
    """
    drawn, printed = _drawn(tables["runs"]), printed_for(tables["runs"], reference)
    shares = list(compare_compliance(tables["compliance"], printed))
    costs = list(compare_cost(tables["cost"], printed))
    return _PAGE.get_template("page.html.j2").render(
        origin=origin,
        runs=tables["runs"],
        sentence=_sentence(tables["runs"]),
        tournament=_tournament(tables),
        compliance=_matrix(shares),
        totals_of=_by_run([row for row in tables["compliance"] if row["scope"] == "overall"]),
        cost=_matrix(costs),
        printed_in=sorted({one.where for one in (*shares, *costs) if one.where}),
        totals={row["run"]: row for row in tables["scaling_total"]},
        utilisation={row["run"]: row for row in tables["utilisation"]},
        adapt=_by_run(tables["time_to_adapt"]),
        prices=_by_run(tables["cost"]),
        covered=any(row["cover_cost"] is not None for row in tables["cost"]),
        drawn=drawn,
        figures=_figures(drawn, tables),
        verdict=verdict,
        quarantined=verdict["quarantined"],
        checks=_by_table(verdict),
        warnings=[check for check in verdict["checks"] if not check["passed"]],
        schema_of=schema_of,
        shown=shown,
        spec_columns=_SPEC_COLUMNS,
        open_figures=OPEN_FIGURES,
        published=PUBLISHED,
        formats=FORMATS,
    )


def _drawn(runs: Sequence[Row]) -> list[Row]:
    """Runs with figures of their own: all, but of a tournament one seed of every case."""
    if not is_tournament(runs):
        return list(runs)
    case = ("topology", "pattern", "conditions", "controller", "variant", "btu_min")
    first: dict[tuple[Any, ...], Row] = {}
    for run in sorted(runs, key=lambda run: run["seed"]):
        first.setdefault(tuple(run[name] for name in case), run)
    return list(first.values())


def _tournament(tables: Mapping[str, Sequence[Row]]) -> dict[str, Any] | None:
    """What its section shows; None for an experiment that is none."""
    if not is_tournament(tables["runs"]):
        return None
    found = matches(tables["tournament"])
    figure = Markup(tournament_figure.draw(found))
    return {"matches": found, "figure": figure, "headings": METRICS}


def _sentence(runs: Sequence[Row]) -> str:
    """What was run, in one sentence."""
    controllers = _listed(named(row) for row in runs)
    patterns = _listed(row["pattern"] for row in runs)
    lengths = _listed(f"{row['duration_min']:g}" for row in runs)
    btus = _listed(f"{row['btu_min']:g}" for row in runs)
    testbeds = _listed(row["testbed"] for row in runs)
    topologies = _listed(row["topology"] for row in runs)
    count = "One run" if len(runs) == 1 else f"{len(runs)} runs"
    return (
        f"{count} of {lengths} minutes: controller {controllers} provisioned the {topologies} "
        f"topology under arrival pattern {patterns}, with hosts billed per {btus} minutes, "
        f"on the {testbeds} testbed."
    )


def _listed(values: Any) -> str:
    unique = list(dict.fromkeys(values))
    return " and ".join(filter(None, [", ".join(unique[:-1]), unique[-1]]))


def _matrix(compared: Sequence[Comparison]) -> dict[str, list[Comparison]]:
    return _by(compared, lambda one: one.run)


def _by_run(rows: Sequence[Row]) -> dict[str, list[Row]]:
    return _by(rows, lambda row: row["run"])


def _by_table(verdict: Mapping[str, Any]) -> dict[str, list[Row]]:
    return {table: list(own) for table, own in groupby(verdict["checks"], lambda c: c["table"])}


def _by(rows: Sequence[Any], key: Any) -> dict[str, list[Any]]:
    return {name: list(own) for name, own in groupby(sorted(rows, key=key), key)}


def _figures(
    drawn: Sequence[Row], tables: Mapping[str, Sequence[Row]]
) -> dict[str, dict[str, Markup]]:
    """The figures of every run; runs of one topology are compared, so they share their axes.

    They are made by matplotlib, which escapes its text.
    """
    rows = {table: _by_run(tables[table]) for table in ("timeline", "compliance", "scaling")}
    figures: dict[str, dict[str, Markup]] = {}
    for compared in _by(drawn, lambda run: run["topology"]).values():
        names = [run["run"] for run in compared]
        length_min = max(run["duration_min"] for run in compared)
        over_time, activity = (
            module.scale_of(
                [row for name in names for row in rows[table].get(name, ())], length_min
            )
            for table, module in (("timeline", timeline), ("scaling", scaling))
        )
        for name in names:
            scopes = compliance.in_order(rows["compliance"].get(name, ()))
            figures[name] = {
                "timeline": Markup(timeline.draw(name, rows["timeline"].get(name, ()), over_time)),
                "compliance": Markup(compliance.draw(name, scopes)),
                "scaling": Markup(scaling.draw(name, rows["scaling"].get(name, ()), activity)),
            }
    return figures
