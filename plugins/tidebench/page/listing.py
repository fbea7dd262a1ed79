"""The list of runs: what its template shows."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from include.files.whole import changed_s, csv_text
from include.results.quality.verdict import verdict_path
from include.results.reports.results import CHOICES, SHOWN, Query, find_runs
from tidebench.page.advice import advice_list
from tidebench.page.files import files_of
from tidebench.page.query import address_of, sorted_by

HEADINGS: tuple[tuple[str, str, str], ...] = (
    ("experiment", "Experiment", ""),
    ("controller", "Controller", ""),
    ("topology", "Topology", ""),
    ("pattern", "Pattern", ""),
    ("btu", "BTU\n[min]", "n"),
    ("seed", "Seed", "n"),
    ("cost", "Total", "n"),
    ("near_real_time", "Within\n2 o_slo [%]", "n"),
    ("compliance", "Within\n5 o_slo [%]", "n"),
    ("end_to_end_cost", "End-to-end\ntotal", "n"),
    ("end_to_end", "End-to-end\n2 o_slo [%]", "n"),
    ("age", "Age\np95 [s]", "n"),
    ("when", "Measured", ""),
)
"""Columns: what they sort by, their heading in lines, their class in the style sheet."""
CALLED = {"btu_min": "BTU [min]"}
"""Fields whose name is not that of the column."""
MOST_REFUSED = 20
NEWEST_ADVICE = 3


def runs_list(database_url: str, root: Path, query: Query) -> Mapping[str, object]:
    """Everything that the list shows; of a page behind the last one, the last one."""
    runs_page = find_runs(database_url, query)
    if query.page > runs_page.pages:
        query = replace(query, page=runs_page.pages)
        runs_page = find_runs(database_url, query)
    experiments = {row["experiment"] for row in runs_page.runs}
    narrowed = (
        bool(query.equal or query.ranges or query.tag or query.text) or query.shown != SHOWN[0]
    )
    return {
        "query": query,
        "runs_page": runs_page,
        "headings": HEADINGS,
        "filters": CHOICES[:4],
        "more_filters": CHOICES[4:],
        "called": CALLED,
        "shown": SHOWN,
        "here": address_of(query),
        "narrowed": narrowed,
        "advice": [] if narrowed or query.page > 1 else advice_list(root, NEWEST_ADVICE),
        "narrowed_more": bool(query.ranges or query.tag or query.shown != SHOWN[0])
        or not query.equal.keys() <= set(CHOICES[:4]),
        "files_at": {name: files_of(root, name) for name in experiments},
        "refused": list(refused(root)),
        "left_out": list(left_out(root)),
        "sorted_by": partial(sorted_by, query),
        "page_of": lambda page: address_of(query, page=page),
    }


def runs_csv(database_url: str, query: Query) -> str:
    """Every run that matches, one a line, in the order of the list; empty where none does."""
    runs = find_runs(database_url, replace(query, page=1), per_page=sys.maxsize).runs
    columns = list(runs[0]) if runs else []
    return csv_text(columns, ([_inert(row[name]) for name in columns] for row in runs))


def _inert(value: Any) -> Any:
    """Text that a spreadsheet would take for a formula, as text: anybody may write notes."""
    is_formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if is_formula else value


def refused(root: Path) -> Iterator[Mapping[str, Any]]:
    """Experiments whose last check failed, so that what is published of them is older."""
    waiting = []
    for folder in root.iterdir() if root.is_dir() else ():
        checked_s = changed_s(verdict_path(folder))
        if checked_s > changed_s(folder / "published" / "manifest.json"):
            waiting.append((checked_s, folder))
    for _, folder in sorted(waiting, reverse=True)[:MOST_REFUSED]:
        with suppress(OSError, ValueError):
            verdict = json.loads(verdict_path(folder).read_bytes())
            if not verdict["passed"]:
                failed = sum(not check["passed"] for check in verdict["checks"])
                yield {"experiment": folder.name, "failed": failed}


def left_out(root: Path) -> Iterator[Mapping[str, Any]]:
    """Experiments that are published without some runs, because these did not pass."""
    folders = sorted(root.iterdir()) if root.is_dir() else []
    for folder in folders:
        with suppress(OSError, ValueError):
            manifest = json.loads((folder / "published" / "manifest.json").read_bytes())
            if runs := manifest.get("left_out"):
                yield {"experiment": folder.name, "runs": len(runs)}
