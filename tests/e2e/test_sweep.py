"""A sweep on a real Spark: the bytes of every other run, and failures that stay where they are."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from include.experiment.matrix import runs_in_file
from include.runs import stages
from include.runs.spark.sweep import STATUS, sweep
from include.runs.stored import ASKED
from infra.airflow.processes import processes_of
from tests.digests import digests
from tests.live.world import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

REPOSITORY = Path(__file__).parents[2]
SPEC = {
    "name": "swept",
    "controllers": {"name": "btu", "scaling_threshold_items": {"sweep": [10, 1000]}},
    "patterns": "random_walk_1",
    "btus_min": 5,
    "duration_min": 10,
    "seeds": [1, 2, 13],
}
KILLER = """
import os, signal
import include.runs.batch as batch

run = batch.run_provisioned

def run_or_die(spec, root, report):
    if spec.seed == 13 and spec.controller_options["scaling_threshold_items"] == 10:
        os.kill(os.getpid(), signal.SIGKILL)
    return run(spec, root, report)

batch.run_provisioned = run_or_die
"""


def status_of(root: Path) -> dict[str, dict[str, str]]:
    with (root / "swept" / STATUS).open(encoding="utf-8") as file:
        return {row["run"]: row for row in csv.DictReader(file)}


LONG = {
    "name": "swept",
    "controllers": ["btu", "threshold"],
    "patterns": "random_walk_1",
    "btus_min": 10,
    "duration_min": 10,
    "seeds": list(range(8)),
}
DEADLINE_S = 900.0


def test_a_driver_that_is_killed_leaves_nothing_behind_but_what_is_complete(tmp_path: Path):
    spec, root, log = tmp_path / "swept.yaml", tmp_path / "data", tmp_path / "log"
    spec.write_text(json.dumps(LONG), encoding="utf-8")
    points = runs_in_file(spec)
    stores = [stages.store_of(point, root) for point in points]

    def complete() -> set[str]:
        return {store.run_id for store in stores if store.manifest.is_file()}

    with log.open("w") as sink:
        driver = subprocess.Popen(
            [sys.executable, "-m", "include.cli", "run", spec, "--root", root,
             "--on=local[2]"],
            cwd=REPOSITORY, stdout=sink, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        wait_until(lambda: len(complete()) >= 3, "three points are complete", DEADLINE_S)
        driver.kill()
        driver.wait()
        wait_until(lambda: not processes_of(driver.pid), "nothing is left", DEADLINE_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
    kept = complete()
    assert 3 <= len(kept) < len(points), log.read_text()

    rows = sweep(points, root, master="local[2]", say=lambda _: None)
    assert {row.spec.run_id for row in rows if row.outcome == "reused"} == kept
    assert {row.outcome for row in rows} == {"measured", "reused"}
    for point in points[:2]:
        stages.run_all(point, tmp_path / "alone")
    alone, swept = (digests(where, STATUS, ASKED) for where in (tmp_path / "alone", root))
    assert {path: swept[path] for path in alone} == alone
    assert set(status_of(root)) == {point.run_id for point in points}


def test_one_point_fails_one_kills_its_worker_and_a_repetition_completes_them(tmp_path: Path):
    spec, root = tmp_path / "swept.yaml", tmp_path / "data"
    spec.write_text(json.dumps(SPEC), encoding="utf-8")
    points = runs_in_file(spec)
    blocked = next(point for point in points if point.seed == 2)
    killed = next(point for point in points if point.seed == 13)
    in_the_way = root / "swept" / "runs" / blocked.run_id
    in_the_way.parent.mkdir(parents=True)
    in_the_way.write_text("a file where a folder belongs", encoding="utf-8")
    (tmp_path / "killer").mkdir()
    (tmp_path / "killer" / "sitecustomize.py").write_text(KILLER, encoding="utf-8")

    done = subprocess.run(
        [sys.executable, "-m", "include.cli", "run", spec, "--root", root, "--on=local[2]"],
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": f"{tmp_path / 'killer'}{os.pathsep}{REPOSITORY}"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1, done.stdout + done.stderr
    status = status_of(root)
    assert list(status) == [point.run_id for point in points]
    assert "cannot be written" in status[blocked.run_id]["error"]
    assert "worker of this point was killed" in status[killed.run_id]["error"]
    failed = {run for run, row in status.items() if row["outcome"] == "failed"}
    assert failed == {blocked.run_id, killed.run_id}
    assert "2 failed" in done.stdout

    in_the_way.unlink()
    rows = sweep(points, root, master="local[2]", say=lambda _: None)
    assert {row.spec.run_id for row in rows if row.outcome == "measured"} == failed
    assert {row.outcome for row in rows} == {"measured", "reused"}

    for point in points:
        stages.run_all(point, tmp_path / "alone")
    assert digests(root, STATUS, ASKED) == digests(tmp_path / "alone", STATUS, ASKED)
