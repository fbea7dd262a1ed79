"""A DAG run that is marked failed stays failed, whenever that is, and releases its testbed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
TO_COME = {"check_tables": None, "publish_report": None}
RELEASING: dict[str, str | None] = {"release_testbed": "running"}
MOMENTS: dict[str, dict[str, str | None]] = {
    "in a window": {"control_window": "running", "build_tables": None, **TO_COME}
    | {"release_testbed": None},
    "before the tables": {"build_tables": "queued", **TO_COME, "release_testbed": "queued"},
    "while the tables are built": {"build_tables": "running", **TO_COME, **RELEASING},
    "while they are checked": {"check_tables": "running", "publish_report": None, **RELEASING},
    "while they are published": {"publish_report": "running", **RELEASING},
    "behind the report": RELEASING,
    "without a report": dict.fromkeys(["build_tables", *TO_COME], "skipped") | RELEASING,
    "once all is released": {"build_tables": "running", **TO_COME},
}


def test_a_dag_run_that_is_marked_failed_stays_failed_and_its_teardown_still_runs(
    airflow_environment: dict[str, str],
) -> None:
    done = subprocess.run(
        [sys.executable, HERE / "mark_failed.py", HERE.parents[1] / "dags"],
        input=json.dumps(list(MOMENTS.values())),
        env=airflow_environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    ends = dict(zip(MOMENTS, json.loads(done.stdout.splitlines()[-1]), strict=True))
    assert {moment: end["state"] for moment, end in ends.items()} == dict.fromkeys(
        MOMENTS, "failed"
    )
    released_before = {"once all is released"}
    assert {moment for moment, end in ends.items() if not end["teardown_due"]} == released_before
    for moment in MOMENTS:
        (reason,) = ends[moment]["reasons"]
        assert "Ended by hand" in reason, moment
