"""The gate between staged tables and publication: Great Expectations on every table.

It judges runs. What a run does wrong keeps that run out; the others are published.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from include.files.whole import new_folder, swap_in, writing
from include.model.errors import GateFailed
from include.results.quality.data_docs import settle
from include.results.quality.expectations import CHECKED, SEVERITIES, suite_of
from include.results.quality.verdict import Verdict, staged_digests, verdict_path, write_verdict
from include.results.tables.build import leave_out
from include.results.tables.catalogue import is_by_run, schema_of
from include.results.tables.quarantine import Check, Quarantine, read_quarantine, sentences
from include.results.tables.staged import gathered, read_arrow, read_staged, staged_path

if TYPE_CHECKING:
    from great_expectations.data_context.data_context.abstract_data_context import (
        AbstractDataContext,
    )

_SEVERITY = {theirs: ours for ours, theirs in SEVERITIES.items()}


def check_tables(folder: Path) -> dict[str, Any]:
    """Hold every staged table and the counts of the inputs against its suite, run by run.

    A run that fails a check, other than one that only warns, is taken out of the staged tables;
    those over several runs are built anew without it, and all are checked again. Writes Data Docs
    and verdict.json to ``folder/data_docs`` and returns the verdict (verdict.py beside this), which
    names the runs that were left out with the checks they failed.

    Raises GateFailed when a failure is no run's or when no run is left, naming table, column,
    expectation and offending rows; the evidence stays, nothing is published. Raises StoreError
    when a table was not built, SetupError without the Java that building anew takes.
    """
    while True:
        runs = [row["run"] for row in read_staged(folder, "runs")]
        checks = _data_docs(folder, runs)
        failed = by_run(checks)
        if not can_go_on_without(failed, runs, checks):
            break
        leave_out(folder, failed)
    verdict = Verdict(
        experiment=folder.name,
        staged=staged_digests(folder),
        checks=tuple(replace(check, rows=check.rows[:ROWS_KEPT]) for check in checks),
        quarantined=read_quarantine(folder),
    )
    write_verdict(verdict_path(folder), verdict)
    if verdict.failed:
        raise GateFailed(_refusal(folder, verdict))
    return verdict.to_json()


def _refusal(folder: Path, verdict: Verdict) -> str:
    failed, docs = verdict.failed, folder / "data_docs" / "index.html"
    noun = "check" if len(failed) == 1 else "checks"
    listed = "\n".join([*(str(check) for check in failed), *sentences(verdict.quarantined)])
    return (
        f"{verdict.experiment}: {len(failed)} {noun} failed, nothing was published.\n{listed}\n"
        f"The staged tables are in {folder / 'staged'}, the Data Docs in {docs}."
    )


def require_sound(folder: Path, tables: Sequence[str]) -> None:
    """Hold staged tables that are about no run against their suites; writes their Data Docs.

    Raises GateFailed with every check that failed, StoreError when a table was not built.
    """
    failed = [check for check in _data_docs(folder, (), tables) if check.refuses]
    if failed:
        listed = "\n".join(str(check) for check in failed)
        docs = folder / "data_docs" / "index.html"
        raise GateFailed(
            f"{folder.name}: nothing was published, for these checks failed:\n{listed}\n"
            f"The Data Docs are in {docs}."
        )


def _data_docs(
    folder: Path, runs: Sequence[str], tables: Sequence[str] = CHECKED
) -> tuple[Check, ...]:
    """Every check as it is now, after putting the Data Docs on it in place."""
    docs = folder / "data_docs"
    with writing(docs), new_folder(docs) as draft:
        checks = tuple(_checked(folder, runs, draft, tables))
        settle(draft, folder, checks)
        swap_in(draft, docs)
    return checks


def _checked(
    folder: Path, runs: Sequence[str], docs: Path, tables: Sequence[str]
) -> Iterator[Check]:
    """Every check of these tables, in their order; the Data Docs come last."""
    for table in tables:
        # A missing or torn file is named before anything is checked.
        read_arrow(staged_path(folder, table))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Great Expectations calls deprecated parts of itself
        context = _context(docs)
        source = context.data_sources.add_pandas_filesystem(
            "staged", base_directory=(folder / "staged").absolute()
        )
        for table in tables:
            batch = source.add_parquet_asset(table).add_batch_definition_path(
                table, path=staged_path(folder, table).name
            )
            for result in _validated(context, table, batch, suite_of(table, runs)):
                yield _check(table, result)
        context.build_data_docs(site_names=["tidebench"])


def _validated(
    context: AbstractDataContext, table: str, batch: Any, expectations: list[Any]
) -> Iterator[dict[str, Any]]:
    import great_expectations as gx

    suite = context.suites.add(gx.ExpectationSuite(name=table, expectations=expectations))
    validation = context.validation_definitions.add(
        gx.ValidationDefinition(name=table, data=batch, suite=suite)
    )
    # Without a checkpoint, which would run it, hold all parts of it against the store again, and
    # write it down a second time.
    results = validation.run(
        result_format={
            "result_format": "COMPLETE",
            "unexpected_index_column_names": list(schema_of(table).key),
        }
    )
    yield from (result.to_json_dict() for result in results.results)


def _context(docs: Path) -> AbstractDataContext:
    """A context in memory whose only trace on disk are the Data Docs."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    site: Any = {
        "class_name": "SiteBuilder",
        "show_how_to_buttons": False,
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
        "store_backend": {
            "class_name": "TupleFilesystemStoreBackend",
            "base_directory": str(docs.absolute()),
        },
    }
    context.add_data_docs_site("tidebench", site)
    return context


def _check(table: str, result: dict[str, Any]) -> Check:
    config, passed = result["expectation_config"], bool(result["success"])
    arguments = config["kwargs"]
    columns = [arguments[key] for key in ("column", "column_A", "column_B") if key in arguments]
    return Check(
        table=table,
        columns=tuple(columns or arguments.get("column_list", ())),
        expectation=config["type"],
        sentence=str(config.get("notes") or config["type"]),
        passed=passed,
        rows=() if passed else tuple(_offending(result)),
        severity=_SEVERITY[config["severity"]],
    )


def _offending(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows by key and value; where no row is to blame, what is missing or was seen instead."""
    outcome = result["result"]
    rows = list(outcome.get("unexpected_index_list") or ())
    rows += [{"missing": value} for value in outcome.get("partial_missing_list") or ()]
    if rows:
        return rows
    observed = outcome.get("observed_value")
    return [{"observed": observed} if observed is not None else {"error": _broken(result)}]


def _broken(result: dict[str, Any]) -> str:
    """Why an expectation could not be evaluated: the first message among its metrics."""
    for reason in (result.get("exception_info") or {}).values():
        if isinstance(reason, dict) and reason.get("exception_message"):
            return str(reason["exception_message"]).strip()
    return "it could not be evaluated"


ROWS_KEPT = 100
"""Offending rows that are kept as evidence of one check."""


def by_run(checks: Iterable[Check]) -> Quarantine:
    """Per run the checks it failed, each with its own rows only; warnings are held against none."""
    failed_by_run = gathered(
        (run, replace(check, rows=tuple(rows[:ROWS_KEPT])))
        for check in checks
        if check.refuses
        for run, rows in gathered((_run_of(check, row), row) for row in check.rows).items()
        if run is not None
    )
    return {run: tuple(failed) for run, failed in failed_by_run.items()}


def can_go_on_without(failed: Quarantine, runs: Sequence[str], checks: Iterable[Check]) -> bool:
    """Whether leaving out the runs that failed may make everything pass.

    Not when none failed, when none would be left, or when a table that is by run fails without a
    run to blame, as with columns that are not those of its schema. Tables over several runs are
    judged once they are built without the runs that failed.
    """
    nobodys = [
        check
        for check in checks
        if check.refuses
        and is_by_run(check.table)
        and any(_run_of(check, row) is None for row in check.rows)
    ]
    return bool(failed) and bool(set(runs) - failed.keys()) and not nobodys


def _run_of(check: Check, row: Mapping[str, Any]) -> str | None:
    """The run of an offending row, or the run that is missing; None where there is neither."""
    if not is_by_run(check.table):
        return None
    run = row.get("run")
    if run is None and check.columns == ("run",):
        run = row.get("missing")
    return run if isinstance(run, str) else None
