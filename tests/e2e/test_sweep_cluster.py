"""A sweep on a Spark cluster: workers get all code from the driver, and one of them is killed.

Also the code of a controller whose folder no worker knows.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from include.experiment.matrix import runs_in_file
from include.runs import stages
from include.runs.spark.sweep import STATUS
from include.runs.stored import ASKED
from tests.conftest import REPOSITORY
from tests.digests import digests
from tests.e2e.own_controller import write_own
from tests.e2e.spark_cluster import HERE, a_cluster
from tests.live.world import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

SWEEP = {
    "name": "swept", "patterns": "random_walk_1", "btus_min": [10], "seeds": "1-18",
    "summaries_only": True,
}  # fmt: skip
DEADLINE_S = 900.0


def test_nothing_is_lost_and_nothing_twice_when_a_worker_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, root, log = write_own(tmp_path / "home", **SWEEP), tmp_path / "data", tmp_path / "log"
    monkeypatch.syspath_prepend(str(spec.parent))
    points = runs_in_file(spec)

    def complete() -> int:
        return len(list(root.glob("swept/runs/*/manifest.json")))

    with a_cluster(tmp_path, workers=2) as cluster, log.open("wb") as sink:
        driver = subprocess.Popen(
            [sys.executable, "-m", "include.cli", "run", spec, "--root", root,
             "--on", cluster.master],
            cwd=spec.parent, stdout=sink, stderr=subprocess.STDOUT,
            env=os.environ | {"PYTHONPATH": str(REPOSITORY), "SPARK_LOCAL_IP": HERE},
        )  # fmt: skip
        try:
            wait_until(
                lambda: driver.poll() is not None or complete() >= len(points) // 3,
                log.read_text,
                DEADLINE_S,
            )
            assert complete() < len(points), log.read_text()
            cluster.kill(1)
            assert driver.wait(DEADLINE_S) == 0, log.read_text()
        finally:
            driver.kill()
            driver.wait()
    with (root / "swept" / STATUS).open(encoding="utf-8") as file:
        statuses = [(row["run"], row["error"]) for row in csv.DictReader(file)]
    assert statuses == [(point.run_id, "") for point in points]
    assert complete() == len(points)
    for point in points:
        assert stages.store_of(point, root).damage(point.windows) == ""
    files = list((root / "swept" / "measurements").rglob("*.parquet"))
    assert len(files) == len({file.parent for file in files})
    unpacked = "app-*/*/tidebench"
    assert list((tmp_path / "worker-0").glob(f"{unpacked}/my_package/module.py"))
    # Compiled functions are kept beside the source that a worker has read.
    compiled = "include/testbeds/simulated/__pycache__/kernel.advance-*.nbi"
    assert list((tmp_path / "worker-0").glob(f"{unpacked}/{compiled}"))
    for point in points[:: len(points) // 2]:
        stages.run_all(point, tmp_path / "alone")
    alone, swept = (digests(where, STATUS, ASKED) for where in (tmp_path / "alone", root))
    assert {path: swept[path] for path in alone} == alone
