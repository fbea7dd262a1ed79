"""The tasks of a matrix: cells that are measured whole, one task each, and held to account."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from tidebench.stage import Step, data_root, run_of, without_vain_retries

if TYPE_CHECKING:
    from pathlib import Path

    from airflow.sdk import Context

    from include.experiment.spec import RunSpec

COMPLETE = {"trigger_rule": "all_done_min_one_success"}
"""For tasks that follow the cells: wait for all, go on with those that succeeded."""
Cell = dict[str, Any]
"""What one task measures: ``name`` in the UI and ``runs``, each as JSON."""


class ResolveMatrix(BaseOperator):
    """Check every cell of the matrix, all at once, before the first one is measured.

    XComs: ``experiment`` is its name; the return value lists its cells for mapping.
    """

    def execute(self, context: Context) -> list[Cell]:
        """Return one cell per run: its id and itself."""
        from airflow.sdk.configuration import conf

        from include.experiment.params import matrix_from_params

        with without_vain_retries():
            runs = matrix_from_params(context["params"], conf.getint("core", "max_map_length"))
        context["ti"].xcom_push(key="experiment", value=runs[0].experiment)
        return [{"name": run.run_id, "runs": [run.to_json()]} for run in runs]


class MeasureCell(Step):
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
        errors = []
        for run in runs:
            try:
                self._measure(run, root)
            except Exception as error:
                self.log.error("tidebench: %s failed: %s", run.run_id, error)
                errors.append(error)
        with without_vain_retries():
            if errors:
                raise errors[0]
        return [run.run_id for run in runs]

    def _measure(self, run: RunSpec, root: Path) -> None:
        from include.control.stages import run_all, store_of

        known = store_of(run, root).manifest.is_file()
        windows = run_all(run, root)
        samples = max(sum(window["samples"] for window in windows), 1)
        in_time = sum(window["samples_within"]["real_time"] for window in windows)
        self.say(
            "%s is %s: %d windows, %.0f %% of samples in real time",
            run.run_id,
            "reused" if known else "measured",
            len(windows),
            100 * in_time / samples,
        )


class CheckCells(Step):
    """Fail, naming the cells that were not measured, once all have ended.

    ``measure`` is the id of the task that was mapped over ``cells``. What is complete is in the
    tables all the same; this is what keeps the DAG run from passing for complete.
    """

    template_fields: Sequence[str] = ("cells",)

    def __init__(self, *, cells: list[Cell], measure: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cells = cells
        self.measure = measure

    def execute(self, context: Context) -> None:
        """Look at how the copies of the task ended."""
        ti = context["ti"]
        states = ti.get_task_states(
            dag_id=ti.dag_id, task_ids=[self.measure], run_ids=[ti.run_id]
        ).get(ti.run_id, {})
        failed = [
            cell["name"]
            for index, cell in enumerate(self.cells)
            if states.get(f"{self.measure}_{index}") != "success"
        ]
        if failed:
            listed = "\n".join(f"  - {name}" for name in failed)
            raise AirflowFailException(
                f"{len(failed)} of {len(self.cells)} cells are not measured; the log of each says "
                f"why. Clear their {self.measure} tasks once the cause is gone: the other cells "
                f"are kept.\n{listed}"
            )
        self.say("all %d cells are measured", len(self.cells))
