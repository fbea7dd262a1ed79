"""The runs that were left out of a publication, as a table for readers."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

COLUMNS = ("run", "table", "columns", "expectation", "sentence", "rows")


def quarantine_csv(quarantined: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """One line per run and check that it failed; the offending rows as JSON.

    ``quarantined`` is that of verdict.json. Nothing but a header when every run is published.
    """
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(COLUMNS)
    for run, checks in quarantined.items():
        for check in checks:
            where = (run, check["table"], "/".join(check["columns"]))
            rows = json.dumps(check["rows"], default=str)
            writer.writerow((*where, check["expectation"], check["sentence"], rows))
    return sink.getvalue()
