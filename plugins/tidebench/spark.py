"""The Spark task, apart from the others because it brings the Spark provider along."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowFailException

from tidebench.connections import spark_runs_here
from tidebench.stage import REPOSITORY, data_root, without_vain_retries

if TYPE_CHECKING:
    from airflow.sdk import Context


class BuildTables(SparkSubmitOperator):
    """Build the tables of an experiment, in one Spark application.

    ``runs`` says which runs: lists of run ids, one per cell of a matrix that was measured; None
    means every complete run. The connection ``spark_default`` chooses the Spark master;
    undefined means all cores of this machine.
    """

    template_fields: Sequence[str] = ("experiment", "runs")

    def __init__(
        self,
        *,
        experiment: str,
        runs: Sequence[Sequence[str]] | None = None,
        conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            application=str(REPOSITORY / "include" / "tables" / "job.py"),
            conn_id=conn_id,
            name="tidebench tables",
            **kwargs,
        )
        self.experiment = experiment
        self.runs = runs
        self.conn_id = conn_id

    def execute(self, context: Context) -> None:
        """Submit and wait. A machine without Java fails before Spark starts."""
        from include.tables.session import LOCAL_DRIVER, require_java

        with without_vain_retries():
            require_java()
        folder = data_root() / self.experiment
        self.application_args = ["--folder", str(folder), "--experiment", self.experiment]
        if self.runs is not None:
            runs = [run for cell in self.runs[:] for run in cell]  # a slice is one request
            if not runs:
                raise AirflowFailException("no cell is complete, so there is nothing to build")
            self.application_args += ["--runs", ",".join(runs)]
        if spark_runs_here(self.conn_id):
            self.conf = LOCAL_DRIVER
        let_spark_find_this_python()
        super().execute(context)
        self.log.info("tidebench: tables are built in %s", folder / "staged")


def let_spark_find_this_python() -> None:
    """Put this interpreter's ``spark-submit`` and ``python3`` first on the path."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.environ["PYTHONPATH"] = f"{REPOSITORY}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
