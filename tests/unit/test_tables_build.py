"""Measured Parquet to staged tables with a real Spark."""

from __future__ import annotations

import json
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
from include.results.tables.quarantine import read_quarantine
from include.results.tables.staged import read_staged
from include.runs.spark.session import local_driver
from tests.builders_measurements import MadeUpRun, write_runs

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

REPOSITORY = Path(__file__).parents[2]
# Every other test shares a session that runs already.
ALONE = """
from pyspark.sql import SparkSession
from include.runs.spark.session import spark_session

for number in (1, 2):
    with spark_session("local[1]", small=True) as spark:
        print(spark.sql(f"SELECT {number} AS number").toArrow().to_pylist())
    print(SparkSession.getActiveSession())
"""

BTU = MadeUpRun(duration_s=300)
THRESHOLD = MadeUpRun(run="threshold-s2", controller="threshold", seed=2, duration_s=300)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_runs(tmp_path_factory.mktemp("data"), "demo", BTU, THRESHOLD)
    build_tables(folder, master="local[2]")
    return folder


def test_every_table_is_staged_for_every_run(folder: Path) -> None:
    staged = {path.stem for path in (folder / "staged").iterdir()}
    assert staged == {*PUBLISHED, INPUT_CHECKS, "quarantine", "sources"}
    assert {row["run"] for row in read_staged(folder, "cost")} == {BTU.run, THRESHOLD.run}


def test_the_files_that_the_tables_are_of_are_kept_with_them(folder: Path) -> None:
    kept = json.loads((folder / "staged" / "sources.json").read_text())
    manifests = {path: sha for path, sha in kept.items() if path.endswith("manifest.json")}
    assert len(manifests) == len(list(folder.glob("runs/*/manifest.json")))
    assert all(digest(folder / path) == sha for path, sha in manifests.items())


def test_what_was_made_up_keeps_the_rules_of_the_inputs(folder: Path) -> None:
    for row in read_staged(folder, INPUT_CHECKS):
        assert row["lowest"] <= row["measured"], row
        assert row["highest"] is None or row["measured"] <= row["highest"], row


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
def test_a_session_ends_with_its_work_and_another_may_follow() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ALONE], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split("\n") == ["[{'number': 1}]", "None", "[{'number': 2}]", "None", ""]


@pytest.mark.long
def test_compiled_queries_on_many_rows_give_the_bytes_of_interpreted_ones(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = write_runs(tmp_path, "demo", BTU, THRESHOLD)
    monkeypatch.setattr(build, "MOST_INTERPRETED_ROWS", 0)
    monkeypatch.setattr(build, "MOST_ROWS_READ_HERE", 0)
    build_tables(other, master="local[2]")
    for path in (folder / "staged").iterdir():
        assert (other / "staged" / path.name).read_bytes() == path.read_bytes(), path.name


def test_a_query_waits_for_every_step_that_it_names() -> None:
    assert read_by("series") == ()
    assert {"metrics"} <= set(read_by("means")) < set(STEPS)
    for step in STEPS:
        assert all(STEPS.index(earlier) < STEPS.index(step) for earlier in read_by(step))


def test_only_the_named_runs_are_read(folder: Path, tmp_path: Path) -> None:
    other = write_runs(tmp_path, "demo", BTU, THRESHOLD)
    rows = build_tables(other, [THRESHOLD.run], master="local[2]")
    assert rows["runs"] == 1
    assert {row["run"] for row in read_staged(other, "scaling")} == {THRESHOLD.run}


def test_a_run_whose_files_are_torn_is_left_out_and_back_when_they_are_whole(
    tmp_path: Path,
) -> None:
    folder = write_runs(tmp_path, "demo", BTU, THRESHOLD)
    torn = next((folder / "measurements" / "lease").rglob(f"run={BTU.run}/*.parquet"))
    whole = torn.read_bytes()
    torn.write_bytes(whole[:-9])
    assert build_tables(folder, master="local[2]")["runs"] == 1
    ((run, (check,)),) = read_quarantine(folder).items()
    assert run == BTU.run
    assert str(torn) in check.sentence
    torn.write_bytes(whole)
    assert build_tables(folder, master="local[2]")["runs"] == 2
    assert read_quarantine(folder) == {}


def test_runs_of_other_files_are_not_averaged(tmp_path: Path) -> None:
    other = replace(BTU, run="btu-again", seed=2)
    folder = write_runs(tmp_path, "demo", BTU, other)
    for k, run in enumerate((BTU.run, other.run)):
        spec = {"topology": f"{k}/job.yaml", "calibration": "", "pattern_options": {}}
        inputs = {
            "spec": spec,
            "topology": {"k": k},
            "calibration": 0,
            "levels": [],
            "level_of": {},
        }
        (folder / "runs" / run / "run.json").write_text(json.dumps(inputs))
    with pytest.raises(StoreError, match="another topology under the same name"):
        build_tables(folder, master="local[2]")
    assert not (folder / "staged").exists()


def test_when_no_run_can_be_read_every_reason_is_told(tmp_path: Path) -> None:
    folder = write_runs(tmp_path, "demo", BTU, THRESHOLD)
    for part in (folder / "measurements" / "price").rglob("*.parquet"):
        part.unlink()
    with pytest.raises(StoreError) as caught:
        build_tables(folder, master="local[2]")
    assert all(f"left out: run {spec.run}" in str(caught.value) for spec in (BTU, THRESHOLD))
