"""What every experiment publishes: its tables as text, and report.html, which can be mailed.

The page has everything in it where runs are few; of many it has the tables and the first figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from markupsafe import Markup

from include.results.reports.comparison import (
    Reference,
    billed_by,
    compared,
    cost_unit,
    nothing_printed,
)
from include.results.reports.documents import FORMATS, WRITERS, suffixes
from include.results.reports.figures import bill, rescales
from include.results.reports.figures import tournament as tournament_figure
from include.results.reports.run_pages import (
    MANY_RUNS,
    Tables,
    about_runs,
    by_run,
    figures_of,
    on_first_page,
    run_pages,
    templates,
)
from include.results.reports.summary import missing_sentence
from include.results.reports.tournament import (
    END_TO_END_SHARE,
    END_TO_END_TOTAL,
    METRICS,
    Match,
    controller_name,
    is_tournament,
    matches,
    short_names,
)
from include.results.tables.catalogue import PUBLISHED, schema_of
from include.results.tables.staged import Row, gathered, grouped

AT_A_GLANCE = (
    "strict_total_cost",
    "strict_near_real_time_compliance_percent",
    END_TO_END_TOTAL,
    END_TO_END_SHARE,
    "age_p95_ms",
)
"""What the first table has of every case."""
MOST_CASES = 12
"""As many as fit on a screen below the heading; more are folded."""
FEW_CONDITIONS = 6
"""So many are named in the first sentence of a page."""
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


def report_files(
    tables: Tables,
    verdict: Mapping[str, Any],
    origin: Mapping[str, Any],
    reference: Reference = nothing_printed,
    *,
    end_to_end: bool = False,
) -> Iterator[tuple[str, str]]:
    """Names and texts: per table CSV, Markdown and LaTeX where somebody may read so many rows, then
    report.html and, of many runs, a page for each.

    Equal arguments give equal texts.
    ``tables`` are the published tables by name, ``verdict`` is verdict.json, ``origin`` says
    experiment, edition, git_commit and versions, ``reference`` what was printed about a run;
    with ``end_to_end`` controllers are ranked and drawn by the age of items.
    """
    for table, rows in tables.items():
        for suffix in suffixes(len(rows)):
            yield f"{table}.{suffix}", WRITERS[suffix](rows, schema_of(table))
    figures, runs = figures_of(tables), tables["runs"]
    shares, costs = compared(tables, reference)
    first = on_first_page(runs)
    ranked = matches(tables["tournament"], end_to_end=end_to_end)
    missing = origin.get("not_measured", [])
    differing = [name for name in _SPEC_COLUMNS if len({run[name] for run in runs}) > 1]
    page = templates().get_template("page.html.j2")
    text = page.render(
        about_runs(tables),
        origin=origin,
        runs=runs,
        sentence=_sentence(runs),
        ranked=ranked,
        cases=sum(len(match.standings) for match in ranked),
        at_a_glance={name: METRICS[name][0] for name in AT_A_GLANCE},
        most_cases=MOST_CASES,
        missing=missing_sentence(missing) if missing else "",
        tournament=_tournament(ranked, end_to_end) if is_tournament(runs) else None,
        bill=_bill(tables),
        compliance=grouped(shares, attrgetter("run")),
        totals_of=[row for row in tables["compliance"] if row["scope"] == "overall"],
        cost=grouped(costs, attrgetter("run")),
        printed_in=sorted(
            {comparison.where for comparison in (*shares, *costs) if comparison.where}
        ),
        totals=tables["scaling_total"],
        prices=by_run(tables["cost"]),
        prices_of_all=tables["cost"],
        billed_by=billed_by(tables["cost"]),
        cost_unit=cost_unit(tables["cost"]),
        covered=any(row["cover_cost"] is not None for row in tables["cost"]),
        drawn=first,
        gaps=_gaps(tables),
        figures={run["run"]: figures(run) for run in first},
        verdict=verdict,
        quarantined=verdict["quarantined"],
        checks={
            table: list(checks) for table, checks in groupby(verdict["checks"], itemgetter("table"))
        },
        warnings=[check for check in verdict["checks"] if not check["passed"]],
        spec_columns=_SPEC_COLUMNS,
        same_columns=[name for name in _SPEC_COLUMNS if name not in differing],
        differing_columns=differing,
        many_runs=MANY_RUNS,
        published=PUBLISHED,
        formats={
            table: {name: FORMATS[name] for name in ("parquet", *suffixes(len(tables[table])))}
            for table in PUBLISHED
        },
    )
    yield "report.html", text
    yield from run_pages(tables, origin["experiment"], figures)


def _tournament(ranked: Sequence[Match], end_to_end: bool) -> dict[str, Any]:
    """What its section shows."""
    return {
        "matches": ranked,
        "figure": Markup(tournament_figure.draw(ranked)),
        "headings": METRICS,
        "end_to_end": end_to_end,
    }


def _bill(tables: Mapping[str, Sequence[Row]]) -> dict[str, Any] | None:
    """What the section on the parts of costs shows; None where none are known."""
    rows = tables["cost_parts_means"]
    if not rows:
        return None
    with_parts = {row["run"] for row in tables["cost_parts"]}
    return {
        "rows": rows,
        "columns": [*schema_of("cost_parts_means").column_names],
        "figure": Markup(bill.draw(rows)),
        "parts": {column: name for column, (name, _) in bill.PARTS.items()},
        "without": [row["run"] for row in tables["runs"] if row["run"] not in with_parts],
    }


def _gaps(tables: Mapping[str, Sequence[Row]]) -> Markup:
    """The figure of the gaps of all runs by controller; nothing where no gap is known."""
    shown = short_names({controller_name(row): row["controller"] for row in tables["runs"]})
    names = {row["run"]: shown[controller_name(row)] for row in tables["runs"]}
    stops = [row for row in tables["rescales"] if row["gap_s"] is not None]
    gaps_s = gathered((names[row["run"]], row["gap_s"]) for row in stops)
    return Markup(rescales.draw_gaps(gaps_s))


def _sentence(runs: Sequence[Row]) -> str:
    """What was run, in one sentence."""
    alone = len(runs) == 1
    names = [controller_name(row) if alone else row["controller"] for row in runs]
    controllers = _named("controller", names)
    patterns = _named("pattern", [row["pattern"] for row in runs])
    lengths, btus = (_minutes(row[name] for row in runs) for name in ("duration_min", "btu_min"))
    testbeds = _listed(row["testbed"] for row in runs)
    topologies = _listed(row["topology"] for row in runs)
    count = "One run" if len(runs) == 1 else f"{len(runs)} runs"
    conditions = [one or "the usual ones" for one in dict.fromkeys(r["conditions"] for r in runs)]
    under = f", under {len(conditions)} conditions" if len(conditions) > 1 else ""
    under += f": {'; '.join(conditions)}" if under and len(conditions) <= FEW_CONDITIONS else ""
    return (
        f"{count} of {lengths}: {controllers} provisioned the {topologies} topology under arrival "
        f"{patterns}, with hosts billed per {btus}, on the {testbeds} testbed{under}."
    )


def _named(word: str, values: Sequence[str]) -> str:
    """Values behind a word for them."""
    return f"{word}{'s' * (len(set(values)) > 1)} {_listed(values)}"


def _minutes(values: Iterable[float]) -> str:
    listed = _listed(f"{value:g}" for value in values)
    return f"{listed} minute{'s' * (listed != '1')}"


def _listed(values: Any) -> str:
    unique = list(dict.fromkeys(values))
    return " and ".join(filter(None, [", ".join(unique[:-1]), unique[-1]]))
