"""Locks: no two DAG runs measure the same run or report on the same experiment at once."""

from __future__ import annotations

import fcntl
import json
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tidebench.stage import data_root
from tidebench.waiting import UNDER_WAY, Poll, PollingSensor, count_dag_runs

if TYPE_CHECKING:
    from pathlib import Path

    from airflow.sdk import Context

log = logging.getLogger(__name__)

A_PLACE = {"places": 3, "timeout": 6 * 86400}
"""In real time a run keeps a slot of the executor busy; the others wait before they provision."""


class Holder(NamedTuple):
    """The DAG run that holds a lock."""

    dag_id: str
    run_id: str


class AcquireExperimentLock(PollingSensor):
    """Wait until no running DAG run holds a lock on this experiment's report or its runs.

    It locks ``run_ids``, and the report of ``experiment`` unless the DAG run asks for none. A
    matrix locks its report only: its cells may be DAG runs of their own, and a cell that is
    measured twice gives the same bytes. Of all DAG runs with ``places``, whatever their
    experiments, so many pass at a time.
    """

    template_fields: Sequence[str] = ("experiment", "run_ids")

    def __init__(
        self,
        *,
        experiment: str,
        run_ids: Sequence[str] = (),
        places: int = 0,
        timeout: float = 86400,
        **kwargs: Any,
    ) -> None:
        super().__init__(timeout=timeout, **kwargs)
        self.experiment = experiment
        self.run_ids = run_ids
        self.places = places

    def execute(self, context: Context) -> None:
        """In `airflow dags test` nobody waits: killed, it would be under way for ever."""
        if context["dag_run"].triggering_user_name != "dag_test":
            super().execute(context)

    def poll(self, context: Context) -> LockPoll:
        wanted = {*self.run_ids}
        if context["params"].get("report", True):
            wanted.add("report")
        mine = context["ti"].dag_id, context["ti"].run_id
        return LockPoll(
            experiment=self.experiment, wanted=sorted(wanted), mine=mine, places=self.places
        )


class LockPoll(Poll):
    """Takes the locks ``wanted`` of ``experiment`` for the DAG run ``mine`` once all are free."""

    def passes(self) -> bool:
        """Take everything at once, or nothing; then, if asked for, one of the places."""
        experiment, places = self.about["experiment"], self.about["places"]
        mine, root = Holder(*self.about["mine"]), data_root()
        holders = acquire(root / experiment / "turns.json", self.about["wanted"], mine, _is_over)
        if places and not holders:
            experiment = "one of the places"
            holders = acquire(root / "turns.json", [" ".join(mine)], mine, _is_over, places)
        for other in sorted(holders - self.logged):
            self.log.info(
                "tidebench: %s of the DAG %s is at work on %s; waiting until it is over",
                other.run_id, other.dag_id, experiment,
            )  # fmt: skip
        self.logged |= holders
        return not holders


def _is_over(other: Holder) -> bool:
    return not count_dag_runs(other.dag_id, other.run_id, *UNDER_WAY)


def acquire(
    file: Path,
    wanted: Iterable[str],
    mine: Holder,
    is_over: Callable[[Holder], bool],
    places: int = 0,
) -> set[Holder]:
    """Take all locks ``wanted``, or none where others hold one of them; returns these others.

    With ``places`` also none while so many others hold any lock in this file.

    Locks are not given back: those of a DAG run are free once it is over, however it ended, and
    still its own when it is cleared and comes here again.
    """
    from include.files.whole import write_json

    file.parent.mkdir(parents=True, exist_ok=True)
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        held = _held(file)
        over = {other for other in set(held.values()) - {mine} if is_over(other)}
        held = {name: holder for name, holder in held.items() if holder not in over}
        others = set(held.values()) - {mine}
        full = places and len(others) >= places
        holders = others if full else others & {held.get(name) for name in wanted}
        if not holders:
            write_json(file, held | dict.fromkeys(wanted, mine))
    return holders


def _held(file: Path) -> dict[str, Holder]:
    """Holders by lock; none where the file cannot be read, as a power cut may leave it."""
    if not file.is_file():
        return {}
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return {name: Holder(*holder) for name, holder in content.items()}
    except (ValueError, TypeError, AttributeError) as error:
        log.warning("tidebench: %s is damaged (%s), so nobody has a turn", file, error)
        return {}
