"""
Measure every point of a spec file as one Spark task, then publish one report over all of them.

- `resolve_points`: every problem of every point at once, before anything is measured
- `wait_for_turn`: nobody else is at work on this experiment
- `measure_points`: one Spark application; complete points are reused, and one that fails leaves
  the others alone: `<experiment>/sweep_status.csv` says which and why. Clearing the task measures
  only what is missing
- `build_tables`, `check_tables`, `publish_report`: as in the DAG `experiment`

The same as `tidebench run SPEC.yaml --on MASTER`, byte for byte.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import dag

from include.experiment.form import sweep_params
from tidebench import locks, spark, sweep, tasks
from tidebench.stage import described

LONG = {"execution_timeout": timedelta(hours=24)}
PATH = "{{ params.spec }}"


@dag(
    **described(__doc__, sweep_params()),
    dag_id="sweep",
    max_active_runs=1,
    dagrun_timeout=timedelta(days=2),
    tags=["experiment"],
)
def sweep_points() -> None:
    resolve = sweep.ResolvePoints(task_id="resolve_points", spec=PATH)
    run_ids, experiment = resolve.output["run_ids"], {"experiment": resolve.output}
    turn = locks.AcquireExperimentLock(task_id="wait_for_turn", **experiment)
    measure = sweep.MeasurePoints(task_id="measure_points", spec=PATH, run_ids=run_ids, **LONG)
    build = spark.BuildTables(task_id="build_tables", **experiment)
    check = tasks.CheckTables(task_id="check_tables", **experiment)
    publish = tasks.PublishReport(task_id="publish_report", run_ids=run_ids, **experiment)

    resolve >> turn >> measure >> build >> check >> publish


sweep_points()
