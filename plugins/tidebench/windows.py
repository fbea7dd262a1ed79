"""The windows of a run, strictly in order: one task each, and none of them waits for its turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    "execution_timeout": timedelta(hours=26),  # in real time a window takes as long as its BTU
    "map_index_template": "{{ task.window.name }}",
}
"""Of the copies that are ready the scheduler begins one, that with the lowest index. So they follow
each other without waiting, and no copy is queued twice in a healthy run: an executor that reports
late the end of a task that is queued again would fail it (apache/airflow issue 71172)."""
OUT_OF_TURN_S = 30.0
"""When a window looks again that was begun while the one before it waits for its retry."""
FAILED = {"up_for_retry", "failed"}
ENDED = {"success", "failed", "upstream_failed", "skipped", "removed"}


class ControlWindow(Stage):
    """Run every tick of one window and commit the testbed's state at its end."""

    template_fields: Sequence[str] = ("run", "window")

    def __init__(self, *, window: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.window = window

    def execute(self, context: Context) -> Any:
        """Control the window if it is its turn; else make way, or fail when that never comes.

        `airflow dags test` begins copies in any order, one at a time. So each brings along those
        before it, unless one of them has failed.
        """
        from include.testbeds import TESTBEDS

        ti = context["ti"]
        states = ti.get_task_states(
            dag_id=ti.dag_id, task_ids=[ti.task_id], run_ids=[ti.run_id]
        ).get(ti.run_id, {})  # before the commits: who has succeeded by now has committed
        index, turn = self.window["index"], self._turn()
        in_any_order = context["dag_run"].triggering_user_name == "dag_test"
        if turn == index or (in_any_order and not FAILED & set(states.values())):
            self.first, self.in_any_order = turn, in_any_order
            return super().execute(context)
        failed_along = in_any_order and "failed" in states.values()
        if failed_along or states.get(f"{ti.task_id}_{turn}") in ENDED:
            clear = "the failed tasks of this DAG run: committed windows are kept"
            if TESTBEDS[run_of(self.run).testbed].real_time:
                clear = "this DAG run: what it had leased is given back, so it begins anew"
            raise AirflowFailException(
                f"window {turn} ended without a commit, so the turn of this one never comes; once "
                f"the cause is gone clear {clear}"
            )
        self.say("it is the turn of window %d; looking again in %g s", turn, OUT_OF_TURN_S)
        retry_at = datetime.now(UTC) + timedelta(seconds=OUT_OF_TURN_S)
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
        from include.runs.stages import control_windows, window_reached

        index = self.window["index"]
        brought_along = self.in_any_order and window_reached(run, root, index + 1)
        report = (lambda _: None) if brought_along else self._tell(run)
        *_, summary = control_windows(run, root, self.first, index, report)
        self.add_outlets(files(root / run.experiment, MEASURED))
        return summary

    def _tell(self, run: RunSpec) -> Callable[[Mapping[str, Any]], None]:
        from include.runs.session import failed_advisors

        def tell(summary: Mapping[str, Any]) -> None:
            self.say(
                "%s: %d hosts, %d instances, %d items wait, %.0f %% of samples in real time",
                window_name(run, summary["window"]),
                *(summary[name] for name in ("hosts", "instances", "waiting_items")),
                100 * summary["samples_within"]["real_time"] / max(summary["samples"], 1),
            )
            for advisor, error in failed_advisors([summary]).items():
                self.say(
                    "advisor %s failed, and the run goes on without its advice: %s", advisor, error
                )

        return tell


def window_name(run: RunSpec, index: int) -> str:
    """What the UI calls a window; the last one ends with the run."""
    begin_min, end_min = (min(k * run.window_s, run.duration_s) / 60 for k in (index, index + 1))
    return f"window {index:03d}, minute {begin_min:g} to {end_min:g}"
