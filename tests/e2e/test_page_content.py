"""What a reader finds on the page "Experiments": who measured, readable evidence, links.

And the list as somebody uses it in a browser: it refreshes, and takes tags by Enter. All of it is
below a prefix as behind a proxy, by whatever name a browser has for its server.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urljoin, urlsplit

import pytest

from include.results.quality.gates import check_tables
from include.results.reports.publish import publish
from include.runs.measurements.origin import DagRun, mark_origin
from include.runs.measurements.store import RunStore
from tests.builders_staged import RUN, change, let_pass, stage
from tests.e2e.airflow_services import Airflow
from tests.e2e.browser import NEEDS_CHROMIUM
from tests.e2e.page_reader import get, page_services, read_page

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.airflow

EARLY = DagRun("experiment", "manual__early")
COMPLETE_S = 1767268800.0  # 2026-01-01 12:00
PREFIX = "/lab/air"
HOSTS = ("localhost:8093", "tunnel.example:1234", "lab.example")
ADDRESS = re.compile(r'\b(?:href|src|action|formaction|data-from)="([^"]*)"')


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One experiment that one DAG run measured and a later one published, and another."""
    root = tmp_path_factory.mktemp("data")
    url = f"sqlite:///{root / 'results.db'}"
    folder = stage(root / "demo")
    change(folder, "utilisation", host_memory_max_percent=126.0)
    store = RunStore(folder, RUN)
    mark_origin(store, EARLY)
    store.manifest.write_text("{}")
    os.utime(store.manifest, (COMPLETE_S, COMPLETE_S))
    check_tables(folder)
    publish(folder, url, DagRun("experiment", "manual__late"))
    publish(let_pass(stage(root / "busy", "busy")), url, DagRun("experiment", "manual__busy"))
    return root


airflow = page_services("experiment_batch", prefix=PREFIX)


def links(page: str, address: str) -> set[str]:
    """Where the page leads to, as the browser understands it."""
    return {urljoin(address, link) for link in re.findall(r'<a [^>]*?href="([^"#]+)"', page)}


@pytest.mark.parametrize("path", ["/tidebench/", f"/tidebench/compare?run=demo/{RUN}"])
def test_a_run_leads_to_the_dag_run_that_measured_it(airflow: Airflow, path: str) -> None:
    page = read_page(airflow, path)
    assert "/dags/experiment/runs/manual__early" in page
    assert "manual__late" not in page
    assert "2026-01-01" in page
    assert "12:00" in page


def test_who_measured_is_not_made_up_where_nobody_knows(airflow: Airflow) -> None:
    page = read_page(airflow, "/tidebench/?experiment=busy")
    assert re.search(r'runs/manual__busy"[^>]*>published by</a>', page)
    assert ">DAG run<" not in page


@pytest.mark.parametrize("path", ["files/demo/published/report.html", "", "checks/demo"])
def test_every_link_answers(airflow: Airflow, path: str) -> None:
    address = f"{airflow.url}/tidebench/{path}"
    addresses = links(read_page(airflow, f"/tidebench/{path}"), address)
    ours = {link.removeprefix(airflow.url) for link in addresses if "/tidebench/" in link}
    if path.endswith("report.html"):
        assert {
            f"/tidebench/files/demo/published/cost.{kind}"
            for kind in ("csv", "parquet", "md", "tex")
        } < ours
    for link in ours:
        status, headers, _ = get(airflow, link, airflow.token)
        if status in (302, 307):
            there = urljoin(link, headers["location"]).removeprefix(PREFIX)
            status = get(airflow, there, airflow.token)[0]
        assert status == 200, link


def test_the_index_of_data_docs_is_the_page_of_checks(airflow: Airflow) -> None:
    path = "/tidebench/files/demo/data_docs/index.html"
    status, headers, _ = get(airflow, path, airflow.token)
    assert status in (302, 307)
    assert urljoin(path, headers["location"]).removeprefix(PREFIX) == "/tidebench/checks/demo"


def test_data_docs_are_readable_and_run_no_script(airflow: Airflow) -> None:
    checks = read_page(airflow, "/tidebench/checks/demo")
    (docs,) = re.findall(r'href="[^"]*?(/tidebench/files/[^"]*staged-cost.html)"', checks)
    status, headers, page = get(airflow, docs, airflow.token)
    policy = headers["content-security-policy"]
    assert status == 200
    assert "border-collapse: collapse" in page.split("</head>")[0], "our style sheet is in it"
    assert "'unsafe-inline'" in policy.partition("style-src")[2].partition(";")[0]
    assert "default-src 'none'" in policy
    assert "script-src" not in policy


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("path", ["/", f"/compare?run=demo/{RUN}"])
def test_every_address_is_one_of_the_host_that_was_asked(
    path: str, host: str, airflow: Airflow
) -> None:
    status, _, page = get(airflow, f"/tidebench{path}", airflow.token, Host=host)
    assert status == 200
    addresses = set(ADDRESS.findall(page))
    assert {address for address in addresses if not address.startswith(f"{PREFIX}/")} == set()
    assert f"{PREFIX}/dags/experiment" in addresses
    assets = {address.removeprefix(PREFIX) for address in addresses if "/assets/" in address}
    assert {Path(asset).suffix for asset in assets} >= {".css", ".js", ".svg"}
    assert {get(airflow, asset, airflow.token, Host=host)[0] for asset in assets} == {200}


@pytest.mark.parametrize("host", HOSTS)
def test_who_is_not_logged_in_comes_back_to_the_host_that_was_asked(
    host: str, airflow: Airflow
) -> None:
    address = "/tidebench/?experiment=demo"
    status, headers, _ = get(airflow, address, Host=host, Accept="text/html")
    assert status == 302
    back = "%2Flab%2Fair%2Ftidebench%2F%3Fexperiment%3Ddemo"
    assert headers["location"] == f"{PREFIX}/auth/login?next={back}"


def test_the_navigation_leads_below_the_prefix(airflow: Airflow) -> None:
    """Airflow's own page resolves these against its base, which has the prefix."""
    plugins = airflow.ask("GET", "/api/v2/plugins")["plugins"]
    (view,) = next(plugin for plugin in plugins if plugin["name"] == "tidebench")["external_views"]
    assert (view["name"], view["destination"]) == ("Experiments", "nav")
    assert (view["href"], view["icon"]) == ("tidebench/", "tidebench/assets/icon.svg")


@NEEDS_CHROMIUM
def test_the_list_shows_what_begins_while_somebody_looks(airflow: Airflow, page: Page) -> None:
    page.goto(f"{airflow.url}/tidebench/?experiment=late")
    page.evaluate("window.same = true")
    name = page.get_by_text("late · fixed · constant · seeds 4")
    assert name.count() == 0
    asked = {"experiment": "late", "controllers": ["fixed"], "patterns": ["constant"], "seeds": [4]}
    run_id = airflow.trigger("experiment_batch", asked)
    name.wait_for()
    page.locator("#under-way .queued").wait_for()  # the list is drawn anew every few seconds
    airflow.end_by_hand("experiment_batch", run_id)
    page.locator("#under-way .failed").wait_for()
    page.locator(".why summary").click()
    airflow.trigger("experiment_batch", asked)
    page.locator("#under-way .queued").wait_for()
    assert page.locator(".why[open]").count() == 1, "what is being read stays unfolded"
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    assert page.evaluate("window.same"), "without a reload: whoever types or has chosen goes on"
    page.context.clear_cookies()
    page.wait_for_url("**/auth/login**")


@NEEDS_CHROMIUM
def test_a_run_that_is_published_comes_into_the_list(
    airflow: Airflow, page: Page, root: Path
) -> None:
    page.goto(f"{airflow.url}/tidebench/")
    page.get_by_text("More filters").click()
    page.get_by_label("tags for the chosen").fill("mine")
    page.get_by_label(f"choose demo/{RUN}").check()
    page.evaluate("document.getElementById('under-way').innerHTML += '<i data-dag-run=x></i>'")
    publish(let_pass(stage(root / "third")), f"sqlite:///{root / 'results.db'}")
    page.get_by_label(f"choose third/{RUN}").wait_for()
    assert page.get_by_label(f"choose demo/{RUN}").is_checked(), "what was chosen stays chosen"
    assert page.get_by_label("tags for the chosen").input_value() == "mine"
    assert page.locator(".more[open]").count() == 1


@NEEDS_CHROMIUM
def test_buttons_are_off_until_a_run_is_chosen(airflow: Airflow, page: Page) -> None:
    page.goto(f"{airflow.url}/tidebench/")
    compare = page.get_by_role("button", name="Compare the chosen")
    every = page.get_by_label("choose all on this page")
    assert compare.is_disabled()
    every.check()
    assert compare.is_enabled()
    assert page.locator("input[name=run]:not(:checked)").count() == 0
    assert page.locator("#count").inner_text().endswith(" chosen")
    every.uncheck()
    assert compare.is_disabled()


@NEEDS_CHROMIUM
@pytest.mark.parametrize(("theme", "system", "dark"), [
    ("dark", "light", True), ("light", "dark", False), ("system", "dark", True),
])  # fmt: skip
def test_pages_have_the_theme_of_airflow(
    airflow: Airflow, page: Page, theme: str, system: Literal["light", "dark"], dark: bool
) -> None:
    page.emulate_media(color_scheme=system)
    page.add_init_script(f"localStorage.setItem('theme', '{theme}')")
    paper = "getComputedStyle(document.body).backgroundColor"
    for path in ("", "files/demo/published/report.html"):
        page.goto(f"{airflow.url}/tidebench/{path}")
        assert page.evaluate(paper) == ("rgb(20, 24, 27)" if dark else "rgb(251, 251, 249)"), path


@NEEDS_CHROMIUM
def test_enter_in_the_field_of_tags_gives_them(airflow: Airflow, page: Page) -> None:
    page.goto(f"{airflow.url}/tidebench/?experiment=demo")
    page.get_by_label(f"choose demo/{RUN}").check()
    page.get_by_label("tags for the chosen").fill("by-enter")
    page.get_by_label("tags for the chosen").press("Enter")
    page.get_by_role("link", name="by-enter", exact=True).wait_for()
    assert urlsplit(page.url).path == f"{PREFIX}/tidebench/"
    assert "1 run<" in read_page(airflow, "/tidebench/?tag=by-enter")
