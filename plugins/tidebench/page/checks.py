"""What the gate said about the tables of an experiment, with the pages of Data Docs on each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any

from include.results.tables.staged import grouped
from tidebench.page.files import find_file

MOST_ROWS = 5
"""How many offending rows of a check are shown; Data Docs have more."""


def checks_of(root: Path, experiment: str) -> Mapping[str, object] | None:
    """Everything that the page shows; None when nothing was checked."""
    verdict = find_file(root, experiment, "data_docs/verdict.json")
    if verdict is None:
        return None
    content = json.loads(verdict.read_text(encoding="utf-8"))
    checks = content["checks"]
    tables = [
        _table(root, experiment, name, table_checks)
        for name, table_checks in grouped(checks, itemgetter("table")).items()
    ]
    tables.sort(key=lambda table: (not table["failed"], not table["warned"], table["name"]))
    return {
        "experiment": experiment,
        "passed": content["passed"],
        "count": len(checks),
        "warned": sum(map(_warns, checks)),
        "tables": tables,
        "quarantined": content["quarantined"],
        "most_rows": MOST_ROWS,
    }


def _table(
    root: Path, experiment: str, name: str, checks: list[dict[str, Any]]
) -> Mapping[str, Any]:
    docs = root / experiment / "data_docs"
    pages = sorted(docs.glob(f"validations/{name}/*/*/*.html"))
    pages = [page for page in pages if find_file(root, experiment, _below(page, docs))]
    return {
        "name": name,
        "checks": sorted(checks, key=lambda check: check["passed"]),
        "failed": sum(not check["passed"] and not _warns(check) for check in checks),
        "warned": sum(map(_warns, checks)),
        "page": _below(pages[-1], docs) if pages else None,
    }


def _warns(check: Mapping[str, Any]) -> bool:
    return not check["passed"] and check["severity"] == "warn"


def _below(page: Path, docs: Path) -> str:
    return f"data_docs/{page.relative_to(docs)}"
