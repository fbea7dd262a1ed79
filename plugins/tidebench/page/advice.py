"""The list of what is advised: every published answer below the data root."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from include.advise.publish import PAGE
from include.files.whole import changed_s, csv_rows
from include.results.tables.catalogue import ADVICE_RANKING
from tidebench.page.files import find_file

AS_RUN = "0"
"""The rank of the job as it was run."""


def advice_list(root: Path, most: int | None = None) -> list[Mapping[str, Any]]:
    """Answers, the newest first: the best policy, and the job as it was run where that is known.

    Only the newest ``most`` folders are read if it is given.
    """
    pages = list(root.glob(f"*/published/{PAGE}")) if root.is_dir() else []
    newest = sorted(pages, key=changed_s, reverse=True)[:most]
    listed = (_answer(root, page.parents[1].name) for page in newest)
    return [one for one in listed if one]


def _answer(root: Path, name: str) -> Mapping[str, Any] | None:
    """None where a file is not there (any more), or may not be looked at."""
    page = find_file(root, name, f"published/{PAGE}")
    ranking = find_file(root, name, f"published/{ADVICE_RANKING}.csv")
    if page is None or ranking is None:
        return None
    rows = csv_rows(ranking)
    ranked = [row for row in rows if row["rank"] != AS_RUN]
    best = next((row for row in ranked if row["holds"] == "yes" and row["guessed"] != "yes"), None)
    return {
        "name": name,
        "at": datetime.fromtimestamp(page.stat().st_mtime, UTC),
        "best": best,
        "policies": len(ranked),
        "as_run": next((row for row in rows if row["rank"] == AS_RUN), None),
    }
