"""What a reproduction publishes: cells, verdict, claims, statistics, drift and the page."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from include.measurements.origin import BY_HAND, DagRun
from include.model.errors import PublishError
from include.quality.verdict import passed_verdict
from include.reports.database import sent_rows
from include.reports.provenance import git_commit, tool_versions
from include.reports.publication import Publication, origins_of
from include.reports.quarantine import quarantine_csv
from include.reports.reproduction_page import render_page
from include.reproduction.claims import CLAIM_COLUMNS
from include.reproduction.drift import CELL_COLUMNS, DIGITS, DRIFT_COLUMNS
from include.reproduction.findings import Findings, find
from include.reproduction.statistics import STATISTICS_COLUMNS
from include.reproduction.verdict import VERDICT_COLUMNS
from include.tables.catalogue import PUBLISHED, schema_of
from include.tables.files import digest, new_folder, swap_in
from include.tables.staged import read_staged, staged_path

_ELASTICITY_COLUMNS = ("pattern", "controller", "btu_min", "seed", "run", "scope")


def publish_reproduction(folder: Path, database_url: str, by: DagRun = BY_HAND) -> Findings:
    """Write ``folder/published`` and upsert the tables into the results database.

    ``folder`` is that of the experiment, with tables that were built and checked. The files
    are cells.csv, verdict.csv, claims.csv, comparison.csv, elasticity.csv, drift.csv, every
    table as Parquet, report.html and manifest.json; they appear together or not at all, in
    the order that include/reports/publish.py explains. Raises GateFailed, StoreError and
    PublishError as there.
    """
    checks = passed_verdict(folder)
    tables = {table: read_staged(folder, table) for table in PUBLISHED}
    findings = find(tables, folder)
    staged = "".join(checks["staged"][table] for table in PUBLISHED)
    origin: dict[str, Any] = {
        "experiment": folder.name,
        "edition": sha256(staged.encode()).hexdigest()[:16],
        "git_commit": git_commit(),
        "versions": tool_versions(),
    }
    target = folder / "published"
    try:
        with new_folder(target) as draft:
            _write_files(folder, draft, findings, origin, checks)
            publication = Publication(
                experiment=folder.name,
                edition=origin["edition"],
                checks=len(checks["checks"]),
                left_out=tuple(checks["quarantined"]),
                by=by,
                origins=origins_of(folder, [row["run"] for row in tables["runs"]]),
            )
            with sent_rows(database_url, publication, tables):
                swap_in(draft, target)
    except OSError as error:
        raise PublishError(
            f"{target} cannot be written: {error.strerror or error}. Free some space or make the "
            "folder writable, then publish again. What was published before is unchanged."
        ) from error
    return findings


def as_csv(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Comma-separated values with a header; absent values are empty, BTUs are whole minutes."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_text(name, row[name]) for name in columns] for row in rows)
    return sink.getvalue()


def _text(column: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if column == "btu_min":
            return f"{value:g}"
        return f"{value:.4g}" if column.endswith("_p") else f"{value:.{DIGITS}f}"
    return str(value)


def _write_files(
    folder: Path,
    draft: Path,
    findings: Findings,
    origin: Mapping[str, Any],
    checks: Mapping[str, Any],
) -> None:
    measures = [
        name for name in schema_of("elasticity").column_names if name not in ("run", "scope")
    ]
    for name, rows, columns in (
        ("cells", findings.cells, CELL_COLUMNS),
        ("verdict", findings.verdict, VERDICT_COLUMNS),
        ("claims", findings.claims, CLAIM_COLUMNS),
        ("comparison", findings.comparison, STATISTICS_COLUMNS),
        ("elasticity", findings.elasticity, (*_ELASTICITY_COLUMNS, *measures)),
        ("drift", findings.drift, DRIFT_COLUMNS),
    ):
        (draft / f"{name}.csv").write_text(as_csv(rows, columns), encoding="utf-8")
    for table in PUBLISHED:
        (draft / f"{table}.parquet").write_bytes(staged_path(folder, table).read_bytes())
    (draft / "quarantine.csv").write_text(quarantine_csv(checks["quarantined"]), encoding="utf-8")
    files = sorted(path.name for path in draft.iterdir())
    page = render_page(findings, origin, checks, files)
    (draft / "report.html").write_text(page, encoding="utf-8")
    listed = {path.name: digest(path) for path in sorted(draft.iterdir())}
    text = json.dumps(
        {
            **origin,
            "runs": findings.runs,
            "left_out": sorted(checks["quarantined"]),
            "sha256": listed,
        },
        indent=2,
    )
    (draft / "manifest.json").write_text(text + "\n", encoding="utf-8")
