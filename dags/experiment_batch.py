"""
Run a matrix of controllers, patterns, BTUs and seeds, and publish one report over all its cells.

- `resolve_matrix`: every problem of every cell at once, before the first one is measured
- `wait_for_turn`: nobody else is at work on it
- `choose_way`: on the simulator `measure_cell` measures a cell, elsewhere a DAG run of `experiment`
- `check_cells`: fails the DAG run and names the cells when not all of them were measured
- `build_tables`, `check_tables`, `publish_report`: one Spark application for all complete cells

**When a cell fails**, correct what its log says and clear the cell: complete ones are reused.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import dag, task, task_group

from include.experiment.form import batch_params
from tidebench import batch, locks, runs, spark, tasks
from tidebench.stage import described

LONG = {"execution_timeout": timedelta(hours=26)}  # `check` expects a day at most
WAYS = {"task": "measure_cell", "dag_run": "cell_run.trigger_run"}
OF = {"experiment": "{{ ti.xcom_pull(task_ids='resolve_matrix', key='experiment') }}"}


@dag(
    **described(__doc__, batch_params()),
    max_active_runs=1,
    max_active_tasks=4,  # a simulation keeps one core busy
    dagrun_timeout=timedelta(days=30),  # in real time the evaluation of the paper takes weeks
    tags=["experiment"],
)
def experiment_batch() -> None:
    resolve = batch.ResolveMatrix(task_id="resolve_matrix")
    turn, cells = locks.AcquireExperimentLock(task_id="wait_for_turn", **OF), resolve.output
    measure = batch.MeasureCell.partial(task_id="measure_cell", **LONG, **batch.NAMED)
    measured = measure.expand(cell=cells)

    @task_group
    def cell_run(cell: batch.Cell) -> None:
        trigger = runs.TriggerRun(task_id="trigger_run", cell=cell, **batch.NAMED)
        trigger >> runs.WaitForRun(task_id="wait_for_run", cell=cell, cells=cells, **batch.NAMED)

    @task.branch
    def choose_way(way: str) -> str:
        return WAYS[way]

    triggered = cell_run.expand(cell=cells)
    choose = choose_way(resolve.output["way"])
    build = spark.BuildTables(task_id="build_tables", cells=cells, **OF, **batch.COMPLETE)
    check = tasks.CheckTables(task_id="check_tables", **OF)
    publish = tasks.PublishReport(task_id="publish_report", cells=cells, **OF)
    last = ["measure_cell", "cell_run.wait_for_run"]
    confirm = batch.CheckCells(task_id="check_cells", cells=cells, measure=last, **batch.COMPLETE)
    resolve >> turn >> choose >> [measured, triggered] >> confirm
    [measured, triggered] >> build >> check >> publish


experiment_batch()
