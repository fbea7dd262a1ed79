"""Cells as DAG runs: trigger one per cell, and wait for it without holding a worker.

Apart from the other tasks of a matrix because it brings the standard provider along.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.trigger_dagrun import DagIsPaused, TriggerDagRunOperator
from airflow.sdk.exceptions import AirflowFailException

from tidebench.locks import A_PLACE
from tidebench.stage import is_complete, run_of
from tidebench.waiting import UNDER_WAY, Poll, PollingSensor, count_dag_runs

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.experiment.spec import RunSpec
    from tidebench.batch import Cell

DAG_ID = "experiment"
OVERHEAD_S, WINDOW_OVERHEAD_S = 1800.0, 120.0
"""What a DAG run may take beyond its windows, and beyond each of them, when all goes well."""


class TriggerRun(TriggerDagRunOperator):
    """Have the DAG `experiment` measure the run of one cell.

    The id of its DAG run follows from the run, so nothing is triggered twice: a run that is
    complete, or under way, is left alone, and one that has failed is cleared and goes on from
    its last window, or in real time begins anew.
    """

    template_fields: Sequence[str] = ("cell", *TriggerDagRunOperator.template_fields)

    def __init__(self, *, cell: Cell, **kwargs: Any) -> None:
        super().__init__(
            trigger_dag_id=DAG_ID,
            logical_date=None,
            reset_dag_run=True,
            fail_when_dag_is_paused=True,
            openlineage_inject_parent_info=False,  # into its params, of which each must be known
            **kwargs,
        )
        self.cell = cell

    def execute(self, context: Context) -> None:
        """Trigger, clear, or leave alone. A paused DAG would never run, so it fails for good."""
        from include.experiment.params import params_from_run

        run = only_run(self.cell)
        self.trigger_run_id = dag_run_of(run)
        if _is(run, *UNDER_WAY):
            self.log.info("tidebench: %s is under way", self.trigger_run_id)
        elif is_complete(run) and not _is(run, "failed"):
            self.log.info("tidebench: %s is reused (stored complete, by this code)", run.run_id)
        elif context["dag_run"].triggering_user_name == "dag_test":
            raise AirflowFailException(
                "airflow dags test has no scheduler that would begin another DAG run; trigger this "
                "DAG under one, or choose task for each_cell"
            )
        else:
            self.conf = {**params_from_run(run), "report": False}
            try:
                super().execute(context)
            except DagIsPaused as paused:
                raise AirflowFailException(
                    f"{paused}, so its runs would never begin; unpause it, then clear this task"
                ) from None


class WaitForRun(PollingSensor):
    """Passes when the DAG run of a cell has ended and its run is complete.

    DAG runs of one testbed follow each other, so each may take as long as all ``cells`` of the
    matrix may, and wait for a place before; after that it fails.
    """

    template_fields: Sequence[str] = ("cell", "cells")

    def __init__(self, *, cell: Cell, cells: Sequence[Cell], **kwargs: Any) -> None:
        super().__init__(timeout=86400, **kwargs)
        self.cell = cell
        self.cells = cells

    def execute(self, context: Context) -> None:
        self.timeout = A_PLACE["timeout"] + sum(allowed_s(only_run(cell)) for cell in self.cells)
        super().execute(context)

    def poll(self, context: Context) -> RunPoll:
        return RunPoll(cell=self.cell)


class RunPoll(Poll):
    """Passes when the DAG run of ``cell`` is over and its run is complete."""

    def passes(self) -> bool:
        run = only_run(self.about["cell"])
        if _is(run, *UNDER_WAY):
            return False
        if _is(run, "failed") or not is_complete(run):
            raise AirflowFailException(
                f"the run {dag_run_of(run)} of the DAG {DAG_ID} did not measure this cell; its "
                "log says why. Once the cause is gone clear the trigger task of this cell with "
                "what is downstream of it"
            )
        self.log.info("tidebench: %s is complete", run.run_id)
        return True


def only_run(cell: Cell) -> RunSpec:
    """The run of a cell that is one DAG run."""
    (text,) = cell["runs"]
    return run_of(text)


def dag_run_of(run: RunSpec) -> str:
    """The id of the DAG run that measures a run: the same whoever asks for it."""
    return f"{run.experiment}.{run.run_id}"


def allowed_s(run: RunSpec) -> float:
    """How long a DAG run may take before something must be wrong."""
    return run.duration_s + run.windows * WINDOW_OVERHEAD_S + OVERHEAD_S


def _is(run: RunSpec, *states: str) -> bool:
    """Whether the DAG run of a run exists and is in one of these states."""
    return bool(count_dag_runs(DAG_ID, dag_run_of(run), *states))
