"""Measured Parquet to staged tables with a real Spark."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from include.files.whole import digest
from include.model.errors import StoreError
from include.results.tables import build
from include.results.tables.build import STEPS, build_tables, read_by
from include.results.tables.catalogue import INPUT_CHECKS, PUBLISHED
from include.results.tables.covers import read_covers
from include.results.tables.quarantine import read_quarantine
from include.results.tables.staged import read_staged
from include.runs.spark.session import local_driver
from include.runs.stages import run_all
from tests.builders import run_spec
from tests.conftest import REPOSITORY

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

BTU = run_spec(experiment="demo", duration_min=5, btu_min=5)
THRESHOLD = replace(BTU, controller="threshold", seed=2)
RUNS = {BTU.run_id, THRESHOLD.run_id}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of two runs without tables."""
    root = tmp_path_factory.mktemp("data")
    for spec in (BTU, THRESHOLD):
        run_all(spec, root)
    return root / "demo"


@pytest.fixture(scope="module")
def folder(measured: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = shutil.copytree(measured, tmp_path_factory.mktemp("built") / "demo")
    build_tables(folder, master="local[2]")
    return folder


@pytest.fixture
def other(measured: Path, tmp_path: Path) -> Path:
    """A copy without tables."""
    return shutil.copytree(measured, tmp_path / "demo")


def test_a_run_that_is_measured_again_meanwhile_is_told(
    other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgotten(folder: Path) -> object:
        (folder / "runs" / BTU.run_id / "manifest.json").unlink()
        return read_covers(folder)

    monkeypatch.setattr(build, "read_covers", forgotten)
    with pytest.raises(StoreError, match=rf"measured again .* {BTU.run_id}; report again"):
        build_tables(other, master="local[2]")
    assert not (other / "staged").exists()


def test_every_table_is_staged_for_every_run(folder: Path) -> None:
    staged = {path.stem for path in (folder / "staged").iterdir()}
    assert staged == {*PUBLISHED, INPUT_CHECKS, "quarantine", "sources"}
    assert {row["run"] for row in read_staged(folder, "cost")} == RUNS


def test_the_files_that_the_tables_are_of_are_kept_with_them(folder: Path) -> None:
    kept = json.loads((folder / "staged" / "sources.json").read_text())
    manifests = {path: sha for path, sha in kept.items() if path.endswith("manifest.json")}
    assert len(manifests) == len(list(folder.glob("runs/*/manifest.json")))
    assert all(digest(folder / path) == sha for path, sha in manifests.items())


@pytest.mark.long
def test_building_again_by_spark_submit_gives_the_same_bytes(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in (folder / "staged").iterdir()}
    job = REPOSITORY / "include" / "results" / "tables" / "job.py"
    submit = Path(sys.executable).with_name("spark-submit")
    driver = [part for pair in local_driver().items() for part in ("--conf", "=".join(pair))]
    done = subprocess.run(
        [submit, "--master", "local[1]", *driver, job, "--folder", folder],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "compliance: " in done.stdout
    assert {path.name: path.read_bytes() for path in (folder / "staged").iterdir()} == before
    assert {path.name for path in folder.iterdir()} == {"measurements", "runs", "staged"}


@pytest.mark.long
def test_compiled_queries_on_many_rows_give_the_bytes_of_interpreted_ones(
    folder: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "MOST_INTERPRETED_ROWS", 0)
    monkeypatch.setattr(build, "MOST_ROWS_OF_ONE_COMPILER", 0)
    build_tables(other, master="local[2]")
    for path in (folder / "staged").iterdir():
        assert (other / "staged" / path.name).read_bytes() == path.read_bytes(), path.name


def test_a_query_waits_for_every_step_that_it_names() -> None:
    assert read_by("series") == ()
    assert {"metrics"} <= set(read_by("means")) < set(STEPS)
    for step in STEPS:
        assert all(STEPS.index(earlier) < STEPS.index(step) for earlier in read_by(step))


def test_only_the_named_runs_are_read(other: Path) -> None:
    rows = build_tables(other, [THRESHOLD.run_id], master="local[2]")
    assert rows["runs"] == 1
    assert {row["run"] for row in read_staged(other, "scaling")} == {THRESHOLD.run_id}


def test_a_run_whose_files_are_torn_is_left_out_and_back_when_they_are_whole(other: Path) -> None:
    torn = next((other / "measurements" / "lease").rglob(f"run={BTU.run_id}/*.parquet"))
    whole = torn.read_bytes()
    torn.write_bytes(whole[:-9])
    assert build_tables(other, master="local[2]")["runs"] == 1
    ((run, (check,)),) = read_quarantine(other).items()
    assert run == BTU.run_id
    assert str(torn) in check.sentence
    torn.write_bytes(whole)
    assert build_tables(other, master="local[2]")["runs"] == 2
    assert read_quarantine(other) == {}


def test_runs_of_other_files_are_not_averaged(tmp_path: Path) -> None:
    for seed in (1, 2):
        trace = tmp_path / f"{seed}" / "load.csv"
        trace.parent.mkdir()
        trace.write_text(f"time_s,level\n0,{seed}\n")
        spec = replace(BTU, pattern="trace", pattern_options={"path": str(trace)}, seed=seed)
        run_all(spec, tmp_path)
    with pytest.raises(StoreError, match="another trace under the same name"):
        build_tables(tmp_path / "demo", master="local[2]")
    assert not (tmp_path / "demo" / "staged").exists()


def test_when_no_run_can_be_read_every_reason_is_told(other: Path) -> None:
    for part in (other / "measurements" / "price").rglob("*.parquet"):
        part.unlink()
    with pytest.raises(StoreError) as caught:
        build_tables(other, master="local[2]")
    assert all(f"left out: run {run}" in str(caught.value) for run in RUNS)
