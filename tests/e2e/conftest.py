"""A browser, and an Airflow with real services for the tests of the scheduler and of the UI."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.airflow_services import Airflow, airflow_services
from tests.e2e.browser import new_page

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data root of these services."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="session")
def airflow(
    airflow_environment: dict[str, str], root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Airflow]:
    """The services, with the DAGs unpaused that run when they are triggered."""
    environment = airflow_environment | {
        "TIDEBENCH_DATA_ROOT": str(root),
        # Live services that ran on this machine once do not answer, which fails the DAG `reap`.
        "TIDEBENCH_LIVE_STATE": str(root / "live"),
    }
    dags = ["experiment", "experiment_batch", "sweep"]
    with airflow_services(environment, tmp_path_factory.mktemp("services"), dags) as services:
        yield services


@pytest.fixture
def page(airflow: Airflow) -> Iterator[Page]:
    """A page of a browser of somebody who is logged in."""
    with new_page(viewport={"width": 1280, "height": 900}) as page:
        page.context.add_cookies([{"name": "_token", "value": airflow.token, "url": airflow.url}])
        yield page
