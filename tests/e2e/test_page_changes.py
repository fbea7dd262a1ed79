"""What the page "Experiments" changes, who may, and what there is to take home."""

from __future__ import annotations

import http.client
import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote, urlencode, urljoin, urlsplit

import pytest

from include.experiment.params import params_from_run, run_from_params
from include.results.reports.publish import publish
from tests.builders_staged import RUN, change, let_pass, stage
from tests.e2e.airflow_services import VIEWER, Airflow, airflow_services
from tests.e2e.test_page import EVIL, get, seen

pytestmark = pytest.mark.airflow

SPEC = run_from_params(
    {"experiment": "given", "controller": "threshold", "pattern": "stepwise", "seed": 7,
     "controller_options": {"scale_up_above_items": 70}, "duration_min": 20}
)  # fmt: skip
KEY = f"given/{SPEC.run_id}"
LEFT = {"sec-fetch-site": "same-origin"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two published experiments of one run each."""
    root = tmp_path_factory.mktemp("data")
    url = f"sqlite:///{root / 'results.db'}"
    given = stage(root / "given", SPEC.run_id, controller="threshold", pattern="stepwise")
    change(given, "runs", seed=7, btu_min=20.0, testbed="docker")
    change(given, "outcomes", strict_total_cost=77.0)
    publish(let_pass(given), "given", url)
    publish(let_pass(stage(root / "other")), "other", url)
    (root / "given" / "published" / "leak.html").symlink_to("/etc/hostname")
    (root / "given" / "published" / "notes.py").write_text("secret")
    return root


@pytest.fixture(scope="module")
def airflow(
    airflow_environment: dict[str, str], root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Airflow]:
    environment = airflow_environment | {"TIDEBENCH_DATA_ROOT": str(root)}
    logs = tmp_path_factory.mktemp("services")
    parts = ["api-server", "dag-processor"]
    with airflow_services(environment, logs, ["experiment", "experiment_batch"], parts) as services:
        yield services


def send(
    airflow: Airflow, path: str, fields: Mapping[str, object], token: str | None, **headers: str
) -> tuple[int, str, str]:
    """A form as a browser sends it: status, where it leads to, what it says."""
    connection = http.client.HTTPConnection(urlsplit(airflow.url).netloc, timeout=30)
    headers["Content-Type"] = "application/x-www-form-urlencoded"
    if token is not None:
        headers["Cookie"] = f"_token={token}"
    connection.request("POST", path, urlencode(fields, doseq=True), headers)
    answer = connection.getresponse()
    content = answer.read().decode(errors="replace")
    connection.close()
    return answer.status, answer.headers.get("location", ""), content


def test_nothing_is_changed_by_others_or_from_other_sites(airflow: Airflow) -> None:
    path = "/tidebench/label"
    fields = {"run": KEY, "archived": "yes"}
    assert send(airflow, path, fields, None)[0] == 401
    assert send(airflow, path, fields, airflow.log_in(VIEWER), **LEFT)[0] == 403
    for foreign in (
        {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"},
        {"origin": "http://elsewhere.example"}, {"origin": "null"},
    ):  # fmt: skip
        assert send(airflow, path, fields, airflow.token, **foreign)[0] == 403, foreign
    assert get(airflow, "/tidebench/label", airflow.token)[0] == 405, "only by POST"
    assert "2 runs" in seen(airflow, "/tidebench/")


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("cost_from=70&cost_to=80", 1), ("cost_from=1000", 0), ("btu_min=20.0", 1), ("seed=7", 1),
        ("seed=1", 1), ("testbed=docker", 1), ("date_from=2020-01-01", 2),
        ("date_to=2020-01-01", 0),
        ("shown=archived", 0), ("tag=paper", 0),
        # What is no number or date is as if it were not given.
        ("cost_from=cheap", 2), ("seed=1.5", 2), ("seed=99999999999999999999", 2),
        ("date_from=x", 2),
        ("cost_to=nan", 2), ("btu_min=inf", 2), ("shown=%27", 2), ("testbed=" + quote(EVIL), 0),
        ("tag=" + quote("' OR 1=1 --"), 0),
    ],
)  # fmt: skip
def test_filters_narrow_the_list_and_stay_filled_in(
    airflow: Airflow, asked: str, found: int
) -> None:
    page = seen(airflow, f"/tidebench/?{asked}")
    assert len(re.findall(r'type="checkbox" name="run"', page)) == found
    assert EVIL not in page
    if asked == "cost_from=70&cost_to=80":
        assert 'name="cost_from" value="70.0"' in page


def test_runs_are_tagged_noted_archived_and_taken_back(airflow: Airflow) -> None:
    run = f"/tidebench/compare?run={quote(KEY)}"
    said = {"run": KEY, "tags": "Paper, fig-3", "note": f"cold {EVIL}", "archived": "no"}
    status, address, _ = send(
        airflow, f"/tidebench/label?run={quote(KEY)}", said, airflow.token, **LEFT
    )
    assert status == 303
    page = seen(airflow, urlsplit(address).path + "?" + urlsplit(address).query)
    assert 'value="paper fig-3"' in page
    assert EVIL not in page
    assert "cold &lt;script&gt;" in page
    listed = seen(airflow, "/tidebench/?tag=fig-3")
    assert "1 run<" in listed
    assert EVIL not in listed

    chosen = {"run": [KEY, f"other/{RUN}"], "add_tags": "both"}
    assert send(airflow, "/tidebench/label?sort=cost", chosen, airflow.token, **LEFT)[0] == 303
    assert "2 runs" in seen(airflow, "/tidebench/?tag=both")

    away = {"run": KEY, "archived": "yes"}
    status, address, _ = send(airflow, "/tidebench/label?sort=cost", away, airflow.token, **LEFT)
    assert (status, urlsplit(address).query) == (303, "sort=cost")
    assert KEY not in seen(airflow, "/tidebench/")
    assert "Take the chosen back" in seen(airflow, "/tidebench/?shown=archived")
    assert KEY in seen(airflow, "/tidebench/?shown=archived")
    assert "archived" in seen(airflow, run)
    back = {"run": KEY, "archived": "no"}
    assert send(airflow, "/tidebench/label", back, airflow.token, **LEFT)[0] == 303
    assert KEY in seen(airflow, "/tidebench/")


def test_what_cannot_be_said_is_refused_in_words(airflow: Airflow) -> None:
    for fields, status in (
        ({"run": KEY, "add_tags": "<b>"}, 422), ({"run": KEY, "note": "x" * 2001}, 422),
        ({}, 404), ({"run": "given/none", "archived": "yes"}, 404), ({"run": "../x/y"}, 404),
    ):  # fmt: skip
        answer = send(airflow, "/tidebench/label", fields, airflow.token, **LEFT)
        assert answer[0] == status, fields
        assert "All experiments" in answer[2], "no dead end"


def test_every_table_and_the_bundle_are_there_to_take_home(airflow: Airflow, root: Path) -> None:
    address = f"{airflow.url}/tidebench/tables/given"
    page = seen(airflow, "/tidebench/tables/given")
    links = {urljoin(address, one) for one in re.findall(r'href="([^"#]+)"', page)}
    ours = {one.removeprefix(airflow.url) for one in links if "/tidebench/" in one}
    assert {f"/tidebench/files/given/published/{table}.{kind}"
            for table in ("cost", "runs", "timeline") for kind in ("csv", "parquet", "md", "tex")
            } < ours  # fmt: skip
    for one in ours:
        assert get(airflow, one, airflow.token)[0] == 200, one
    connection = http.client.HTTPConnection(urlsplit(airflow.url).netloc, timeout=30)
    connection.request(
        "GET", "/tidebench/bundle/given.zip", headers={"Authorization": f"Bearer {airflow.token}"}
    )
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    assert answer.headers["content-disposition"] == 'attachment; filename="given.zip"'
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        assert packed.testzip() is None
        names = set(packed.namelist())
        assert "given/published/report.html" in names
        assert "given/data_docs/verdict.json" in names
        assert not [name for name in names if "leak" in name or "notes" in name or ".." in name]
        cost = packed.read("given/published/cost.csv")
    assert cost == (root / "given" / "published" / "cost.csv").read_bytes()
    for wrong in ("/tidebench/bundle/none.zip", "/tidebench/tables/none", "/tidebench/tables/.."):
        assert get(airflow, wrong, airflow.token)[0] == 404
    assert get(airflow, "/tidebench/bundle/given.zip")[0] == 401
    assert get(airflow, "/tidebench/tables/given")[0] == 401


def test_a_report_leads_back(airflow: Airflow) -> None:
    page = seen(airflow, "/tidebench/files/given/published/report.html")
    assert 'href="/tidebench/?experiment=given"' in page
    assert page.index("All experiments") < page.index("<h1")
    assert "<script" not in page


def test_what_is_queued_is_listed_under_its_experiment(airflow: Airflow) -> None:
    airflow.trigger("experiment", params_from_run(SPEC))
    page = seen(airflow, "/tidebench/")
    assert "given · threshold · stepwise · seed 7" in page
    assert 'class="queued"' in page
    assert "given · threshold" in seen(airflow, "/tidebench/under-way?experiment=given")
    assert "given · threshold" not in seen(airflow, "/tidebench/under-way?experiment=other")


def test_a_failed_matrix_is_listed_with_its_reason_to_who_may_read_it(airflow: Airflow) -> None:
    asked = {"experiment": "many", "controllers": ["btu", EVIL], "patterns": ["stepwise"]}
    run_id = airflow.trigger("experiment_batch", asked)
    airflow.end_by_hand("experiment_batch", run_id)  # it has no teardown that a scheduler would run
    page = seen(airflow, "/tidebench/")
    assert "many · btu, &lt;script&gt;" in page
    assert EVIL not in page
    assert 'class="failed"' in page
    assert "It was marked failed by hand" in page
    assert "many · btu" in get(airflow, "/tidebench/under-way", airflow.log_in(VIEWER))[2]
    assert get(airflow, "/tidebench/under-way")[0] == 401
