"""The tasks of a sweep: check every point, then measure all of them in one Spark application."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from tidebench.lineage import MEASURED, file, files
from tidebench.spark import SparkJob
from tidebench.stage import (
    TidebenchOperator,
    dag_run_of_task,
    data_root,
    spec_file,
    without_vain_retries,
)

if TYPE_CHECKING:
    from airflow.sdk import Context


class ResolvePoints(TidebenchOperator):
    """Check every point of the spec file before anything is measured.

    Returns the name of their experiment: the tasks after the sweep need it. The XCom ``run_ids``
    has the id of each.
    """

    template_fields: Sequence[str] = ("spec",)

    def __init__(self, *, spec: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.spec = spec

    def execute(self, context: Context) -> str:
        from include.experiment.matrix import runs_in_file
        from include.runs.spark.sweep import require_virtual

        with without_vain_retries():
            points = runs_in_file(spec_file(self.spec))
            require_virtual(points)
        self.log.info("tidebench: %d points to measure", len(points))
        context["ti"].xcom_push(key="run_ids", value=[point.run_id for point in points])
        return points[0].experiment


class MeasurePoints(SparkJob):
    """Measure every point as one Spark task; complete points are reused.

    Fails where the file has other points than ``run_ids``, and when a point failed, after all the
    others: ``sweep_status.csv`` says which and why, and a repetition measures what is missing.
    """

    template_fields: Sequence[str] = ("spec", "run_ids")

    def __init__(self, *, spec: str, run_ids: Sequence[str], **kwargs: Any) -> None:
        super().__init__(job="include/runs/spark/job.py", name="tidebench sweep", **kwargs)
        self.spec = spec
        self.run_ids = run_ids

    def execute(self, context: Context) -> None:
        from include.experiment.matrix import runs_in_file

        spec, by = spec_file(self.spec), dag_run_of_task(context)
        with without_vain_retries():
            points = runs_in_file(spec)
        if {point.run_id for point in points} != {*self.run_ids}:
            raise AirflowFailException(
                f"{spec} has been changed since this DAG run looked at it; clear resolve_points "
                "and what comes after it"
            )
        self.add_inlets(file(spec))
        by_options = (f"--dag-id={by.dag_id}", f"--dag-run={by.dag_run}")
        self.submit(context, str(spec), "--root", str(data_root()), *by_options)
        self.add_outlets(files(data_root() / points[0].experiment, MEASURED))
        self.log.info("tidebench: every point is measured")
