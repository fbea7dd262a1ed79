"""The windows of a run, strictly in order: one task each, and none of them waits for its turn."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException

from tidebench.lineage import MEASURED, files
from tidebench.stage import Stage, data_root, run_of, without_vain_retries

if TYPE_CHECKING:
    from pathlib import Path

    from airflow.sdk import Context

    from include.experiment.spec import RunSpec

IN_ORDER = {
    "max_active_tis_per_dagrun": 1,
    "map_index_template": "{{ task.window.name }}",
}
"""Of the copies that are ready the scheduler begins one, that with the lowest index. So they follow
each other without waiting, and no copy is queued twice in a healthy run: an executor that reports
late the end of a task that is queued again would fail it (apache/airflow issue 71172)."""
OUT_OF_TURN_S = 30.0
"""When a window looks again that was begun while the one before it waits for its retry."""
IN_PROCESS_S = 0.5
"""The same in `airflow dags test`, which begins copies in any order: how soon a window is over."""
ENDED = {"success", "failed", "upstream_failed", "skipped", "removed"}


class ControlWindow(Stage):
    """Run every tick of one window and commit the testbed's state at its end."""

    template_fields: Sequence[str] = ("run", "window")

    def __init__(self, *, window: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.window = window

    def execute(self, context: Context) -> Any:
        """Control the window if it is its turn; else make way, or fail when that never comes."""
        ti = context["ti"]
        states = ti.get_task_states(
            dag_id=ti.dag_id, task_ids=[ti.task_id], run_ids=[ti.run_id]
        ).get(ti.run_id, {})  # before the commits: who has succeeded by now has committed
        index, turn = self.window["index"], self._turn()
        if turn == index:
            return super().execute(context)
        if states.get(f"{ti.task_id}_{turn}") in ENDED:
            raise AirflowFailException(
                f"window {turn} ended without a commit, so the turn of this one never comes; "
                "clear the failed tasks of this DAG run once the cause is gone: committed windows "
                "are kept"
            )
        in_process = context["dag_run"].triggering_user_name == "dag_test"
        wait_s = IN_PROCESS_S * (index - turn - 1) if in_process else OUT_OF_TURN_S
        if wait_s:
            self.say("it is the turn of window %d; looking again in %g s", turn, wait_s)
        retry_at = datetime.now(UTC) + timedelta(seconds=wait_s)
        raise AirflowRescheduleException(retry_at)  # type: ignore[no-untyped-call]

    def _turn(self) -> int:
        """The first window that is not committed, if that is not behind this one."""
        from include.runs.stages import window_reached

        run, root, turn = run_of(self.run), data_root(), int(self.window["index"])
        with without_vain_retries():
            while turn and not window_reached(run, root, turn):
                turn -= 1
        return turn

    def work(self, run: RunSpec, root: Path) -> dict[str, Any]:
        """Return the summary of the window, which is committed; a repetition only reads it."""
        from include.runs.session import failed_advisors
        from include.runs.stages import control_window

        summary: dict[str, Any] = control_window(run, root, self.window["index"])
        self.add_outlets(files(root / run.experiment, MEASURED))
        self.say(
            "%s: %d hosts, %d instances, %d items wait, %.0f %% of samples in real time",
            self.window["name"],
            *(summary[name] for name in ("hosts", "instances", "waiting_items")),
            100 * summary["samples_within"]["real_time"] / max(summary["samples"], 1),
        )
        for advisor, error in failed_advisors([summary]).items():
            self.say(
                "advisor %s failed, and the run goes on without its advice: %s", advisor, error
            )
        return summary
