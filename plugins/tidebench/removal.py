"""The tasks that remove runs. What they do is in ``include/results/reports/removal.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from tidebench.connections import results_database_url
from tidebench.stage import TidebenchOperator, data_root, without_vain_retries

if TYPE_CHECKING:
    from airflow.sdk import Context


class ResolveRuns(TidebenchOperator):
    """Which runs to remove: the param ``runs``, or an error that names what is there."""

    template_fields: Sequence[str] = ("experiment",)

    def __init__(self, *, experiment: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.experiment = experiment

    def execute(self, context: Context) -> list[str]:
        from include.experiment.spec import require_name
        from include.results.reports.removal import require_known

        runs = list(dict.fromkeys(context["params"]["runs"]))
        root = data_root()
        with without_vain_retries():
            require_name(self.experiment)
            if not runs:
                raise AirflowFailException("no run is named; write one per line")
            url = results_database_url(root)
            require_known(root / self.experiment, runs, url)
        return runs


class RemoveRuns(TidebenchOperator):
    """Remove runs, once no DAG run is at work on them: ``wait_for_turn`` is before this."""

    template_fields: Sequence[str] = ("experiment", "run_ids")

    def __init__(self, *, experiment: str, run_ids: Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.experiment = experiment
        self.run_ids = run_ids

    def execute(self, context: Context) -> None:
        """Remove and say what was there; a repetition removes the rest."""
        from include.results.reports.removal import known_runs, remove_runs

        root = data_root()
        folder, url = root / self.experiment, results_database_url(root)
        with without_vain_retries():
            run_ids = known_runs(folder, url)
            runs = [run for run in self.run_ids if run in run_ids]
            sentences = (
                remove_runs(folder, runs, url, even_if_taken=True) if runs else ["all are gone"]
            )
        for sentence in sentences:
            self.say("%s", sentence)
