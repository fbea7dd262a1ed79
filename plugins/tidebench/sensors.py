"""Waiting, without holding a worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator
from airflow.sdk.exceptions import AirflowFailException

from tidebench.stage import data_root, run_of, without_vain_retries

if TYPE_CHECKING:
    from airflow.sdk import Context

IN_PROCESS_WINDOW_S = 0.5
"""How soon a window may be over in `airflow dags test`, which runs tasks one by one in its own
process: there is no executor that could be late, and waiting would only cost time."""


class WaitForWindow(BaseSensorOperator):
    """Passes when the testbed has reached ``window`` and the window before is committed.

    All windows of a run wait at the same time; that keeps them in order under any
    scheduler. One that is k windows ahead looks again after k times ``poke_interval``,
    because no window is over sooner. Keep the interval at 5 s or more: an executor that
    reports late would fail a sensor that is queued again (apache/airflow issue 71172).
    """

    template_fields: Sequence[str] = ("run", "window")

    def __init__(self, *, run: str, window: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(mode="reschedule", **kwargs)
        self.run = run
        self.window = window

    def poke(self, context: Context) -> bool:
        """Look once at the run, and choose when to look again if its turn has not come."""
        from include.control.stages import window_reached

        run, root, index = run_of(self.run), data_root(), self.window["index"]
        ahead = 0
        with without_vain_retries():
            while ahead <= index and not window_reached(run, root, index - ahead):
                ahead += 1
        if ahead:
            self._fail_after_an_earlier_window(context)
            if context["dag_run"].triggering_user_name == "dag_test":
                self.poke_interval = IN_PROCESS_WINDOW_S * (ahead - 1)
            else:
                self.poke_interval *= ahead
        return ahead == 0

    def _fail_after_an_earlier_window(self, context: Context) -> None:
        """Stop waiting for what never comes, so that the teardown does not wait either."""
        ti = context["ti"]
        states = ti.get_task_states(
            dag_id=ti.dag_id, task_group_id=ti.task_id.rpartition(".")[0], run_ids=[ti.run_id]
        )[ti.run_id]
        failed = [task for task, state in states.items() if state in ("failed", "upstream_failed")]
        if any(int(task.rpartition("_")[2]) < self.window["index"] for task in failed):
            raise AirflowFailException(
                "a window before this one failed, so its turn never comes; clear the failed tasks "
                "of this DAG run once the cause is gone: committed windows are kept"
            )
