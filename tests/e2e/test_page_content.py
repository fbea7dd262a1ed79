"""What a reader finds on the page "Experiments": who measured, readable evidence, links, scales."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urljoin

import pytest

from include.results.quality.gates import check_tables
from include.results.reports.publish import publish
from include.runs.measurements.origin import DagRun, mark_origin
from include.runs.measurements.store import RunStore
from tests.builders_staged import RUN, change, restage, stage, tables_of
from tests.e2e.airflow_services import Airflow
from tests.e2e.page_reader import get, page_services, read_page

pytestmark = pytest.mark.airflow

EARLY = DagRun("experiment", "manual__early")
COMPLETE_S = 1767268800.0  # 2026-01-01 12:00
FIGURE = f"/tidebench/figures/demo/{RUN}/timeline.svg"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One experiment that one DAG run measured and a later one published, and a busier one."""
    root = tmp_path_factory.mktemp("data")
    url = f"sqlite:///{root / 'results.db'}"
    folder = stage(root / "demo")
    change(folder, "utilisation", host_memory_max_percent=126.0)
    store = RunStore(folder, "demo", RUN)
    mark_origin(store, EARLY)
    store.manifest.write_text("{}")
    os.utime(store.manifest, (COMPLETE_S, COMPLETE_S))
    check_tables(folder)
    publish(folder, url, DagRun("experiment", "manual__late"))
    busy = stage(root / "busy", "busy")
    restage(busy, "timeline", [row | {"hosts": 40} for row in tables_of("busy")["timeline"]])
    check_tables(busy)
    publish(busy, url, DagRun("experiment", "manual__busy"))
    return root


airflow = page_services()


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


@pytest.mark.parametrize("page", ["files/demo/published/report.html", "", "checks/demo"])
def test_every_link_answers(airflow: Airflow, page: str) -> None:
    address = f"{airflow.url}/tidebench/{page}"
    addresses = links(read_page(airflow, f"/tidebench/{page}"), address)
    ours = {link.removeprefix(airflow.url) for link in addresses if "/tidebench/" in link}
    if page.endswith("report.html"):
        assert {
            f"/tidebench/files/demo/published/cost.{kind}" for kind in ("csv", "parquet")
        } < ours
    for link in ours:
        status, headers, _ = get(airflow, link, airflow.token)
        if status in (302, 307):
            status = get(airflow, urljoin(link, headers["location"]), airflow.token)[0]
        assert status == 200, link


def test_the_index_of_data_docs_is_the_page_of_checks(airflow: Airflow) -> None:
    path = "/tidebench/files/demo/data_docs/index.html"
    status, headers, _ = get(airflow, path, airflow.token)
    assert status in (302, 307)
    assert urljoin(path, headers["location"]) == "/tidebench/checks/demo"


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


def test_figures_side_by_side_have_one_scale(airflow: Airflow) -> None:
    page = read_page(airflow, f"/tidebench/compare?run=demo/{RUN}&run=busy/busy")
    (beside,) = set(re.findall(r'src="[^"]*?/timeline\.svg(\?[^"]*)"', page))
    alone = read_page(airflow, FIGURE)
    together = read_page(airflow, FIGURE + beside.replace("&amp;", "&"))
    assert alone.count(">30</text>") == 1, "items that wait"
    assert together.count(">30</text>") == 2, "the axis of two hosts is that of forty"
    assert ".svg?" not in read_page(airflow, f"/tidebench/compare?run=demo/{RUN}")


def test_more_memory_than_a_host_has_is_explained(airflow: Airflow) -> None:
    page = read_page(airflow, f"/tidebench/compare?run=demo/{RUN}")
    (label,) = re.findall(r"<th[^>]*>(Host memory max.*?)</th>", page, flags=re.DOTALL)
    assert "<small>" in label
    assert "until it has drained" in label
