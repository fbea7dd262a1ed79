"""A sweep on a Spark cluster: workers get the code from the driver, and one of them is killed."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from include.experiment.matrix import runs_in_file
from include.runs import stages
from tests.bench.spark_cluster import a_cluster
from tests.bench.sweeps import KILLED, NAME, Swept, problems, sweep_and_kill

pytestmark = pytest.mark.spark

RUNS = 36


def digests(root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.suffix != ".csv"
    }


def test_nothing_is_lost_and_nothing_twice_when_a_worker_is_killed(tmp_path: Path) -> None:
    root, alone = tmp_path / "data", tmp_path / "alone"
    with a_cluster(tmp_path / "cluster", workers=2) as cluster:
        swept = sweep_and_kill(cluster, RUNS, minutes=10, root=root)
        assert cluster.workers[KILLED].returncode is not None
        # Compiled functions are kept beside the source that a worker has read.
        ours = "app-*/*/tidebench/include/testbeds/simulated/__pycache__/kernel.advance-*.nbi"
        assert list(cluster.work_of(0).glob(ours))
    assert problems(swept, RUNS, root) == []
    assert swept.complete_at_the_kill < RUNS
    assert {row["outcome"] for row in swept.statuses} <= {"measured", "reused"}
    for point in runs_in_file(tmp_path / "cluster" / f"{NAME}.yaml")[:2]:
        stages.run_all(point, alone)
    expected = digests(alone)
    assert {path: sha256 for path, sha256 in digests(root).items() if path in expected} == expected


def test_what_is_lost_or_there_twice_is_named(tmp_path: Path) -> None:
    rows = [{"run": "a", "error": ""}, {"run": "a", "error": ""}, {"run": "b", "error": "no"}]
    reported = problems(Swept("", rows, 0, 1.0), 3, tmp_path)
    assert reported == [
        "a has 2 statuses",
        "b: no",
        "2 of 3 runs have a status",
        "a is not complete",
        "b is not complete",
    ]
