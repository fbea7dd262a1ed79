"""Tasks that tidy up behind runs whose own tasks are gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from tidebench.stage import TidebenchOperator, without_vain_retries

if TYPE_CHECKING:
    from airflow.sdk import Context

LEAST_MIN = 1
"""After how long a run may pass for dead."""


class CheckLeases(TidebenchOperator):
    """List everything that runs hold on testbeds that lease."""

    def execute(self, context: Context) -> int:
        return self._reap(context, remove=False)

    def _reap(self, context: Context, *, remove: bool) -> int:
        from include.testbeds.reap import reap
        from tidebench.connections import use_cloud

        if (after_min := context["params"]["after_min"]) < LEAST_MIN:
            raise AirflowFailException(
                f"after_min must be at least {LEAST_MIN}, got {after_min:g}: a run that lives is "
                "looked after every few seconds, and must not pass for dead between two looks"
            )
        use_cloud()
        after_s = 60 * after_min
        with without_vain_retries():
            return reap(remove=remove, after_s=after_s, say=lambda line: self.say("%s", line))


class ReleaseDead(CheckLeases):
    """Give back what dead runs hold, when the DAG run was told to."""

    def execute(self, context: Context) -> int:
        """Return the number of runs that were dead; every one of them is tried."""
        if not context["params"]["remove"]:
            raise AirflowSkipException("remove is not set, so dead runs are only listed")
        return self._reap(context, remove=True)
