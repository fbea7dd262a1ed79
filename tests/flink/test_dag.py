"""The DAG `experiment` on a real Flink; in the middle of the run a host is killed.

TIDEBENCH_FLINK_MINUTES is how long a run takes: 20, or what `make test-flink-dag MINUTES=6` says.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from include.experiment.params import run_from_params
from include.experiment.run import Run, resolve
from include.results.tables.staged import read_table
from include.testbeds.flink.reap import give_back_run, processes_of
from include.testbeds.flink.state import run_folder
from include.testbeds.flink.testbed import FlinkTestbed
from include.testbeds.live.files import read_json
from tests.e2e.dag_process import DEADLINE_S, DagProcess, started
from tests.flink.flink_run import expected_items

pytestmark = [pytest.mark.flink, pytest.mark.long]

MINUTES = float(os.environ.get("TIDEBENCH_FLINK_MINUTES", "20"))
LEVELS = [1, 2, 4, 3, 2, 3, 1, 1, 0, 0]
"""Machines; in the last two tenths of the run everything that waits is done."""


def params(controller: str) -> dict[str, Any]:
    """Those of flink_small.yaml, with a load that ends before the run."""
    return {
        "experiment": "flink_dag",
        "topology": "manufacturing",
        "testbed": "flink",
        "calibration": "manufacturing_fast",
        "controller": controller,
        "controller_options": {"interval_s": 15},
        "pattern": "stepwise",
        "pattern_options": {"levels": LEVELS, "hold_s": 60 * MINUTES / len(LEVELS)},
        "btu_min": 1,
        "duration_min": MINUTES,
        "monitor_every_s": 5,
        "max_hosts": 8,
        "price_books": ["per_minute"],
    }


@pytest.mark.parametrize("controller", ["threshold", "tide"])
def test_a_run_by_dag_that_loses_a_host_has_every_item_once_and_is_published(
    airflow_environment: dict[str, str], data_root: Path, tmp_path: Path, controller: str
) -> None:
    run = resolve(run_from_params(params(controller)))
    environment = airflow_environment | {"TIDEBENCH_DATA_ROOT": str(data_root)}
    journal = run_folder(run.spec.run_id).parent.with_name(f"{run.spec.run_id}.jsonl")
    journal.unlink(missing_ok=True)
    try:
        with started(environment, params(controller), tmp_path / "airflow.log") as dag:
            killed = kill_a_host(run, dag, journal)
            assert dag.finish(60 * MINUTES + DEADLINE_S) == 0, dag.tail()
        rows = [json.loads(line) for line in journal.read_text().splitlines() if line]
    finally:
        give_back_run(run.spec.run_id)
        journal.unlink(missing_ok=True)
    assert ["host_lost", killed] in [row[2:4] for row in rows if row[0] == "event"]
    published = data_root / "flink_dag" / "published"
    assert (published / "report.html").is_file()
    metrics = {row["metric"]: row["value"] for row in read_table(published / "metrics.parquet")}
    assert metrics["unprocessed_items"] == 0, (
        "all has to be done before the end: give it more minutes"
    )
    once, twice = items(rows)
    testbed = run.build_testbed()
    assert isinstance(testbed, FlinkTestbed)
    assert once == expected_items(testbed._state.config)
    assert not twice
    starts = f"{killed} killed, {metrics['rescales']:g} starts of the job"
    print(f"{controller}: {starts}, {sum(once.values()):,} items, each once at every operator")


def kill_a_host(run: Run, dag: DagProcess, journal: Path) -> str:
    """One that has an instance, in the middle of the run; returns its name.

    The run's folder is removed when it gives back, so the journal gets a second name beside it.
    """
    folder = run_folder(run.spec.run_id)

    def is_half_over() -> bool:
        time.sleep(1)
        state = read_json(folder / "state.json") or {"started_us": 0}
        passed_s = time.time() - state["started_us"] / 1e6
        return state["started_us"] > 0 and passed_s > run.spec.duration_s / 2

    dag.wait_until(is_half_over, 60 * MINUTES + DEADLINE_S)
    os.link(folder / "journal.jsonl", journal)
    instances = read_json(folder / "state.json")["fleet"]["instances"]
    name = f"host-{next(one['host'] for one in instances.values() if one['ready_s'] is not None)}"
    processes_of(run.spec.run_id)[name].end(first=signal.SIGKILL)
    return name


def items(rows: list[list[Any]]) -> tuple[dict[str, int], list[Any]]:
    """By what was stored: how many different items each operator has done, and which came again."""
    times = Counter((row[2], row[-1]) for row in rows if row[0] == "processing_duration")
    once = Counter(operator for operator, _ in times)
    return dict(once), [key for key, count in times.items() if count > 1]
