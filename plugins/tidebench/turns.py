"""Whose turn it is: no two DAG runs measure the same run or report the same experiment at once."""

from __future__ import annotations

import fcntl
import json
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tidebench.stage import data_root, run_of
from tidebench.waiting import UNDER_WAY, Look, Wait, count_dag_runs

if TYPE_CHECKING:
    from pathlib import Path

    from airflow.sdk import Context

log = logging.getLogger(__name__)


class Holder(NamedTuple):
    """The DAG run that has a turn."""

    dag_id: str
    run_id: str


class WaitForTurn(Wait):
    """Passes when no DAG run that is under way has anything of what this one is about to change.

    That is the report of ``experiment``, unless the DAG run asks for none, and ``runs``, each as
    JSON, or ``run_ids``, where only their ids are known. Whatever else is under way goes on beside
    it. A matrix takes its report only: its cells may be DAG runs of their own, and what it measures
    itself are the same bytes whoever does it. Of all DAG runs that give ``places``, whatever their
    experiments, so many pass at a time.
    """

    template_fields: Sequence[str] = ("experiment", "runs", "run_ids")

    def __init__(
        self,
        *,
        experiment: str,
        runs: Sequence[str] = (),
        run_ids: Sequence[str] = (),
        places: int = 0,
        timeout: float = 86400,
        **kwargs: Any,
    ) -> None:
        super().__init__(timeout=timeout, **kwargs)
        self.experiment = experiment
        self.runs = runs
        self.run_ids = run_ids
        self.places = places

    def execute(self, context: Context) -> None:
        """In `airflow dags test` nobody waits: killed, it would be under way for ever."""
        if context["dag_run"].triggering_user_name != "dag_test":
            super().execute(context)

    def look(self, context: Context) -> LookForTurn:
        """What this DAG run is about to change."""
        wanted = {*self.run_ids, *(run_of(text).run_id for text in self.runs)}
        if context["params"].get("report", True):
            wanted.add("report")
        mine = context["ti"].dag_id, context["ti"].run_id
        return LookForTurn(
            experiment=self.experiment, wanted=sorted(wanted), mine=mine, places=self.places
        )


class LookForTurn(Look):
    """Takes the turn of ``mine`` on all that is ``wanted`` of ``experiment`` once it is free."""

    def passes(self) -> bool:
        """Take everything at once, or nothing; then, if asked for, one of the places."""
        experiment, places = self.about["experiment"], self.about["places"]
        mine, root = Holder(*self.about["mine"]), data_root()
        holders = take(root / experiment / "turns.json", self.about["wanted"], mine, _is_over)
        if places and not holders:
            experiment = "one of the places"
            holders = take(root / "turns.json", [" ".join(mine)], mine, _is_over, places)
        for other in sorted(holders - self.told):
            self.log.info(
                "tidebench: %s of the DAG %s is at work on %s; waiting until it is over",
                other.run_id, other.dag_id, experiment,
            )  # fmt: skip
        self.told |= holders
        return not holders


def _is_over(other: Holder) -> bool:
    return not count_dag_runs(other.dag_id, other.run_id, *UNDER_WAY)


def take(
    file: Path,
    wanted: Iterable[str],
    mine: Holder,
    is_over: Callable[[Holder], bool],
    places: int = 0,
) -> set[Holder]:
    """Take all of ``wanted`` or, where others have some of it, nothing; returns those others.

    With ``places`` also nothing while so many others have anything in this file.

    Nobody gives anything back: what a DAG run has taken is free again when that is over, however
    it ended, and its own when it is cleared and comes here again.
    """
    from include.files.whole import write_json

    file.parent.mkdir(parents=True, exist_ok=True)
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        taken = _standing(file)
        over = {other for other in set(taken.values()) - {mine} if is_over(other)}
        taken = {what: whose for what, whose in taken.items() if whose not in over}
        others = set(taken.values()) - {mine}
        full = places and len(others) >= places
        holders = others if full else others & {taken.get(what) for what in wanted}
        if not holders:
            write_json(file, taken | dict.fromkeys(wanted, mine))
    return holders


def _standing(file: Path) -> dict[str, Holder]:
    """Who has what. A file that cannot be read, as a power cut leaves one, is nobody's turn."""
    if not file.is_file():
        return {}
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return {what: Holder(*whose) for what, whose in content.items()}
    except (ValueError, TypeError, AttributeError) as error:
        log.warning("tidebench: %s is damaged (%s), so nobody has a turn", file, error)
        return {}
