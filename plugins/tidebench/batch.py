"""The tasks of a matrix: cells that are measured whole, one task each, and held to account."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from tidebench.lineage import MEASURED, files
from tidebench.stage import (
    TidebenchOperator,
    dag_run_of_task,
    data_root,
    run_of,
    without_vain_retries,
)

if TYPE_CHECKING:
    from pathlib import Path

    from airflow.sdk import Context

    from include.experiment.spec import RunSpec
    from include.runs.measurements.origin import DagRun

COMPLETE = {"trigger_rule": "all_done"}
"""For tasks that follow the cells: wait for all, go on with those that succeeded. What is only
for done tasks with one success among them is skipped with the way that was not chosen."""
NAMED = {"map_index_template": "{{ task.cell.name }}"}
"""For tasks that are mapped over cells: each copy is named after its own."""
Cell = dict[str, Any]
"""What one task measures: ``name`` in the UI and ``runs``, each as JSON."""


class ResolveMatrix(BaseOperator):
    """Check every cell of the matrix, all at once, before the first one is measured.

    XComs: ``experiment`` is its name, ``way`` how its cells are measured; the return value lists
    its cells for mapping.
    """

    def execute(self, context: Context) -> list[Cell]:
        """Return one cell per run: its id and itself."""
        from airflow.sdk.configuration import conf

        from include.experiment.form import BY_TESTBED
        from include.experiment.params import matrix_from_params, way_of

        params = context["params"]
        with without_vain_retries():
            runs = matrix_from_params(params, conf.getint("core", "max_map_length"))
        way = way_of(runs, params.get("each_cell", BY_TESTBED))
        context["ti"].xcom_push(key="experiment", value=runs[0].experiment)
        context["ti"].xcom_push(key="way", value=way)
        return [{"name": run.run_id, "runs": [run.to_json()]} for run in runs]


class MeasureCell(TidebenchOperator):
    """Measure the runs of one cell to their end, all windows of each in this task.

    Complete runs are reused, interrupted ones go on from their last window, and one that fails
    leaves the others of the cell alone. The return value lists the ids of the runs.
    """

    template_fields: Sequence[str] = ("cell",)

    def __init__(self, *, cell: Cell, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cell = cell

    def execute(self, context: Context) -> list[str]:
        """Measure; with several failures the first one fails the task and all are logged."""
        runs, root = [run_of(text) for text in self.cell["runs"]], data_root()
        by = dag_run_of_task(context)
        errors = []
        for run in runs:
            try:
                self._measure(run, root, by)
            except Exception as error:
                self.log.error("tidebench: %s failed: %s", run.run_id, error)
                errors.append(error)
        with without_vain_retries():
            if errors:
                raise errors[0]
        self.add_outlets(files(root / runs[0].experiment, MEASURED))  # a cell is of one
        return [run.run_id for run in runs]

    def _measure(self, run: RunSpec, root: Path, by: DagRun) -> None:
        from include.runs.session import failed_advisors
        from include.runs.stages import run_all, stored_state

        def progress(window: dict[str, Any]) -> None:
            done = f"{run.run_id}: window {window['window'] + 1} of {run.windows}"
            self.say("%s, minute %g, %d hosts", done, window["end_min"], window["hosts"])

        stored = stored_state(run, root)
        windows = run_all(run, root, progress, by)
        samples = max(sum(window["samples"] for window in windows), 1)
        in_time = sum(window["samples_within"]["real_time"] for window in windows)
        self.say(
            "%s is %s (%s): %d windows, %.0f %% of samples in real time",
            run.run_id,
            "reused" if stored is stored.COMPLETE else "measured",
            stored.value,
            len(windows),
            100 * in_time / samples,
        )
        for advisor, error in failed_advisors(windows).items():
            self.say("advisor %s failed, and the run went on without it: %s", advisor, error)


class CheckCells(TidebenchOperator):
    """Fail, naming the cells that were not measured, once all have ended.

    ``measure`` are the ids of the tasks that were mapped over ``cells``, of which one ran. What
    is complete is in the tables all the same; this is what keeps the DAG run from passing for
    complete.
    """

    template_fields: Sequence[str] = ("cells",)

    def __init__(self, *, cells: list[Cell], measure: Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cells = cells
        self.measure = measure

    def execute(self, context: Context) -> None:
        if not self.cells:
            raise AirflowFailException("there are no cells; the log of resolve_matrix says why")
        ti = context["ti"]
        states = ti.get_task_states(
            dag_id=ti.dag_id, task_ids=list(self.measure), run_ids=[ti.run_id]
        ).get(ti.run_id, {})
        failed = [
            cell["name"]
            for index, cell in enumerate(self.cells)
            if all(states.get(f"{task}_{index}") != "success" for task in self.measure)
        ]
        if failed:
            listed = "\n".join(f"  - {name}" for name in failed)
            raise AirflowFailException(
                f"{len(failed)} of {len(self.cells)} cells are not measured; the log of each says "
                "why. Clear the tasks of these cells once the cause is gone: the other cells are "
                f"kept.\n{listed}"
            )
        self.say("all %d cells are measured", len(self.cells))
