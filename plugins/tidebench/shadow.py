"""The tasks of the DAG `shadow_report`: those of an advice, on one day of a shadow."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from tidebench.advice import KEPT
from tidebench.lineage import files
from tidebench.stage import data_root, without_vain_retries

if TYPE_CHECKING:
    from airflow.sdk import Context


class ResolveShadowDay(BaseOperator):
    """Cut the day out of the recording of the shadow, and check what is asked about it.

    The same XComs as of `ResolveAdvice`: the folder as ``experiment``, the controllers to replay.
    """

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Return one entry per controller: its position and its name in the UI."""
        from include.advise.case import keep_case
        from include.advise.form import require_free
        from include.advise.outcomes import measure_recorded
        from include.service.day import cut_day
        from include.service.form import day_from_params
        from include.service.verdict import request_of

        after = context["dag_run"].run_after or datetime.now(UTC)
        with without_vain_retries():
            chosen = day_from_params(context["params"], after.astimezone(UTC).date())
            shadow, folder = data_root() / chosen.shadow, data_root() / chosen.folder
            require_free(folder)
            day = cut_day(shadow, chosen.day)
            case = keep_case(request_of(shadow, day, chosen.request), folder)
        measure_recorded(case, folder)
        self.add_inlets(files(day, "*.csv"))
        self.add_outlets(files(folder, KEPT))
        context["ti"].xcom_push(key="experiment", value=chosen.folder)
        self.log.info("tidebench: %d controllers to replay", len(case.policies))
        return [{"position": k, "name": one.name} for k, one in enumerate(case.policies)]
