"""
The evaluation of PeerJ CS 141, measured anew, and whether it still comes out: when it is triggered,
and every night if `TIDEBENCH_SCHEDULES` in the environment of Airflow names this DAG.

Four patterns x (`btu-runtime` and `btu` at BTU 10, 30 and 60, threshold baseline, fixed) x 3
seeds. Verdict, claims, statistics, drift and page are published below `nightly/published/`
whatever they say. `make reproduce` does the same in a folder of its own. A failure means:

- `check_cells`: runs broke. The log of their `measure_cell` says why; clear it with what follows.
- `check_tables`: the tables contradict themselves, nothing was published. See `data_docs/`.
- `publish_report`: runs did not pass their checks, the others are published. Its log names them.
- `check_verdict`, **drift**: the measurements are not bit for bit those of last night (that is
  the `stored` baseline), or a cell is not that of the `committed` one: code, calibration or a
  library has changed. `drift.csv` says what moved. With `accept_drift` this fails nothing.
- `check_verdict`, **the paper is not reproduced**: the mean error of a controller is above its
  limit. `verdict.csv` has every cell and names the errata. Without `strict` this fails nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import Param, dag

from tidebench import batch, reproduction, spark, tasks
from tidebench.stage import DEFAULTS, schedule_of

OF = {"experiment": reproduction.EXPERIMENT}


@dag(
    schedule=schedule_of("nightly_reproducibility"),
    is_paused_upon_creation=False,  # what is triggered begins
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
    cells = resolve.output
    measure = batch.MeasureCell.partial(task_id="measure_cell", **batch.NAMED).expand(cell=cells)
    build = spark.BuildTables(task_id="build_tables", cells=cells, **OF, **batch.COMPLETE)
    check = tasks.CheckTables(task_id="check_tables", **OF)
    publish = reproduction.PublishReproduction(task_id="publish_report", cells=cells, **OF)
    complete = batch.CheckCells(
        task_id="check_cells", cells=cells, measure=[measure.task_id], **batch.COMPLETE
    )
    judge = reproduction.CheckVerdict(task_id="check_verdict")

    measure >> [build, complete]
    build >> check >> publish
    [publish, complete] >> judge


nightly_reproducibility()
