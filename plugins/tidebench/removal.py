"""The tasks that remove runs. What they do is in ``include/results/reports/removal.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tidebench.connections import results_database_url
from tidebench.stage import Review

if TYPE_CHECKING:
    from pathlib import Path


class ResolveRuns(Review):
    """Which runs to remove: the param ``runs``, or an error that names what is there."""

    reads = ()

    def work(self, folder: Path) -> list[str]:
        from include.experiment.spec import require_name
        from include.model.errors import SpecError, all_checked
        from include.results.reports.removal import require_known

        runs = list(dict.fromkeys(self.context["params"]["runs"]))

        def require_some() -> None:
            if not runs:
                raise SpecError("runs", ["no run is named; write one per line"])

        all_checked("remove_runs", lambda: require_name(self.experiment), require_some)
        require_known(folder, runs, results_database_url(folder.parent))
        return runs


class RemoveRuns(Review):
    """Remove runs, once no DAG run is at work on them: ``wait_for_turn`` is before this."""

    template_fields: Sequence[str] = ("experiment", "run_ids")
    reads = ()

    def __init__(self, *, run_ids: Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run_ids = run_ids

    def work(self, folder: Path) -> None:
        """Remove and say what was there; a repetition removes the rest."""
        from include.results.reports.removal import known_runs, remove_runs

        url = results_database_url(folder.parent)
        known = known_runs(folder, url)
        runs = [run for run in self.run_ids if run in known]
        for sentence in (
            remove_runs(folder, runs, url, even_if_taken=True) if runs else ["all are gone"]
        ):
            self.say("%s", sentence)
