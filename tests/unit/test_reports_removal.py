"""A run that is removed is gone from what is measured, from the database and the next report."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from include.model.errors import StoreError
from include.results.reports.publish import publish
from include.results.reports.removal import remove_runs
from include.results.tables.catalogue import INPUT_CHECKS, PUBLISHED, is_by_run
from include.results.tables.measured import complete_runs
from include.runs.measurements.rows import TABLES
from include.runs.measurements.store import RunStore
from tests.builders_staged import let_pass, restage, tables_of
from tests.command_line import said

RUNS = ("bad", "good")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two runs, stored and published."""
    folder = tmp_path / "demo"
    each = {run: tables_of(run) for run in RUNS}
    for table in (*PUBLISHED, INPUT_CHECKS):
        whose = RUNS if is_by_run(table) else RUNS[:1]
        restage(folder, table, [row for run in whose for row in each[run][table]])
    publish(let_pass(folder), url(folder))
    for run in RUNS:
        store = RunStore(folder, "demo", run)
        for file in (store.manifest, store.run_json, store.whole("queue"), store.whole("lease")):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("{}")
    return folder


def url(folder: Path) -> str:
    return f"sqlite:///{folder.parent / 'results.db'}"


def rows(folder: Path, table: str) -> set[str]:
    with sqlite3.connect(folder.parent / "results.db") as database:
        return {run for (run,) in database.execute(f'SELECT run FROM "{table}"')}


def files_of(folder: Path, run: str) -> list[Path]:
    store = RunStore(folder, "demo", run)
    return [store.home, *(store.part(table, 0).parent for table in TABLES)]


def test_what_is_removed_is_gone_everywhere_and_the_others_stay(folder: Path) -> None:
    done = said("remove", str(folder), "bad")
    assert "removed the measurements of run bad" in done
    assert "1 complete runs of demo are left" in done
    assert not any(path.exists() for path in files_of(folder, "bad"))
    assert complete_runs(folder) == ("good",)
    for table in filter(is_by_run, PUBLISHED):
        left = {"good"} if tables_of("good")[table] else set()
        assert rows(folder, table) == left, table


def test_an_unknown_run_is_told_with_those_that_are_there_and_nothing_is_removed(
    folder: Path,
) -> None:
    with pytest.raises(StoreError, match=r"unknown run 'bda'. Did you mean 'bad'\? Known: bad, go"):
        remove_runs(folder, ["good", "bda", "../demo"], url(folder))
    assert complete_runs(folder) == RUNS
    assert rows(folder, "runs") == set(RUNS)
    with pytest.raises(StoreError, match="holds no run"):
        remove_runs(folder.parent / "none", ["bad"], url(folder))


def test_with_the_last_run_goes_the_report(folder: Path) -> None:
    assert_without_report(folder, remove_runs(folder, RUNS, url(folder)))


def test_a_run_that_was_only_begun_keeps_no_report(folder: Path) -> None:
    RunStore(folder, "demo", "bad").manifest.unlink()
    assert_without_report(folder, remove_runs(folder, ["good"], url(folder)))
    assert files_of(folder, "bad")[0].is_dir()


def assert_without_report(folder: Path, sentences: list[str]) -> None:
    assert sentences[-1] == "no complete run of demo is left, so its report is removed, too"
    assert not any((folder / name).exists() for name in ("published", "staged", "data_docs"))
    with sqlite3.connect(folder.parent / "results.db") as database:
        for table in PUBLISHED:
            assert database.execute(f'SELECT count(*) FROM "{table}"').fetchone() == (0,), table


def test_a_run_that_is_published_only_can_be_removed(folder: Path) -> None:
    RunStore(folder, "demo", "bad").remove()
    assert "what was published of run bad" in remove_runs(folder, ["bad"], url(folder))[0]
    assert rows(folder, "cost") == {"good"}


@pytest.mark.parametrize("what", ["bad", "report"])
def test_a_run_that_a_dag_run_may_be_measuring_is_left_alone(folder: Path, what: str) -> None:
    store = RunStore(folder, "demo", "bad")
    turns = folder / "turns.json"
    turns.write_text(json.dumps({what: ["experiment", "manual__1"]}))
    store.manifest.unlink()
    with pytest.raises(StoreError, match="manual__1 of the DAG experiment may be measuring it"):
        remove_runs(folder, ["bad"], url(folder))
    assert store.home.is_dir()
    assert rows(folder, "runs") == set(RUNS)
    remove_runs(folder, ["bad"], url(folder), even_if_taken=True)
    assert not store.home.exists()
