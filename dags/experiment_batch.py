"""
Run a matrix of controllers, patterns, BTUs and seeds, and publish one report over all its cells.

Give a spec file, or fill in the axes. On the simulator each cell is one task that runs all its
windows.

- `resolve_matrix`: every problem of every cell at once, before the first one is measured
- `measure_cell`: one copy per cell, named after its run
- `check_cells`: fails the DAG run and names the cells when not all of them were measured
- `build_tables`, `check_tables`, `publish_report`: one Spark application, gates, files and
  results database, over the cells that are complete

**When a cell fails**, the others are measured and published all the same. Read the log of the
copy of `measure_cell` that failed, put the cause right, and clear that copy with what is
downstream of it: only this cell is measured. Cells that are complete are never measured twice,
also when the same matrix, or a larger one of the same name, is triggered again.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import Param, dag

from include.experiment.params import batch_params
from tidebench import batch, spark, tasks
from tidebench.stage import DEFAULTS


@dag(
    schedule=None,
    max_active_runs=1,
    max_active_tasks=4,  # a simulation keeps one core busy
    dagrun_timeout=timedelta(days=2),
    default_args=DEFAULTS,
    params={name: Param(**keywords) for name, keywords in batch_params().items()},
    tags=["experiment"],
    doc_md=__doc__,
)
def experiment_batch() -> None:
    resolve = batch.ResolveMatrix(task_id="resolve_matrix")
    experiment = {"experiment": resolve.output["experiment"]}
    measure = batch.MeasureCell.partial(
        task_id="measure_cell", map_index_template="{{ task.cell.name }}"
    ).expand(cell=resolve.output)
    build = spark.BuildTables(
        task_id="build_tables", runs=measure.output, **experiment, **batch.COMPLETE
    )
    check = tasks.CheckTables(task_id="check_tables", **experiment)
    publish = tasks.PublishReport(task_id="publish_report", **experiment)
    confirm = batch.CheckCells(
        task_id="check_cells", cells=resolve.output, measure=measure.task_id, **batch.COMPLETE
    )

    measure >> [build, confirm]
    build >> check >> publish


experiment_batch()
