"""The list as somebody uses it: it refreshes, takes tags by Enter, and runs matrices again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import pytest
import yaml

from include.experiment.params import matrix_from_params
from include.results.reports.publish import publish
from tests.builders_staged import RUN, let_pass, stage
from tests.e2e.airflow_services import VIEWER, Airflow, airflow_services
from tests.e2e.browser import NEEDS_CHROMIUM, new_page
from tests.e2e.test_page import get, seen
from tests.e2e.test_page_changes import LEFT, filled_in, send

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.airflow

MATRIX = {
    "experiment": "many", "controllers": ["btu", "threshold"], "patterns": ["stepwise"],
    "btus_min": ["10, 30"], "seeds": ["1-3"], "advisors": ["{name: tide, care: 2}"],
}  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two experiments of one run each."""
    root = tmp_path_factory.mktemp("data")
    for name in ("one", "other"):
        publish(let_pass(stage(root / name)), name, f"sqlite:///{root / 'results.db'}")
    return root


@pytest.fixture(scope="module")
def airflow(
    airflow_environment: dict[str, str], root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Airflow]:
    environment = airflow_environment | {"TIDEBENCH_DATA_ROOT": str(root)}
    logs = tmp_path_factory.mktemp("services")
    dags = ["experiment", "experiment_batch", "sweep"]
    with airflow_services(environment, logs, dags, ["api-server", "dag-processor"]) as services:
        yield services


def test_a_matrix_is_run_again_with_changes(airflow: Airflow) -> None:
    first = airflow.trigger("experiment_batch", MATRIX)
    form = f"/tidebench/again/experiment_batch?dag_run={quote(first)}"
    assert form in seen(airflow, "/tidebench/")
    fields = filled_in(seen(airflow, form))
    assert fields["controllers"] == "btu\nthreshold"
    assert fields["seeds"] == "1-3"
    before = airflow.runs("experiment_batch")
    address = "/tidebench/again/experiment_batch"
    wrong = fields | {"controllers": "btu\nthreshhold", "seeds": "3-1"}
    status, _, answer = send(airflow, address, wrong, airflow.token, **LEFT)
    assert status == 422
    for part in ("Did you mean", "threshold", "3-1 goes down"):
        assert part in answer[answer.index("Nothing was triggered") :][:2000]
    assert airflow.runs("experiment_batch") == before

    changed = fields | {"seeds": "1-2"}
    assert send(airflow, address, changed, airflow.token, **LEFT)[0] == 303
    ((run_id, _),) = airflow.runs("experiment_batch").items() - before.items()
    assert run_id.startswith("many.matrix.")
    conf = airflow.ask("GET", f"/api/v2/dags/experiment_batch/dagRuns/{run_id}")["conf"]
    expected = matrix_from_params(MATRIX | {"seeds": [1, 2]}, 100)
    assert matrix_from_params(conf, 100) == expected
    assert len(expected) == 8


def test_a_sweep_is_run_again_from_another_file(airflow: Airflow, tmp_path: Path) -> None:
    first = airflow.trigger("sweep", {"spec": "include/experiment/specs/demo.yaml"})
    form = f"/tidebench/again/sweep?dag_run={quote(first)}"
    assert form in seen(airflow, "/tidebench/")
    assert filled_in(seen(airflow, form)) == {"spec": "include/experiment/specs/demo.yaml"}
    before = airflow.runs("sweep")
    mine = tmp_path / "mine.yaml"
    raw = {"name": "mine", "controllers": "bttu", "patterns": "constant"}
    mine.write_text(yaml.safe_dump(raw))
    sent = ("/tidebench/again/sweep", {"spec": str(mine)}, airflow.token)
    status, _, answer = send(airflow, *sent, **LEFT)
    assert status == 422
    assert "Did you mean &#39;btu&#39;?" in answer
    mine.write_text(yaml.safe_dump(raw | {"controllers": "btu"}))
    assert send(airflow, *sent, **LEFT)[0] == 303
    ((run_id, _),) = airflow.runs("sweep").items() - before.items()
    assert run_id.startswith("mine.sweep.")
    conf = airflow.ask("GET", f"/api/v2/dags/sweep/dagRuns/{run_id}")["conf"]
    assert conf == {"spec": str(mine)}


def test_forms_are_for_who_may_and_of_what_there_is(airflow: Airflow) -> None:
    viewer = airflow.log_in(VIEWER)
    for dag_id in ("experiment", "experiment_batch", "sweep"):
        path = f"/tidebench/again/{dag_id}"
        assert get(airflow, path, airflow.token)[0] == 200
        assert get(airflow, path)[0] == 401
        assert get(airflow, path, viewer)[0] == 403
        assert send(airflow, path, {}, viewer, **LEFT)[0] == 403
        foreign = {"sec-fetch-site": "cross-site"}
        assert send(airflow, path, {}, airflow.token, **foreign)[0] == 403
        assert get(airflow, f"{path}?dag_run=none", airflow.token)[0] == 404
    for unknown in ("reap", "none"):
        assert get(airflow, f"/tidebench/again/{unknown}", airflow.token)[0] == 404


@pytest.fixture
def page(airflow: Airflow) -> Iterator[Page]:
    with new_page(viewport={"width": 1280, "height": 900}) as page:
        page.context.add_cookies([{"name": "_token", "value": airflow.token, "url": airflow.url}])
        yield page


@NEEDS_CHROMIUM
def test_the_list_shows_what_begins_while_somebody_looks(airflow: Airflow, page: Page) -> None:
    page.goto(f"{airflow.url}/tidebench/?experiment=late")
    page.evaluate("window.same = true")
    name = page.get_by_text("late · fixed · constant · seeds 4")
    assert name.count() == 0
    asked = {"experiment": "late", "controllers": ["fixed"], "patterns": ["constant"], "seeds": [4]}
    run_id = airflow.trigger("experiment_batch", asked)
    name.wait_for()
    assert page.locator("#under-way .queued").count() == 1
    airflow.end_by_hand("experiment_batch", run_id)
    page.locator("#under-way .failed").wait_for()
    assert page.evaluate("window.same"), "without a reload: whoever types or has chosen goes on"


@NEEDS_CHROMIUM
def test_enter_in_the_field_of_tags_gives_them(airflow: Airflow, page: Page) -> None:
    page.goto(f"{airflow.url}/tidebench/?experiment=one")
    page.get_by_label(f"choose one/{RUN}").check()
    page.get_by_label("tags for the chosen").fill("by-enter")
    page.get_by_label("tags for the chosen").press("Enter")
    page.get_by_role("link", name="by-enter", exact=True).wait_for()
    assert urlsplit(page.url).path == "/tidebench/"
    assert "1 run<" in seen(airflow, "/tidebench/?tag=by-enter")
