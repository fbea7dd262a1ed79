"""Whose turn it is: no two DAG runs measure the same run or report the same experiment at once."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow.sdk import BaseSensorOperator

from tidebench.stage import data_root, run_of

if TYPE_CHECKING:
    from pathlib import Path

    from airflow.sdk import Context

UNDER_WAY = ["queued", "running"]
"""States of a DAG run that is not over."""


class Holder(NamedTuple):
    """The DAG run that has a turn."""

    dag_id: str
    run_id: str


class WaitForTurn(BaseSensorOperator):
    """Passes when no DAG run that is under way has anything of what this one is about to change.

    That is the report of ``experiment``, unless the DAG run asks for none, and ``runs``, each as
    JSON, or ``run_ids``, where only their ids are known. Whatever else is under way goes on beside
    it. A matrix takes its report only: its cells may be DAG runs of their own, and what it measures
    itself are the same bytes whoever does it.
    """

    template_fields: Sequence[str] = ("experiment", "runs", "run_ids")

    def __init__(
        self,
        *,
        experiment: str,
        runs: Sequence[str] = (),
        run_ids: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(mode="reschedule", poke_interval=5, timeout=86400, **kwargs)
        self.experiment = experiment
        self.runs = runs
        self.run_ids = run_ids

    def poke(self, context: Context) -> bool:
        """Take everything at once, or nothing."""
        if context["dag_run"].triggering_user_name == "dag_test":
            return True  # killed, it would be under way for ever: nothing goes on with its DAG run
        ti = context["ti"]

        def is_over(other: Holder) -> bool:
            counted = ti.get_dr_count(dag_id=other.dag_id, run_ids=[other.run_id], states=UNDER_WAY)
            return not counted

        wanted = {*self.run_ids, *(run_of(text).run_id for text in self.runs)}
        if context["params"].get("report", True):
            wanted.add("report")
        folder = data_root() / self.experiment
        holders = take(folder / "turns.json", wanted, Holder(ti.dag_id, ti.run_id), is_over)
        for other in sorted(holders):
            self.log.info(
                "tidebench: %s of the DAG %s is at work on %s; waiting until it is over",
                other.run_id, other.dag_id, self.experiment,
            )  # fmt: skip
        return not holders


def take(
    file: Path, wanted: Iterable[str], mine: Holder, is_over: Callable[[Holder], bool]
) -> set[Holder]:
    """Take all of ``wanted`` or, where others have some of it, nothing; returns those others.

    Nobody gives anything back: what a DAG run has taken is free again when that is over, however
    it ended, and its own when it is cleared and comes here again.
    """
    from include.measurements.store import write_json

    file.parent.mkdir(parents=True, exist_ok=True)
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        content = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        taken = {what: Holder(*whose) for what, whose in content.items()}
        over = {other for other in set(taken.values()) - {mine} if is_over(other)}
        taken = {what: whose for what, whose in taken.items() if whose not in over}
        holders = {taken[what] for what in wanted if what in taken} - {mine}
        if not holders:
            write_json(file, taken | dict.fromkeys(wanted, mine))
    return holders
