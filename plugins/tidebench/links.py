"""Buttons on a task that lead to what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
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


class ReportLink(BaseOperatorLink):
    """To the published page of the experiment."""

    name = "Report"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The address, once the task has run: its experiment may be a template."""
        return airflow_url(f"{PREFIX}/files/{_experiment(operator)}/published/report.html")


class AdviceLink(BaseOperatorLink):
    """To the published page of an advice."""

    name = "Advice"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The address, once the task has run: its folder is a template."""
        return airflow_url(f"{PREFIX}/files/{_experiment(operator)}/published/advice.html")


class RunsLink(BaseOperatorLink):
    """To the runs of the experiment in the page "Experiments"."""

    name = "Runs"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The address, once the task has run: its experiment may be a template."""
        return airflow_url(f"{PREFIX}/?experiment={_experiment(operator)}")


class ChecksLink(BaseOperatorLink):
    """To the checks and Data Docs of the experiment, also when one failed."""

    name = "Checks"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The address, once the task has run: its experiment may be a template."""
        return airflow_url(f"{PREFIX}/checks/{_experiment(operator)}")


def _experiment(operator: Any) -> str:
    return quote(operator.experiment, safe="")
