"""The tasks of a reproduction of PeerJ CS 141, around those of any matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from tidebench.stage import Step, data_root, without_vain_retries
from tidebench.tasks import PublishReport

if TYPE_CHECKING:
    from pathlib import Path

    from airflow.sdk import Context

    from include.reproduction.findings import Findings
    from tidebench.batch import Cell

PARAMS = {
    "strict": {
        "default": True,
        "type": "boolean",
        "title": "Strict",
        "description": "Fail when a published cell is missed by more than its tolerance.",
    },
    "accept_drift": {
        "default": False,
        "type": "boolean",
        "title": "Accept drift",
        "description": "Hold the next nights against this one.",
    },
}
"""Per param of the DAG, the keyword arguments of an Airflow ``Param``."""
CELLS_NAMED = 20
"""How many cells that moved the reason of a failure names; drift.csv has all of them."""


class ResolveReproduction(BaseOperator):
    """Begin anew: what an earlier reproduction measured goes, so that all of it is measured now.

    The return value lists its cells for mapping, one per pattern and controller, because a run
    alone takes less time than the task around it.
    """

    def execute(self, context: Context) -> list[Cell]:
        """Return the cells, in the order of the tables of the paper."""
        from include.control.stages import forget
        from include.reproduction.matrix import matrix
        from include.reproduction.measure import measure_matrix

        runs, root = matrix(), data_root()
        measure_matrix([], root)  # what is measured from here on is marked as this code's
        for run in runs:
            forget(run, root)
        cells: dict[str, list[str]] = {}
        for run in runs:
            cells.setdefault(f"{run.pattern}, {run.controller}", []).append(run.to_json())
        return [{"name": name, "runs": runs_of_cell} for name, runs_of_cell in cells.items()]


class PublishReproduction(PublishReport):
    """Publish cells, verdict, claims, statistics, drift and page, whatever they say."""

    def publish(self, folder: Path, database_url: str) -> None:
        """Publish the findings in place of the report that every experiment has."""
        from include.reports.reproduction import publish_reproduction

        publish_reproduction(folder, database_url)


class CheckVerdict(Step):
    """Fail when measurements drifted, or a published cell was missed and ``strict`` is set.

    Both are params of the DAG run, and so is ``accept_drift``: then, or when there is none yet,
    this reproduction becomes the baseline of the next ones.
    """

    def execute(self, context: Context) -> None:
        """Judge what is published, and name every reason at once."""
        with without_vain_retries():
            reasons = self._reasons(context["params"])
        if reasons:
            raise AirflowFailException("\n\n".join(reasons))

    def _reasons(self, params: Any) -> list[str]:
        from include.model.errors import GateFailed
        from include.reports.reproduce import keep_as_baseline, require_reproduced
        from include.reproduction.drift import baseline_path
        from include.reproduction.findings import find
        from include.reproduction.matrix import EXPERIMENT, matrix
        from include.tables.catalogue import PUBLISHED
        from include.tables.staged import read_staged

        folder = data_root() / EXPERIMENT
        findings = find({table: read_staged(folder, table) for table in PUBLISHED}, folder)
        for sentence in findings.drift_sentences:
            self.say("%s", sentence)
        outside, failing = len(findings.outside), len(findings.failing)
        self.say("%d of %d cells are outside tolerance", outside, len(findings.verdict))
        self.say("%d of %d claims do not hold", failing, len(findings.claims))
        reasons = []
        if params["accept_drift"] or not baseline_path(folder).is_file():
            self.say("new baseline: %s", keep_as_baseline(findings, matrix(), folder))
        else:
            reasons += drifted(findings, folder)
        if params["strict"]:
            try:
                require_reproduced(findings)
            except GateFailed as error:
                reasons.append(str(error))
        return reasons


def drifted(findings: Findings, folder: Path) -> list[str]:
    """How tonight differs from the stored baseline, in one text; nothing when in no bit."""
    from include.reproduction.drift import baselines, moved_runs, run_digests, verdict_of
    from include.reproduction.matrix import matrix

    baseline = next(one for one in baselines(folder) if one.name == "stored")
    digests = run_digests(folder, (run.run_id for run in matrix()))
    runs = moved_runs(baseline, digests)
    if not runs:
        return []
    rows = [row for row in findings.drift if row["against"] == baseline.name]
    moved = [row for row in rows if row["state"] != "same"]
    lines = [
        f"  - {row['pattern']}, {row['controller']}, BTU {row['btu_min']:g}, {row['metric']}: "
        f"{_number(row['baseline_mean'])}, now {_number(row['mean'])}"
        for row in moved[:CELLS_NAMED]
    ]
    if len(moved) > CELLS_NAMED:
        lines.append(f"  - and {len(moved) - CELLS_NAMED} more, see drift.csv")
    advice = "If that is meant, trigger this DAG with accept_drift; otherwise undo what caused it."
    return ["\n".join([f"{verdict_of(baseline, rows, runs)} {advice}", *lines])]


def _number(value: float | None) -> str:
    return "absent" if value is None else f"{value:.4f}"
