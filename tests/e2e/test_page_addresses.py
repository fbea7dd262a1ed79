"""The page by whatever name a browser has for its server, below a prefix as behind a proxy."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from include.results.reports.publish import publish
from include.runs.measurements.origin import DagRun
from tests.builders_staged import RUN, let_pass, stage
from tests.e2e.airflow_services import Airflow
from tests.e2e.page_reader import get, page_services

pytestmark = pytest.mark.airflow

PREFIX = "/lab/air"
HOSTS = ("localhost:8093", "tunnel.example:1234", "lab.example")
ADDRESS = re.compile(r'\b(?:href|src|action|formaction|data-from)="([^"]*)"')


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One published experiment."""
    root = tmp_path_factory.mktemp("data")
    first = let_pass(stage(root / "first"))
    publish(first, f"sqlite:///{root / 'results.db'}", DagRun("experiment", "manual__1"))
    return root


airflow = page_services(prefix=PREFIX)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("path", ["/", f"/compare?run=first/{RUN}", "/tables/first"])
def test_every_address_is_one_of_the_host_that_was_asked(
    path: str, host: str, airflow: Airflow
) -> None:
    status, _, page = get(airflow, f"{PREFIX}/tidebench{path}", airflow.token, Host=host)
    assert status == 200
    addresses = set(ADDRESS.findall(page))
    assert {address for address in addresses if not address.startswith(f"{PREFIX}/")} == set()
    assert f"{PREFIX}/dags/experiment" in addresses
    assets = {address for address in addresses if "/assets/" in address}
    assert {Path(asset).suffix for asset in assets} >= {".css", ".js", ".svg"}
    assert {get(airflow, asset, airflow.token, Host=host)[0] for asset in assets} == {200}


@pytest.mark.parametrize("host", HOSTS)
def test_who_is_not_logged_in_comes_back_to_the_host_that_was_asked(
    host: str, airflow: Airflow
) -> None:
    address = f"{PREFIX}/tidebench/?experiment=first"
    status, headers, _ = get(airflow, address, Host=host, Accept="text/html")
    assert status == 302
    back = "%2Flab%2Fair%2Ftidebench%2F%3Fexperiment%3Dfirst"
    assert headers["location"] == f"{PREFIX}/auth/login?next={back}"


def test_the_navigation_leads_below_the_prefix(airflow: Airflow) -> None:
    """Airflow's own page resolves these against its base, which has the prefix."""
    plugins = airflow.ask("GET", "/api/v2/plugins")["plugins"]
    (view,) = next(plugin for plugin in plugins if plugin["name"] == "tidebench")["external_views"]
    assert (view["name"], view["destination"]) == ("Experiments", "nav")
    assert (view["href"], view["icon"]) == ("tidebench/", "tidebench/assets/icon.svg")
