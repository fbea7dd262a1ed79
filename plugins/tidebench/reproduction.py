"""The tasks of a nightly reproduction of PeerJ CS 141, around those of any matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from tidebench.stage import Step, data_root, without_vain_retries
from tidebench.tasks import PublishReport

if TYPE_CHECKING:
    from pathlib import Path

    from airflow.sdk import Context

    from include.reports.publication import DagRun
    from tidebench.batch import Cell

EXPERIMENT = "nightly"
PARAMS = {
    "strict": {
        "default": True,
        "type": "boolean",
        "title": "Strict",
        "description": "Fail when the mean error of a controller is above its limit.",
    },
    "accept_drift": {
        "default": False,
        "type": "boolean",
        "title": "Accept drift",
        "description": "Only say what moved since last night, and against the committed cells.",
    },
}
"""Per param of the DAG, the keyword arguments of an Airflow ``Param``."""


class ResolveReproduction(BaseOperator):
    """Begin a night: what the last one measured goes, so that all of it is measured anew.

    The return value lists its cells for mapping, one per pattern and controller, because a run
    alone takes less time than the task around it.
    """

    def execute(self, context: Context) -> list[Cell]:
        """Return the cells, in the order of the tables of the paper."""
        from include.studies.peerj141.nights import begin_night, matrix_of

        folder = data_root() / EXPERIMENT
        begin_night(folder, context["run_id"])
        cells: dict[str, list[str]] = {}
        for run in matrix_of(folder):
            cells.setdefault(f"{run.pattern}, {run.controller}", []).append(run.to_json())
        return [{"name": name, "runs": runs_of_cell} for name, runs_of_cell in cells.items()]


class PublishReproduction(PublishReport):
    """Publish cells, verdict, claims, statistics, drift and page, whatever they say."""

    def publish(self, folder: Path, database_url: str, by: DagRun) -> None:
        """Publish the findings in place of the report that every experiment has."""
        from include.studies.peerj141.study import PEERJ_141
        from include.studies.publish import publish_study

        publish_study(PEERJ_141, folder, database_url, by)


class CheckVerdict(Step):
    """Fail when measurements drifted, or the paper is not reproduced.

    The params ``accept_drift`` and ``strict`` of the DAG run say which of the two fail it. Either
    way tonight is what the next night is held against.
    """

    def execute(self, context: Context) -> None:
        """Judge what is published, and name every reason at once."""
        with without_vain_retries():
            reasons = self._reasons(context["params"], context["run_id"])
        if reasons:
            raise AirflowFailException("\n\n".join(reasons))

    def _reasons(self, params: Any, night: str) -> list[str]:
        from include.model.errors import GateFailed
        from include.studies.peerj141.findings import find
        from include.studies.peerj141.nights import keep_night, require_no_drift
        from include.studies.peerj141.study import PEERJ_141, require_reproduced
        from include.studies.publish import measured_in

        folder = data_root() / EXPERIMENT
        findings = find(measured_in(PEERJ_141, folder))
        keep_night(findings, folder, night)
        for sentence in findings.drift_sentences:
            self.say("%s", sentence)
        outside, failing = len(findings.outside), len(findings.failing)
        self.say("%d of %d cells are outside tolerance", outside, len(findings.verdict))
        self.say("%d of %d claims do not hold", failing, len(findings.claims))
        judges: list[Callable[[], None]] = []
        if not params["accept_drift"]:
            judges.append(lambda: require_no_drift(findings, folder))
        if params["strict"]:
            judges.append(lambda: require_reproduced(findings))
        reasons = []
        for judge in judges:
            try:
                judge()
            except GateFailed as error:
                reasons.append(str(error))
        return reasons
