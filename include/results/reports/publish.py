"""Staged tables that passed the gate to files that people read and the results database."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from include.files.whole import csv_text, digest, new_folder, read_json, swap_in
from include.model.errors import PublishError, StoreError, command
from include.results.quality.verdict import passed_verdict, verdict_path
from include.results.reports.crate import write_crate
from include.results.reports.database import Publication, origins_of, sent_rows
from include.results.reports.page import report_files
from include.results.tables.catalogue import PUBLISHED
from include.results.tables.staged import SOURCES, Row, read_staged, staged_path
from include.runs.measurements.origin import BY_HAND, DagRun
from include.runs.stored import asked_runs
from include.runs.versions import git_commit

Tables = dict[str, list[Row]]
Files = Callable[[Tables, Mapping[str, Any], Mapping[str, Any]], Iterable[tuple[str, str]]]
"""Names and texts of files, from tables, their verdict and their origin."""
ALWAYS = ("quarantine.csv", "manifest.json")
"""Files beside every page and its tables."""
PACKAGES = (
    "apache-airflow",
    "great-expectations",
    "numba",
    "numpy",
    "pandas",
    "pyarrow",
    "pyspark",
)
QUARANTINE_COLUMNS = ("run", "table", "columns", "expectation", "sentence", "rows")


def publish(
    folder: Path, database_url: str, by: DagRun = BY_HAND, files: Files | None = None
) -> list[Path]:
    """Write ``folder/published`` and upsert the same rows into the results database.

    Every table as Parquet; quarantine.csv with the runs that were left out; the text ``files``,
    those of ``report_files`` unless given; manifest.json, which names every other file with its
    SHA-256, and the files of the runs that they were made of. Returns the files.
    ``database_url`` is a SQLAlchemy URL.

    Order: the files are built beside the target, where nobody looks; the rows are sent in an
    open transaction; the folder is swapped in; the transaction is committed. So a database
    that is down or locked, a full disk and a folder that cannot be written are all found
    while nothing has changed. Only a crash between swap and commit leaves the two apart, and
    publishing again brings them together, because both sides replace what is there. Last of all
    the folder is described as a crate (``crate.py``).

    Raises GateFailed when what is staged did not pass its checks, PublishError when a target
    cannot be written, StoreError when a table was not built, or of a run that was removed since.
    """
    verdict = passed_verdict(folder)
    tables = {table: read_staged(folder, table) for table in PUBLISHED}
    manifests = [path for path in _built_of(folder) if path.endswith("/manifest.json")]
    if gone := [path.split("/")[1] for path in manifests if not (folder / path).is_file()]:
        raise StoreError(
            f"{', '.join(gone)} of {folder.name} was removed after the tables were built; build "
            f"them again ({command('report', folder)}, or clear build_tables and what follows)"
        )
    target = folder / "published"
    try:
        with new_folder(target) as draft:
            edition = _write_files(folder, tables, verdict, draft, files or report_files)
            publication = Publication(
                experiment=folder.name,
                edition=edition,
                checks=len(verdict["checks"]),
                left_out=tuple(verdict["quarantined"]),
                by=by,
                origins=origins_of(folder, [row["run"] for row in tables["runs"]]),
            )
            with sent_rows(database_url, publication, tables):
                swap_in(draft, target)
            write_crate(folder)
    except OSError as error:
        raise PublishError(
            f"{target} cannot be written: {error.strerror or error}. Free some space or make the "
            "folder writable, then publish again. What was published before is unchanged."
        ) from error
    return _files(target)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _write_files(
    folder: Path, tables: Tables, verdict: dict[str, Any], draft: Path, files: Files
) -> str:
    """Write every file to ``draft`` and return the edition: a hash of the tables."""
    staged = verdict["staged"]
    edition = sha256("".join(staged[table] for table in PUBLISHED).encode()).hexdigest()[:16]
    origin: dict[str, Any] = {
        "experiment": folder.name,
        "edition": edition,
        "git_commit": git_commit() or None,
        "versions": tool_versions(),
    }
    there = {row["run"] for row in tables["runs"]} | verdict["quarantined"].keys()
    if missing := [run for run in asked_runs(folder) if run not in there]:
        origin["not_measured"] = missing
    for table in tables:
        (draft / f"{table}.parquet").write_bytes(staged_path(folder, table).read_bytes())
    (draft / "quarantine.csv").write_text(quarantine_csv(verdict["quarantined"]), encoding="utf-8")
    for name, text in files(tables, verdict, origin):
        path = draft / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    manifest = {
        **origin,
        "runs": [
            {name: row[name] for name in ("run", "controller", "pattern", "seed", "spec_hash")}
            for row in tables["runs"]
        ],
        "left_out": sorted(verdict["quarantined"]),
        "rows": {table: len(rows) for table, rows in tables.items()},
        "sha256": {str(path.relative_to(draft)): digest(path) for path in _files(draft)},
        "made_of": _made_of(folder, [row["run"] for row in tables["runs"]]),
    }
    text = json.dumps(manifest, indent=2) + "\n"
    (draft / "manifest.json").write_text(text, encoding="utf-8")
    return edition


def _made_of(folder: Path, runs: Iterable[str]) -> dict[str, str]:
    """The verdict, and the files of these runs as they were when the tables were built."""
    verdict = verdict_path(folder)
    of_runs = {
        path: sha256
        for run in runs
        for path, sha256 in _built_of(folder).items()
        if path.startswith(f"runs/{run}/")
    }
    return {**of_runs, str(verdict.relative_to(folder)): digest(verdict)}


def _built_of(folder: Path) -> dict[str, str]:
    kept = folder / "staged" / SOURCES
    built_of: dict[str, str] = read_json(kept) if kept.is_file() else {}
    return built_of


def tool_versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide about the numbers."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions


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
    return csv_text(QUARANTINE_COLUMNS, lines)
