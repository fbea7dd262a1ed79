"""The Spark task, apart from the others because it brings the Spark provider along."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from tidebench.connections import spark_runs_here
from tidebench.lineage import MEASURED, STAGED, files
from tidebench.stage import REPOSITORY, data_root, is_complete, run_of, without_vain_retries

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidebench.batch import Cell


SMALL = "spark_small"
"""The connection of jobs on few rows; undefined means this machine."""
MOST_ROWS_OF_ONE_PROCESS = 500_000
"""More of them, and a cluster's executors pay for their start. A run of two hours has 15,000."""


class SparkJob(SparkSubmitOperator):
    """A job of this repository as one Spark application.

    The connection `spark_default` chooses the Spark master; undefined means all cores here.
    """

    def __init__(self, *, job: str, **kwargs: Any) -> None:
        super().__init__(application=str(REPOSITORY / job), **kwargs)

    def submit(self, context: Context, *arguments: str, small: bool = False) -> None:
        """Submit and wait. A machine without Java fails before Spark starts.

        A ``small`` job is over before a cluster has started an executor for it, so it runs here.
        """
        from include.runs.spark.session import local_driver, require_java

        with without_vain_retries():
            require_java()
        self.application_args = list(arguments)
        if small and not spark_runs_here(self._conn_id):
            self._conn_id = SMALL
        if spark_runs_here(self._conn_id):
            self.conf = local_driver()
        let_spark_find_this_python()
        super().execute(context)


class BuildTables(SparkJob):
    """Build the tables of an experiment.

    ``cells`` are those of a matrix: its complete runs are in the tables; none means every
    complete run of the experiment. Skipped, with what follows, in a DAG run that asks for no
    ``report``, after a matrix that could not be resolved, and where every run was removed.
    """

    template_fields: Sequence[str] = ("experiment", "cells")

    def __init__(
        self, *, experiment: str, cells: Sequence[Cell] | None = (), **kwargs: Any
    ) -> None:
        super().__init__(job="include/results/tables/job.py", name="tidebench tables", **kwargs)
        self.experiment = experiment
        self.cells = cells

    def execute(self, context: Context) -> None:
        from include.runs.stages import outdated_runs
        from include.runs.stored import mark_asked

        if not context["params"].get("report", True):
            raise AirflowSkipException("this DAG run asks for no report")
        if self.cells is None:
            raise AirflowSkipException("there are no cells; the log of resolve_matrix says why")
        folder = data_root() / self.experiment
        arguments = ["--folder", str(folder)]
        runs: Sequence[str] = ()
        if self.cells:
            turn = context["ti"].get_task_states(
                dag_id=self.dag_id, task_ids=["wait_for_turn"], run_ids=[context["run_id"]]
            )
            if "failed" in turn.get(context["run_id"], {}).values():
                raise AirflowSkipException("others are at work on it: the matrix had no turn")
            specs = [run_of(text) for cell in self.cells for text in cell["runs"]]
            mark_asked(folder, (run.run_id for run in specs if run.experiment == self.experiment))
            runs = measured_runs(self.cells, self.experiment)
            arguments += ["--runs", ",".join(runs)]
        elif not any(folder.glob("runs/*/manifest.json")):
            raise AirflowSkipException("no complete run is left, so there is nothing to report")
        else:
            for sentence in outdated_runs(folder):
                self.log.warning("tidebench: %s", sentence)
        self.add_inlets(files(folder, MEASURED))
        self.submit(context, *arguments, small=_have_few_rows(folder, runs))
        self.add_outlets(files(folder, STAGED))
        self.log.info("tidebench: tables are built in %s", folder / "staged")


def _have_few_rows(folder: Path, runs: Sequence[str]) -> bool:
    from include.model.errors import StoreError
    from include.results.tables.measured import complete_runs, rows_read

    try:
        return rows_read(folder, complete_runs(folder, runs)) <= MOST_ROWS_OF_ONE_PROCESS
    except StoreError:  # the job leaves the run out, and says why
        return False


def measured_runs(cells: Sequence[Cell], experiment: str) -> list[str]:
    """Ids of the runs of an experiment in these cells that are complete.

    Fails for good when none is.
    """
    specs = [run_of(text) for cell in cells for text in cell["runs"]]
    runs = [run for run in specs if run.experiment == experiment]
    complete = [run.run_id for run in runs if is_complete(run)]
    if not complete:
        raise AirflowFailException("no cell is complete, so there is nothing to build")
    return complete


def let_spark_find_this_python() -> None:
    """Put this interpreter's ``spark-submit`` and ``python3`` first on the path."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.environ["PYTHONPATH"] = f"{REPOSITORY}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
