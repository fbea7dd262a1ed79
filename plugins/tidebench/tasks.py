"""The tasks of one run, in the order of the flow. What they do is in ``include``."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from tidebench.assets import REPORT, Publish
from tidebench.connections import results_database_url
from tidebench.lineage import PUBLISHED, results
from tidebench.links import ChecksLink, ReportLink, RunsLink
from tidebench.stage import Review, Stage, dag_run_of_task, data_root, run_of, without_vain_retries
from tidebench.windows import window_name

if TYPE_CHECKING:
    from pathlib import Path

    from airflow.sdk import Context

    from include.experiment.spec import RunSpec

STOPPING_S = 20.0
"""How long a task that was ended by hand may go on: until its next heartbeat, and its end."""


class ResolveSpec(BaseOperator):
    """Check the parameters, all at once, before anything is provisioned.

    XComs: ``run`` is the run as JSON, ``run_id`` its id, ``experiment`` its name; the return value
    lists its windows for mapping.
    """

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Return one entry per window: its index and its name in the UI."""
        from airflow.sdk.configuration import conf

        from include.experiment.params import run_from_params

        with without_vain_retries():
            run = run_from_params(context["params"], conf.getint("core", "max_map_length"))
        xcoms = {"run": run.to_json(), "run_id": run.run_id, "experiment": run.experiment}
        for key, value in xcoms.items():
            context["ti"].xcom_push(key=key, value=value)
        return [{"index": k, "name": window_name(run, k)} for k in range(run.windows)]


class ProvisionTestbed(Stage):
    """Set-up: get the testbed. What a failed attempt leased is given back at once."""

    reads = ()
    writes = ("run.json",)

    def work(self, run: RunSpec, root: Path) -> None:
        """Provision; the teardown only follows a set-up that succeeded, so clean up here."""
        from include.runs.stages import provision

        try:
            found = provision(run, root, dag_run_of_task(self.context))
        except Exception:
            self._release(run, root)
            raise
        self.say("testbed of run %s is provisioned (%s)", run.run_id, found)

    def _release(self, run: RunSpec, root: Path) -> None:
        from include.runs.stages import release

        try:
            release(run, root)
        except Exception as error:  # the task fails for why it could not provision
            self.log.error("tidebench: what the attempt leased may still be there: %s", error)


class DeployImages(Stage):
    """Start the first instances of every operator, and keep the state at second 0."""

    writes = ("snapshots/000.npz",)

    def work(self, run: RunSpec, root: Path) -> None:
        from include.runs.stages import deploy

        deploy(run, root)
        self.say("operators are deployed")


class ReplayArrivals(Stage):
    """Let the sources publish."""

    reads = ("run.json",)
    writes = ("arrivals.csv",)

    def work(self, run: RunSpec, root: Path) -> None:
        from include.runs.stages import replay_arrivals

        replay_arrivals(run, root)
        self.say("arrivals are replayed")


class ReleaseTestbed(Stage):
    """Teardown: give back whatever is leased, however the run ended."""

    def execute(self, context: Context) -> Any:
        """Release; in real time once more when the last task of a run cut short has stopped."""
        from include.runs.stages import window_reached
        from include.testbeds import TESTBEDS

        run, root = run_of(self.run), data_root()
        is_over = window_reached(run, root, run.windows)
        super().execute(context)
        if TESTBEDS[run.testbed].real_time and not is_over:
            # A deployment or window that was under way noticed with its next heartbeat, and leased
            # until then.
            time.sleep(STOPPING_S)
            self.work(run, root)

    def work(self, run: RunSpec, root: Path) -> None:
        """Release; safe when nothing is left to release."""
        from include.runs.stages import release

        release(run, root)
        self.say("testbed is released")


class CheckTables(Review):
    """Gate: no run is published unless Great Expectations accepts it in all tables."""

    operator_extra_links = (ChecksLink(),)
    writes = ("data_docs/verdict.json", "staged/quarantine.json")

    def work(self, folder: Path) -> list[str]:
        """Return the runs that are left out; the evidence is in ``data_docs/`` either way."""
        from include.results.quality.gates import check_tables
        from include.results.tables.quarantine import read_quarantine, sentences
        from include.runs.measurements.locks import REPORT, alone

        with alone(folder, REPORT):
            verdict = check_tables(folder)
        for sentence in sentences(read_quarantine(folder)):
            self.log.warning("tidebench: %s", sentence)
        left_out = list(verdict["quarantined"])
        of_others = f" without {', '.join(left_out)}" if left_out else ""
        self.say("tables%s passed their checks", of_others)
        return left_out


class PublishReport(Publish):
    """Publish tables and page as files, and upsert the tables into the results database.

    What is a study, or a night of one, has its claims and its page in place of the report.
    Fails afterwards when a run that this DAG run has measured was left out: all others are
    published, and who triggered it does not look for theirs in vain. Those are ``run_ids``, where
    only their ids are known, and what ``cells`` have of the experiment.
    """

    operator_extra_links = (ReportLink(), RunsLink())
    template_fields: Sequence[str] = ("experiment", "run_ids", "cells")
    writes = PUBLISHED
    assets = REPORT

    def __init__(
        self,
        *,
        run_ids: Sequence[str] = (),
        cells: Sequence[Mapping[str, Any]] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.run_ids = run_ids
        self.cells = cells

    def require_own_runs(self) -> None:
        """Fail where one of them was left out, or is complete no more: of other code."""
        from include.results.tables.quarantine import read_quarantine, sentences
        from include.results.tables.staged import read_staged

        runs = (run_of(text) for cell in self.cells for text in cell["runs"])
        own_runs = {
            *self.run_ids,
            *(run.run_id for run in runs if run.experiment == self.experiment),
        }
        folder = data_root() / self.experiment
        left_out = read_quarantine(folder)
        failed = {run: checks for run, checks in left_out.items() if run in own_runs}
        if failed:
            raise AirflowFailException(
                "\n".join(
                    ["the report is published without what this measured", *sentences(failed)]
                )
            )
        there = {row["run"] for row in read_staged(folder, "runs")}
        if missing := ", ".join(sorted(own_runs - there)):
            raise AirflowFailException(
                f"the report is published without {missing}: not measured by the code that is here "
                "now; clear their tasks and those after them"
            )

    def work(self, folder: Path) -> list[str]:
        from include.runs.measurements.locks import REPORT, alone
        from include.studies.publish import publish_experiment

        url = results_database_url(data_root())
        with alone(folder, REPORT):
            publish_experiment(folder, url, dag_run_of_task(self.context))
        self.add_outlets(results(url))
        published = folder / "published"
        self.say("report is published below %s", published)
        return [str(path) for path in sorted(published.iterdir()) if path.is_file()]
