"""Buttons on a task that lead to what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote, urlsplit

from airflow.sdk import BaseOperatorLink
from airflow.sdk.configuration import conf

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

PREFIX = "/tidebench"
"""Where the page "Experiments" and the files it shows are, below Airflow's own address."""


def airflow_url(path: str) -> str:
    """An address of this Airflow on whatever host the browser has asked.

    Only the path of its configured address counts: the prefix behind a reverse proxy. The host is
    localhost here, the end of a tunnel there, and what the browser has another name for is another
    site to it.
    """
    return f"{urlsplit(conf.get('api', 'base_url', fallback='')).path.rstrip('/')}{path}"


class ExperimentLink(BaseOperatorLink):
    """To an address below ``PREFIX`` with the experiment of the task in place of {}."""

    path: ClassVar[str]

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The address, once the task has run: its experiment may be a template."""
        experiment: Any = getattr(operator, "experiment")  # noqa: B009 (not of every operator)
        return airflow_url(PREFIX + self.path.format(quote(experiment, safe="")))


class ReportLink(ExperimentLink):
    """To the published page of the experiment."""

    name = "Report"
    path = "/files/{}/published/report.html"


class AdviceLink(ExperimentLink):
    """To the published page of an advice."""

    name = "Advice"
    path = "/files/{}/published/advice.html"


class RunsLink(ExperimentLink):
    """To the runs of the experiment in the page "Experiments"."""

    name = "Runs"
    path = "/?experiment={}"


class ChecksLink(ExperimentLink):
    """To the checks and Data Docs of the experiment, also when one failed."""

    name = "Checks"
    path = "/checks/{}"
