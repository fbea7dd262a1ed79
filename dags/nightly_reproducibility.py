"""
Measure the evaluations of published systems anew, and say whether they still come out.

It runs when triggered, or nightly if `TIDEBENCH_SCHEDULES` has it. `studies` says which. Pages:
`nightly_<study>`, with `seeds` or `patterns` in `nightly_<study>_part`, unjudged. A failure means:
- `check_cells`: runs broke. The log of their `measure_cell` says why; clear it with what follows.
- `check_tables`: the tables contradict themselves, nothing was published. See `data_docs/`.
- `publish_report`: runs did not pass their checks; its log names them. Others are published.
- `check_verdict`, **drift**: not bit for bit last night (the `stored` baseline), or a cell is not
  that of the `committed` one. `drift.csv` says what moved. `accept_drift` lets it pass.
- `check_verdict` with `strict`, **the paper is not reproduced**: the mean error of a controller is
  above its limit. `verdict.csv` has every cell and names the errata. Today this is so of peerj141.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import dag, task_group

from tidebench import batch, locks, spark, studies, tasks
from tidebench.stage import described, schedule_of


@dag(
    **described(__doc__, studies.PARAMS),
    schedule=schedule_of("nightly_reproducibility"),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    max_active_runs=1,
    max_active_tasks=4,  # a simulation keeps one core busy
    dagrun_timeout=timedelta(hours=12),
    tags=["reproduction"],
)
def nightly_reproducibility() -> None:
    choose = studies.ChooseStudies(task_id="choose_studies")
    turn = locks.AcquireExperimentLock.partial(**studies.IN_TURN).expand(experiment=choose.output)
    resolve = studies.ResolveStudies(task_id="resolve_matrix", experiments=choose.output)
    cells, last = resolve.output, ["measure_cell"]
    measure = batch.MeasureCell.partial(task_id="measure_cell", **batch.NAMED).expand(cell=cells)
    confirm = batch.CheckCells(task_id="check_cells", cells=cells, measure=last, **batch.COMPLETE)

    @task_group(prefix_group_id=False)
    def study(experiment: str) -> None:
        names = {"experiment": experiment, **studies.NAMED}
        build = spark.BuildTables(task_id="build_tables", cells=cells, **names, **batch.COMPLETE)
        check = tasks.CheckTables(task_id="check_tables", **names)
        publish = tasks.PublishReport(task_id="publish_report", cells=cells, **names)
        judge = studies.CheckVerdict(task_id="check_verdict", **names)
        measure >> build >> check >> publish >> judge << confirm

    turn >> resolve >> measure >> confirm
    study.expand(experiment=choose.output)


nightly_reproducibility()
