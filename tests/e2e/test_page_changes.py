"""What the page "Experiments" changes, who may, and what there is to take home."""

from __future__ import annotations

import csv
import http.client
import io
import re
import zipfile
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from include.experiment.params import params_from_run, run_from_params
from include.results.reports.publish import publish
from tests.builders_staged import RUN, change, let_pass, stage
from tests.e2e.airflow_services import VIEWER, Airflow
from tests.e2e.page_reader import EVIL, get, page_services, read_page, send

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
    folder = stage(root / "given", SPEC.run_id, controller="threshold", pattern="stepwise")
    change(folder, "runs", seed=7, btu_min=20.0, testbed="docker")
    change(folder, "outcomes", strict_total_cost=77.0)
    publish(let_pass(folder), url)
    publish(let_pass(stage(root / "other")), url)
    (root / "given" / "published" / "leak.html").symlink_to("/etc/hostname")
    (root / "given" / "published" / "notes.py").write_text("secret")
    return root


airflow = page_services("experiment", "experiment_batch")


def test_nothing_is_changed_by_others_or_from_other_sites(airflow: Airflow) -> None:
    path = "/tidebench/label"
    fields = {"run": KEY, "archived": "yes"}
    assert send(airflow, path, fields, None)[0] == 401
    assert send(airflow, path, fields, airflow.token_of(VIEWER), **LEFT)[0] == 403
    for foreign in (
        {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"},
        {"origin": "http://elsewhere.example"}, {"origin": "null"},
    ):  # fmt: skip
        assert send(airflow, path, fields, airflow.token, **foreign)[0] == 403, foreign
    assert get(airflow, "/tidebench/label", airflow.token)[0] == 405, "only by POST"
    assert "2 runs" in read_page(airflow, "/tidebench/")


@pytest.mark.parametrize(
    ("asked", "runs"),
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
    airflow: Airflow, asked: str, runs: int
) -> None:
    page = read_page(airflow, f"/tidebench/?{asked}")
    assert len(re.findall(r'type="checkbox" name="run"', page)) == runs
    assert EVIL not in page
    if asked == "cost_from=70&cost_to=80":
        assert 'name="cost_from" value="70.0"' in page


def test_runs_are_tagged_noted_archived_and_taken_back(airflow: Airflow) -> None:
    run = f"/tidebench/compare?run={quote(KEY)}"
    labels = {"run": KEY, "tags": "Paper, fig-3", "note": f"cold {EVIL}", "archived": "no"}
    status, headers, _ = send(
        airflow, f"/tidebench/label?run={quote(KEY)}", labels, airflow.token, **LEFT
    )
    assert status == 303
    address = urlsplit(headers["location"])
    page = read_page(airflow, f"{address.path}?{address.query}")
    assert 'value="paper fig-3"' in page
    assert EVIL not in page
    assert "cold &lt;script&gt;" in page
    listed = read_page(airflow, "/tidebench/?tag=fig-3")
    assert "1 run<" in listed
    assert EVIL not in listed

    (seen,) = re.findall('name="seen" value="([^"]+)"', page)
    for was, status in (("", 422), (seen, 303)):
        labels |= {"note": f"colder {EVIL}", "seen": was}
        answer = send(airflow, f"/tidebench/label?run={quote(KEY)}", labels, airflow.token, **LEFT)
        assert answer[0] == status
        assert ("load the page again" in answer[2]) is (status == 422)

    chosen = {"run": [KEY, f"other/{RUN}"], "add_tags": "both"}
    assert send(airflow, "/tidebench/label?sort=cost", chosen, airflow.token, **LEFT)[0] == 303
    assert "2 runs" in read_page(airflow, "/tidebench/?tag=both")

    away = {"run": KEY, "archived": "yes"}
    status, headers, _ = send(airflow, "/tidebench/label?sort=cost", away, airflow.token, **LEFT)
    assert (status, urlsplit(headers["location"]).query) == (303, "sort=cost")
    assert KEY not in read_page(airflow, "/tidebench/")
    assert "Take the chosen back" in read_page(airflow, "/tidebench/?shown=archived")
    assert KEY in read_page(airflow, "/tidebench/?shown=archived")
    assert "archived" in read_page(airflow, run)
    back = {"run": KEY, "archived": "no"}
    assert send(airflow, "/tidebench/label", back, airflow.token, **LEFT)[0] == 303
    assert KEY in read_page(airflow, "/tidebench/")


def test_the_matching_runs_are_a_csv(airflow: Airflow) -> None:
    rows = list(csv.DictReader(io.StringIO(read_page(airflow, "/tidebench/runs.csv?seed=7"))))
    assert [(row["experiment"], row["run"]) for row in rows] == [("given", SPEC.run_id)]
    assert float(rows[0]["strict_total_cost"]) == 77.0
    assert read_page(airflow, "/tidebench/runs.csv?cost_from=1000").strip() == ""
    assert get(airflow, "/tidebench/runs.csv")[0] == 401


def test_what_cannot_be_said_is_refused_in_words(airflow: Airflow) -> None:
    for fields, status in (
        ({"run": KEY, "add_tags": "<b>"}, 422), ({"run": KEY, "note": "x" * 2001}, 422),
        ({}, 404), ({"run": "given/none", "archived": "yes"}, 404), ({"run": "../x/y"}, 404),
    ):  # fmt: skip
        answer = send(airflow, "/tidebench/label", fields, airflow.token, **LEFT)
        assert answer[0] == status, fields
        assert "All experiments" in answer[2], "no dead end"


def test_all_of_an_experiment_is_one_file_to_take_home(airflow: Airflow, root: Path) -> None:
    path = "/tidebench/bundle/given.zip"
    assert f'href="{path}"' in read_page(airflow, "/tidebench/")
    connection = http.client.HTTPConnection(urlsplit(airflow.url).netloc, timeout=30)
    connection.request("GET", path, headers={"Authorization": f"Bearer {airflow.token}"})
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
    assert get(airflow, "/tidebench/bundle/none.zip", airflow.token)[0] == 404
    assert get(airflow, path)[0] == 401


def test_a_report_leads_back(airflow: Airflow) -> None:
    page = read_page(airflow, "/tidebench/files/given/published/report.html")
    assert 'href="/tidebench/?experiment=given"' in page
    assert page.index("All experiments") < page.index("<h1")
    assert "<script" not in page


def test_what_is_queued_is_listed_under_its_experiment(airflow: Airflow) -> None:
    airflow.trigger("experiment", params_from_run(SPEC))
    page = read_page(airflow, "/tidebench/")
    assert "given · threshold · stepwise · seed 7" in page
    assert 'class="queued"' in page
    assert "given · threshold" in read_page(airflow, "/tidebench/under-way?experiment=given")
    assert "given · threshold" not in read_page(airflow, "/tidebench/under-way?experiment=other")
    airflow.pause("experiment")
    assert 'class="paused"' in read_page(airflow, "/tidebench/under-way")


def test_a_failed_matrix_is_listed_with_its_reason_to_who_may_read_it(airflow: Airflow) -> None:
    asked = {"experiment": "many", "controllers": ["btu", EVIL], "patterns": ["stepwise"]}
    run_id = airflow.trigger("experiment_batch", asked)
    airflow.end_by_hand("experiment_batch", run_id)  # it has no teardown that a scheduler would run
    page = read_page(airflow, "/tidebench/")
    assert "many · btu, &lt;script&gt;" in page
    assert EVIL not in page
    assert 'class="failed"' in page
    assert "Ended by hand" in page
    assert "many · btu" in get(airflow, "/tidebench/under-way", airflow.token_of(VIEWER))[2]
    assert get(airflow, "/tidebench/under-way")[0] == 401
