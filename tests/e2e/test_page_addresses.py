"""The page by whatever name a browser has for its server, below a prefix as behind a proxy."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from include.results.reports.publish import publish
from include.runs.measurements.origin import DagRun
from tests.builders_staged import RUN, let_pass, stage
from tests.e2e.airflow_services import Airflow, airflow_services

pytestmark = pytest.mark.airflow

PREFIX = "/lab/air"
HOSTS = ("localhost:8093", "tunnel.example:1234", "lab.example")
ADDRESS = re.compile(r'\b(?:href|src|action|formaction|data-from)="([^"]*)"')


@pytest.fixture(scope="module")
def airflow(
    airflow_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Airflow]:
    root = tmp_path_factory.mktemp("data")
    first = let_pass(stage(root / "first"))
    publish(first, "first", f"sqlite:///{root / 'results.db'}", DagRun("experiment", "manual__1"))
    environment = airflow_environment | {"TIDEBENCH_DATA_ROOT": str(root)}
    logs = tmp_path_factory.mktemp("services")
    with airflow_services(environment, logs, [], ["api-server"], prefix=PREFIX) as services:
        yield services


def get(airflow: Airflow, address: str, **headers: str) -> tuple[int, str, str]:
    """Status, content, and where a redirection leads."""
    connection = http.client.HTTPConnection(urlsplit(airflow.url).netloc, timeout=30)
    connection.request("GET", address, headers=headers)
    answer = connection.getresponse()
    content = answer.read().decode(errors="replace")
    connection.close()
    return answer.status, content, answer.getheader("location", "")


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("path", ["/", f"/compare?run=first/{RUN}", "/tables/first"])
def test_every_address_is_one_of_the_host_that_was_asked(
    path: str, host: str, airflow: Airflow
) -> None:
    log_in = {"Authorization": f"Bearer {airflow.token}", "Host": host}
    status, page, _ = get(airflow, f"{PREFIX}/tidebench{path}", **log_in)
    assert status == 200
    addresses = set(ADDRESS.findall(page))
    assert {one for one in addresses if not one.startswith(f"{PREFIX}/")} == set()
    assert f"{PREFIX}/dags/experiment" in addresses
    assets = {one for one in addresses if "/assets/" in one}
    assert {Path(one).suffix for one in assets} >= {".css", ".js", ".svg"}
    assert {get(airflow, one, **log_in)[0] for one in assets} == {200}


@pytest.mark.parametrize("host", HOSTS)
def test_who_is_not_logged_in_comes_back_to_the_host_that_was_asked(
    host: str, airflow: Airflow
) -> None:
    address = f"{PREFIX}/tidebench/?experiment=first"
    status, _, location = get(airflow, address, Host=host, Accept="text/html")
    assert status == 302
    back = "%2Flab%2Fair%2Ftidebench%2F%3Fexperiment%3Dfirst"
    assert location == f"{PREFIX}/auth/login?next={back}"


def test_the_navigation_leads_below_the_prefix(airflow: Airflow) -> None:
    """Airflow's own page resolves these against its base, which has the prefix."""
    plugins = airflow.ask("GET", "/api/v2/plugins")["plugins"]
    (view,) = next(one for one in plugins if one["name"] == "tidebench")["external_views"]
    assert (view["href"], view["icon"]) == ("tidebench/", "tidebench/assets/icon.svg")
