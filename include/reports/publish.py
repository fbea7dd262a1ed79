"""Staged tables that passed the gate to files that people read and the results database."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from include.measurements.origin import BY_HAND, DagRun
from include.model.errors import PublishError
from include.quality.verdict import passed_verdict
from include.reports.database import sent_rows
from include.reports.documents import WRITERS
from include.reports.page import render_page
from include.reports.provenance import git_commit, tool_versions
from include.reports.publication import Publication, origins_of
from include.reports.quarantine import quarantine_csv
from include.tables.catalogue import PUBLISHED, schema_of
from include.tables.files import digest, new_folder, swap_in
from include.tables.staged import Row, read_staged, staged_path

Tables = dict[str, list[Row]]


def publish(folder: Path, experiment: str, database_url: str, by: DagRun = BY_HAND) -> list[Path]:
    """Write ``folder/published`` and upsert the same rows into the results database.

    Per table Parquet, CSV, Markdown and LaTeX; report.html; quarantine.csv with the runs that
    were left out; manifest.json, which names every other file with its SHA-256. Returns the
    files. ``database_url`` is a SQLAlchemy URL.

    Order: the files are built beside the target, where nobody looks; the rows are sent in an
    open transaction; the folder is swapped in; the transaction is committed. So a database
    that is down or locked, a full disk and a folder that cannot be written are all found
    while nothing has changed. Only a crash between swap and commit leaves the two apart, and
    publishing again brings them together, because both sides replace what is there.

    Raises GateFailed when what is staged did not pass its checks, PublishError when a target
    cannot be written, StoreError when a table was not built.
    """
    verdict = passed_verdict(folder)
    tables = {table: read_staged(folder, table) for table in PUBLISHED}
    target = folder / "published"
    try:
        with new_folder(target) as draft:
            edition = _write_files(folder, experiment, tables, verdict, draft)
            publication = Publication(
                experiment=experiment,
                edition=edition,
                checks=len(verdict["checks"]),
                left_out=tuple(verdict["quarantined"]),
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
    return sorted(path for path in target.iterdir() if path.is_file())


def _write_files(
    folder: Path, experiment: str, tables: Tables, verdict: dict[str, Any], draft: Path
) -> str:
    """Write every file to ``draft`` and return the edition: a hash of the tables."""
    for table, rows in tables.items():
        (draft / f"{table}.parquet").write_bytes(staged_path(folder, table).read_bytes())
        for suffix, write in WRITERS.items():
            text = write(rows, schema_of(table))
            (draft / f"{table}.{suffix}").write_text(text, encoding="utf-8")
    staged = verdict["staged"]
    edition = sha256("".join(staged[table] for table in PUBLISHED).encode()).hexdigest()[:16]
    origin = {
        "experiment": experiment,
        "edition": edition,
        "git_commit": git_commit(),
        "versions": tool_versions(),
    }
    page = render_page(tables, verdict, origin)
    (draft / "report.html").write_text(page, encoding="utf-8")
    (draft / "quarantine.csv").write_text(quarantine_csv(verdict["quarantined"]), encoding="utf-8")
    manifest = {
        **origin,
        "runs": [
            {name: row[name] for name in ("run", "controller", "pattern", "seed", "spec_hash")}
            for row in tables["runs"]
        ],
        "left_out": sorted(verdict["quarantined"]),
        "rows": {table: len(rows) for table, rows in tables.items()},
        "sha256": {path.name: digest(path) for path in sorted(draft.iterdir())},
    }
    text = json.dumps(manifest, indent=2) + "\n"
    (draft / "manifest.json").write_text(text, encoding="utf-8")
    return edition
