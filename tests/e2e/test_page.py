"""The page "Experiments" under Airflow's own API server: who may see it, and what it gives away."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest

from include.results.quality.verdict import Verdict, staged_digests, verdict_path, write_verdict
from include.results.reports.publish import publish
from include.results.tables.quarantine import Check
from include.runs.measurements.origin import DagRun
from tests.bench.page import many_runs, timed
from tests.builders_staged import RUN, let_pass, restage, stage, tables_of
from tests.e2e.airflow_services import VIEWER, Airflow
from tests.e2e.page_reader import EVIL, get, page_services, read_page

pytestmark = pytest.mark.airflow

FIRST = f"/tidebench/compare?run=first/{RUN}"
FEW_CONNECTIONS = {
    "AIRFLOW__DATABASE__SQL_ALCHEMY_POOL_SIZE": "4",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_MAX_OVERFLOW": "0",
}
"""Fewer than readers, as Airflow's fifteen are with sixty."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two published experiments, one whose checks failed, and things that are nobody's business."""
    root = tmp_path_factory.mktemp("data")
    url = f"sqlite:///{root / 'results.db'}"
    first = let_pass(stage(root / "first"))
    publish(first, url, DagRun("experiment", "manual__2026-01-01T00:00:00+00:00"))
    (first / "secret.html").write_text("secret")
    (first / "published" / "notes.py").write_text("secret")
    (first / "published" / "runs").mkdir()
    (first / "published" / "runs" / f"{RUN}.html").write_text("of many runs, the page of one")
    (first / "published" / "leak.html").symlink_to("/etc/hostname")
    (root / "secret.csv").write_text("secret")
    (first / "published" / "manifest.json").write_text(json.dumps({"left_out": ["short"]}))
    let_pass(first, "short")
    (first / "runs" / "short").mkdir(parents=True)
    other = stage(root / "other", "threshold-x", controller="threshold")
    tables = tables_of("threshold-x", controller="threshold")
    restage(other, "runs", [tables["runs"][0] | {"variant": EVIL}])
    publish(let_pass(other), url)
    failed = stage(root / "failed")
    check = Check(
        table="cost", columns=("leases",), expectation="made_up", sentence=f"No {EVIL}.",
        passed=False, rows=({"run": RUN, "leases": -1},) * 7,
    )  # fmt: skip
    verdict = Verdict(experiment="failed", staged=staged_digests(failed), checks=(check,))
    write_verdict(verdict_path(failed), verdict)
    return root


airflow = page_services("remove_runs", settings=FEW_CONNECTIONS)


@pytest.mark.parametrize(
    "path",
    [
        "/tidebench/", FIRST, "/tidebench/checks/first", "/tidebench/assets/page.css",
        "/tidebench/files/first/published/report.html", "/tidebench/files/first/published/cost.csv",
    ],
)  # fmt: skip
def test_who_is_not_logged_in_sees_nothing(airflow: Airflow, path: str) -> None:
    assert get(airflow, path)[0] == 401
    assert get(airflow, path, "no.such.token")[0] in (401, 403)
    assert get(airflow, path, Cookie="_token=no.such.token")[0] in (401, 403)
    status, headers, _ = get(airflow, path, Accept="text/html")
    assert status == 302
    assert headers["location"].endswith("/auth/login?next=" + quote(path, safe=""))
    assert get(airflow, path, airflow.token_of(VIEWER))[0] == 200
    assert get(airflow, path, Cookie=f"_token={airflow.token}")[0] == 200


def test_nothing_is_there_but_the_page(airflow: Airflow) -> None:
    for path in ("docs", "openapi.json", "redoc", "bundle/a%2fb.zip"):
        status, _, page = get(airflow, f"/tidebench/{path}", airflow.token)
        assert status == 404
        assert "All experiments" in page, "a page, and no dead end"


def test_the_list_is_sorted_whatever_is_asked_for(airflow: Airflow) -> None:
    page = read_page(airflow, "/tidebench/")
    assert "2 runs" in page
    assert "/dags/experiment/runs/manual__2026-01-01T00%3A00%3A00%2B00%3A00" in page
    assert "1 run<" in read_page(airflow, "/tidebench/?text=btu+walk")
    assert "No run matches" in read_page(airflow, "/tidebench/?text=nothing+of+it")
    up = read_page(airflow, "/tidebench/?sort=experiment&order=up")
    assert up.index('value="first/') < up.index('value="other/')
    for odd in ("page=0", "page=-1", "page=x", "page=9999999", "sort=run;--", "order=%00"):
        assert 'value="first/' in read_page(airflow, f"/tidebench/?{odd}"), odd


def test_sixty_readers_at_once_are_answered_without_a_stall(airflow: Airflow) -> None:
    with ThreadPoolExecutor(60) as readers:
        answers = readers.map(lambda _: get(airflow, "/tidebench/", airflow.token)[0], range(60))
        health = airflow.ask("GET", "/api/v2/monitor/health")
    assert Counter(answers) == {200: 60}
    assert health["metadatabase"]["status"] == "healthy"
    assert "QueuePool" not in (airflow.logs / "api-server.log").read_text()


def test_what_others_wrote_is_text(airflow: Airflow) -> None:
    for path in ("/tidebench/", "/tidebench/compare?run=other/threshold-x",
                 "/tidebench/checks/failed", f"/tidebench/?text={quote(EVIL)}"):  # fmt: skip
        page = read_page(airflow, path)
        assert EVIL not in page
        assert "&lt;script&gt;" in page


def test_an_experiment_that_did_not_pass_is_named_with_its_rows(airflow: Airflow) -> None:
    assert "<b>failed</b> was measured and is not published: 1\ncheck" in read_page(
        airflow, "/tidebench/"
    )
    checks = read_page(airflow, "/tidebench/checks/failed")
    assert checks.count("leases=-1") == 5
    assert "and 2 more" in checks
    assert "1 of 1 checks failed" in checks


def test_a_run_that_was_left_out_is_named_with_its_rows(airflow: Airflow) -> None:
    assert "<b>first</b> is published without 1\nrun" in read_page(airflow, "/tidebench/")
    checks = read_page(airflow, "/tidebench/checks/first")
    assert "left out: run short" in checks
    assert "leases=-1" in checks
    assert "/tidebench/remove?run=first/short" in checks


def test_runs_are_removed_after_a_question_by_who_may_trigger_that_dag(airflow: Airflow) -> None:
    path = f"/tidebench/remove?run=first/{RUN}&run=first/short"
    assert "Remove the chosen" in read_page(airflow, "/tidebench/")
    asking = read_page(airflow, path)
    assert "for good" in asking
    assert 'method="post"' in asking
    viewer = airflow.token_of(VIEWER)
    for method in ("GET", "POST"):
        assert get(airflow, path, method=method)[0] == 401
        refused, _, told = get(airflow, path, viewer, method)
        assert (refused, "You may not do this here" in told) == (403, True)
    for foreign in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://elsewhere.example"}):
        asked = get(airflow, path, None, "POST", Cookie=f"_token={airflow.token}", **foreign)
        assert asked[0] == 403, foreign
    for wrong in ("", "?run=first", "?run=../x", "?run=nope/nope", "?run=first/nope"):
        for method in ("GET", "POST"):
            assert get(airflow, f"/tidebench/remove{wrong}", airflow.token, method)[0] == 404, wrong
    assert "no run nope/nope" in get(airflow, "/tidebench/remove?run=nope/nope", airflow.token)[2]
    assert airflow.runs("remove_runs") == {}
    status, _, page = get(airflow, path, airflow.token, "POST")
    assert status == 200, page
    ((run_id, began),) = airflow.runs("remove_runs").items()
    assert f"/dags/remove_runs/runs/{quote(run_id)}" in page
    assert began is None, "no scheduler is here"
    triggered = airflow.ask("GET", f"/api/v2/dags/remove_runs/dagRuns/{quote(run_id, safe='')}")
    assert triggered["conf"] == {"experiment": "first", "runs": [RUN, "short"]}
    assert triggered["triggering_user_name"]
    for again in (path, f"/tidebench/remove?run=first/{RUN}"):
        assert f"runs/{quote(run_id)}" in get(airflow, again, airflow.token, "POST")[2]
    assert list(airflow.runs("remove_runs")) == [run_id], "a double click asks once"


def test_a_viewer_sees_no_button_that_is_refused(airflow: Airflow) -> None:
    viewer = airflow.token_of(VIEWER)
    for path, allowed in (("/tidebench/", "Compare the chosen"), (FIRST, "checks</a>"),
                          ("/tidebench/checks/first", "left out: run short"),
                          ("/tidebench/advice", "Experiments")):  # fmt: skip
        page = get(airflow, path, viewer)[2]
        assert allowed in page
        for refused in ("Archive the chosen", "Remove the chosen", ">Tag<", ">Keep<", "remove it",
                        "Run an experiment", "Run a matrix", "Trigger the DAG"):  # fmt: skip
            assert refused not in page, path
        nav = get(airflow, path, airflow.token)[2]
        assert "Run an experiment" in nav
        assert "Run a matrix" in nav


def test_runs_stand_side_by_side(airflow: Airflow) -> None:
    page = read_page(airflow, FIRST + "&run=other/threshold-x")
    assert "2 runs side by side" in page
    assert "Relaxed compliance (%)" in page
    assert 'class="differs"' in page
    for wrong in ("/tidebench/compare", "/tidebench/compare?run=first",
                  "/tidebench/compare?run=a/b", FIRST + "".join(f"&run=a/{k}" for k in range(9)),
                  "/tidebench/checks/none", "/tidebench/checks/.."):  # fmt: skip
        assert get(airflow, wrong, airflow.token)[0] == 404, wrong


def test_published_files_are_served_as_what_they_are(airflow: Airflow) -> None:
    for name, kind in (("report.html", "text/html"), ("cost.csv", "text/csv"),
                       (f"runs/{RUN}.html", "text/html"),
                       ("cost.parquet", "application/vnd.apache.parquet")):  # fmt: skip
        status, headers, _ = get(airflow, f"/tidebench/files/first/published/{name}", airflow.token)
        assert status == 200
        assert headers["content-type"].startswith(kind)
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "script-src" not in headers["content-security-policy"]
    verdict = get(airflow, "/tidebench/files/first/data_docs/verdict.json", airflow.token)[2]
    assert json.loads(verdict)["passed"] is True


@pytest.mark.parametrize(
    "path",
    [
        "first/secret.html", "first/published/notes.py", "first/published/leak.html",
        "first/published/../secret.html", "first/published/..%2fsecret.html",
        "first/published/../../secret.csv", "first/published/..%2f..%2fsecret.csv",
        "first/published/%2e%2e/%2e%2e/secret.csv", "first/published//etc/hostname",
        "first/published/%00report.html", "first/published/report.html%00.csv",
        "../secret.csv", "..%2fsecret.csv", "%2e%2e/secret.csv", ".%2e/published/secret.csv",
        "first/published", "first/published/", "first/staged/cost.parquet",
        "first%2fpublished/report.html/..%2f..%2fsecret.html", "first/data_docs/..\\secret.html",
        "first/published/..%252fsecret.html", "airflow/airflow.cfg", "results.db",
        "first/runs/x/run.json", "FIRST/published/report.html",
        f"first/published/{'long' * 100}.csv",
    ],
)  # fmt: skip
def test_nothing_else_below_or_beside_the_data_root_is_served(airflow: Airflow, path: str) -> None:
    status, _, content = get(airflow, f"/tidebench/files/{path}", airflow.token)
    assert status in (404, 307), content
    assert "secret" not in content or path in content


def test_a_thousand_runs_answer_in_time(airflow: Airflow, root: Path) -> None:
    """Last, because it fills the database. `python -m tests.bench.page` has the figures."""
    many_runs(root, 1000)
    assert "1,002 runs" in read_page(airflow, "/tidebench/")
    took_ms = {name: min(all_ms) for name, all_ms, *_ in timed(airflow, 1000, repeats=4)}
    assert took_ms["sorted by cost, page 10"] < 500
