"""A published experiment to the file that others import."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from include.files.whole import read_json
from include.model.errors import PublishError, SpecError, StoreError
from include.results.registry.form import (
    STRICT,
    SharedFigure,
    SharedResults,
    SharedRow,
    SharedRun,
    SharedSetting,
    digest_of,
    digest_of_rows,
)
from include.results.reports.unchanged import changes, published_manifest
from include.results.tables.catalogue import SQL_ROOT
from include.results.tables.staged import read_table
from include.runs.measurements.store import RunStore
from include.workloads.topologies import validation_problems

CELL = ("topology", "pattern", "conditions", "controller", "variant", "btu_min")
"""Columns that a row of the published means is known by, beside its metric."""
DEFINING = ("compliance", "cost", "metrics", "means")
"""Tables whose queries say what the metrics are."""


def export_results(folder: Path, by: str = "") -> SharedResults:
    """The rows of a published experiment, each with where it comes from.

    ``by`` says who measured, for readers. Raises PublishError when it was not published, and with
    every file that is not what was published or what that was made of, every run that is not kept
    or whose rows other code has measured than those beside it; SpecError when ``by`` is no line.
    """
    manifest = published_manifest(folder)
    if problems := list(changes(folder, manifest)):
        raise PublishError("\n".join([f"{folder} cannot be exported:", *problems]))
    runs_of: dict[tuple[Any, ...], set[str]] = defaultdict(set)
    for row in read_table(folder / "published" / "metrics.parquet"):
        runs_of[_cell(row)].add(row["run"])
    figures_of: dict[tuple[Any, ...], dict[str, SharedFigure]] = defaultdict(dict)
    for row in read_table(folder / "published" / "means.parquet"):
        if row["metric"] in STRICT:
            figures_of[_cell(row)][row["metric"]] = SharedFigure(
                mean=row["mean"], sigma=row["sigma"], runs=row["runs"]
            )
    rows = []
    for cell, figures in sorted(figures_of.items()):
        try:
            rows.append(_row(folder, cell, sorted(runs_of[cell]), figures))
        except StoreError as error:
            problems.append(f"- {error}")
    if problems:
        raise PublishError("\n".join([f"{folder} cannot be exported:", *problems]))
    try:
        return SharedResults(
            experiment=folder.name,
            edition=manifest["edition"],
            by=by,
            metrics_sha256=metrics_digest(),
            rows=rows,
            rows_sha256=digest_of_rows(rows),
        )
    except ValidationError as error:
        raise SpecError(folder.name, validation_problems(error)) from error


def metrics_digest() -> str:
    """SHA-256 of the queries that define the metrics: another digest, other definitions."""
    total = sha256()
    for table in DEFINING:
        total.update((SQL_ROOT / "tables" / table / "query.sql.j2").read_bytes())
    return total.hexdigest()


def _cell(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in CELL)


def _row(
    folder: Path, cell: tuple[Any, ...], runs: list[str], figures: dict[str, SharedFigure]
) -> SharedRow:
    named = dict(zip(CELL, cell, strict=True))
    stores = [RunStore(folder, folder.name, run) for run in runs]
    given = [read_json(store.run_json) for store in stores]
    manifests = [read_json(store.manifest) for store in stores]
    about = {
        "code_sha256": [read_json(store.home / "code.json")["sha256"] for store in stores],
        "topology_sha256": [digest_of(run["topology"]) for run in given],
        "prices_sha256": [digest_of(_prices(run, named["btu_min"])) for run in given],
        "setting": [_setting(run) for run in given],
    }
    return SharedRow(
        **named,
        **{name: _only(name, values, runs) for name, values in about.items()},
        runs=[
            SharedRun(
                seed=manifest["seed"],
                arrivals_sha256=manifest["arrivals_sha256"],
                spec_hash=manifest["spec_hash"],
            )
            for manifest in manifests
        ],
        figures=figures,
    )


def _only(name: str, values: Iterable[Any], runs: list[str]) -> Any:
    """What all runs of a row have in common. Raises StoreError where they have not."""
    first, *others = values
    if any(other != first for other in others):
        raise StoreError(
            f"{', '.join(runs)} differ in {name.removesuffix('_sha256')}; give them experiments "
            "of their own, or measure them again"
        )
    return first


def _prices(run: Mapping[str, Any], btu_min: float) -> list[Mapping[str, Any]]:
    """The books that the row was priced by, without the names that people give them."""
    books = [book for book in run["price_books"] if book["btu_s"] == btu_min * 60]
    return [{key: book[key] for key in book if key not in ("name", "source")} for book in books]


def _setting(run: Mapping[str, Any]) -> SharedSetting:
    spec = run["spec"]
    same = ("testbed", "flavor", "duration_min", "monitor_every_s", "hosts", "max_hosts")
    return SharedSetting(
        **{name: spec[name] for name in same},
        calibration_sha256=digest_of(run["calibration"]),
        faults_sha256=digest_of(run["faults"]),
    )
