"""
Remove runs of an experiment for good, and publish the report of those that are left.

- `resolve_runs`: which runs; a name that is not there is said at once, with those that are
- `wait_for_turn`: until no DAG run measures one of them or reports the experiment
- `remove_runs`: their measurements and their rows in the results database
- `build_tables`, `check_tables`, `publish_report`: of the runs that are left; skipped without any

The page "Experiments" triggers it for the runs that were chosen there. The same as
`tidebench remove var/<experiment> <run>...` and a report after it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import dag

from tidebench import locks, removal, spark, tasks
from tidebench.stage import described

EXPERIMENT = "{{ params.experiment }}"
PARAMS: dict[str, dict[str, Any]] = {
    "experiment": {
        "default": "",
        "type": "string",
        "title": "Experiment",
        "description": "Whose runs to remove.",
    },
    "runs": {
        "default": [],
        "type": "array",
        "items": {"type": "string"},
        "title": "Runs",
        "description": "One per line, named as on the page Experiments.",
    },
}


@dag(
    **described(__doc__, PARAMS),
    max_active_runs=1,
    dagrun_timeout=timedelta(days=2),
    tags=["experiment"],
)
def remove_runs() -> None:
    runs = removal.ResolveRuns(task_id="resolve_runs", experiment=EXPERIMENT).output
    turn = locks.AcquireExperimentLock(task_id="wait_for_turn", experiment=EXPERIMENT, run_ids=runs)
    remove = removal.RemoveRuns(task_id="remove_runs", experiment=EXPERIMENT, run_ids=runs)
    build = spark.BuildTables(task_id="build_tables", experiment=EXPERIMENT)
    check = tasks.CheckTables(task_id="check_tables", experiment=EXPERIMENT)
    publish = tasks.PublishReport(task_id="publish_report", experiment=EXPERIMENT)
    turn >> remove >> build >> check >> publish


remove_runs()
