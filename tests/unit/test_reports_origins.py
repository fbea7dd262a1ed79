"""Which DAG run measured a run, and when: kept whoever publishes the run again."""

from __future__ import annotations

import os
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from include.model.errors import StoreError
from include.results.reports.publish import publish
from include.results.reports.removal import remove_runs
from include.results.reports.results import Query, find_runs, read_runs
from include.results.tables.catalogue import PUBLISHED
from include.results.tables.staged import read_staged
from include.runs import stages
from include.runs.measurements.origin import BY_HAND, DagRun, mark_origin, origin_of
from include.runs.measurements.store import RunStore
from tests.builders import run_spec
from tests.builders_staged import let_pass, restage, stage, tables_of

FIRST, SECOND = (DagRun("experiment", f"manual__{k}") for k in (1, 2))
AT = {"early": datetime(2026, 1, 1, 12, tzinfo=UTC), "late": datetime(2026, 1, 2, 12, tzinfo=UTC)}
ABOUT_ALL = ("means", "cells", "comparison", "tournament")


def measured(folder: Path, run: str, by: DagRun) -> None:
    """What stays of a run in its folder once it is complete."""
    store = RunStore(folder, run)
    store.home.mkdir(parents=True)
    mark_origin(store, by)
    store.manifest.write_text("{}")
    os.utime(store.manifest, (AT[run].timestamp(), AT[run].timestamp()))


@pytest.fixture
def published(tmp_path: Path) -> str:
    """Two DAG runs of one experiment: each measured a run, the later one published both."""
    url = f"sqlite:///{tmp_path / 'results.db'}"
    folder = stage(tmp_path / "demo", "early")
    measured(folder, "early", FIRST)
    publish(let_pass(folder), url, FIRST)
    measured(folder, "late", SECOND)
    for table in PUBLISHED:
        if table not in ABOUT_ALL:
            restage(folder, table, read_staged(folder, table) + tables_of("late")[table])
    publish(let_pass(folder), url, SECOND)
    return url


def test_every_run_keeps_the_dag_run_that_measured_it_and_its_time(published: str) -> None:
    late, early = find_runs(published, Query()).runs
    assert [early["run"], late["run"]] == ["early", "late"]
    assert (early["measured_dag_id"], early["measured_dag_run"]) == ("experiment", "manual__1")
    assert (late["measured_dag_id"], late["measured_dag_run"]) == ("experiment", "manual__2")
    assert early["measured_at"] == "2026-01-01T12:00:00+00:00"
    assert late["measured_at"] == "2026-01-02T12:00:00+00:00"
    assert early["dag_run"] == late["dag_run"] == "manual__2", "who published last"
    (tables,) = read_runs(published, [("demo", "early")])
    assert tables is not None
    assert tables["runs"][0]["measured_dag_run"] == "manual__1"


def test_what_is_known_of_a_run_and_of_an_experiment_goes_with_them(
    published: str, tmp_path: Path
) -> None:
    def stored() -> tuple[list[str], int]:
        with sqlite3.connect(tmp_path / "results.db") as database:
            runs = [run for (run,) in database.execute("SELECT run FROM origins")]
            return runs, len(database.execute("SELECT * FROM publications").fetchall())

    remove_runs(tmp_path / "demo", ["early"], published)
    assert stored() == (["late"], 2)
    remove_runs(tmp_path / "demo", ["late"], published)
    assert stored() == ([], 0)


def test_who_measures_a_run_is_marked_until_somebody_measures_it_anew(tmp_path: Path) -> None:
    spec = run_spec(experiment="marked", controller="fixed", btu_min=1, duration_min=1)
    store = stages.store_of(spec, tmp_path)
    stages.provision(spec, tmp_path, FIRST)
    assert origin_of(store) is None, "not complete yet"
    stages.run_all(spec, tmp_path, by=SECOND)
    origin = origin_of(store)
    assert origin is not None
    assert origin.by == SECOND, "who goes on with it"
    stages.run_all(spec, tmp_path, by=FIRST)
    assert origin_of(store) == origin, "reused"
    stages.forget(spec, tmp_path)
    stages.run_all(spec, tmp_path)
    anew = origin_of(store)
    assert anew is not None
    assert anew.by == BY_HAND
    assert not (store.home / "origin.json").exists()


@pytest.mark.parametrize("content", ["[]", "3", '{"dag": "mine"}'])
def test_a_damaged_mark_of_who_measured_a_run_is_named(content: str, tmp_path: Path) -> None:
    measured(tmp_path, "early", FIRST)
    store = RunStore(tmp_path, "early")
    (store.home / "origin.json").write_text(content)
    with pytest.raises(StoreError, match=r"origin\.json is damaged"):
        origin_of(store)
