"""The runs that were left out of a publication, as a table for readers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from include.files.whole import csv_text

COLUMNS = ("run", "table", "columns", "expectation", "sentence", "rows")


def quarantine_csv(quarantined: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """One line per run and check that it failed; the offending rows as JSON.

    ``quarantined`` is that of verdict.json. Nothing but a header when every run is published.
    """
    lines = (
        (run, check["table"], "/".join(check["columns"]), check["expectation"], check["sentence"],
         json.dumps(check["rows"], default=str))
        for run, checks in quarantined.items()
        for check in checks
    )  # fmt: skip
    return csv_text(COLUMNS, lines)
