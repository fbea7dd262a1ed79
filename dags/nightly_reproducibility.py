"""
Every night: the evaluation of PeerJ CS 141, measured anew, and whether it still comes out.

Four patterns x (`btu-runtime` and `btu` at BTU 10, 30 and 60, threshold baseline, fixed) x 3
seeds. Verdict, claims, statistics, drift and page are published below `reproduction/published/`
whatever they say. `make reproduce` does the same from the shell. What a failure means:

- `check_cells`: runs broke. The log of their `measure_cell` says why; clear it with what follows.
- `check_tables`: the tables contradict themselves, nothing was published. See `data_docs/`.
- `check_verdict`, **drift**: the measurements are not bit for bit those of the last accepted
  night; code, calibration or a library has changed. `drift.csv` says what moved. If it is meant,
  trigger this DAG with `accept_drift`; if not, undo it. Until then every night fails.
- `check_verdict`, **published cells missed** by more than their tolerance: see `verdict.csv`,
  which also names the errata of the paper. Without `strict` they fail nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import Param, dag

from include.reproduction.matrix import EXPERIMENT
from tidebench import batch, reproduction, spark, tasks
from tidebench.stage import DEFAULTS

OF = {"experiment": EXPERIMENT}


@dag(
    schedule="0 2 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    max_active_tasks=4,  # a simulation keeps one core busy
    dagrun_timeout=timedelta(hours=12),
    default_args=DEFAULTS,
    params={name: Param(**keywords) for name, keywords in reproduction.PARAMS.items()},
    tags=["reproduction"],
    doc_md=__doc__,
)
def nightly_reproducibility() -> None:
    resolve = reproduction.ResolveReproduction(task_id="resolve_matrix")
    measure = batch.MeasureCell.partial(
        task_id="measure_cell", map_index_template="{{ task.cell.name }}"
    ).expand(cell=resolve.output)
    build = spark.BuildTables(task_id="build_tables", runs=measure.output, **OF, **batch.COMPLETE)
    check = tasks.CheckTables(task_id="check_tables", **OF)
    publish = reproduction.PublishReproduction(task_id="publish_report", **OF)
    complete = batch.CheckCells(
        task_id="check_cells", cells=resolve.output, measure=measure.task_id, **batch.COMPLETE
    )
    judge = reproduction.CheckVerdict(task_id="check_verdict")

    measure >> [build, complete]
    build >> check >> publish
    [publish, complete] >> judge


nightly_reproducibility()
