"""The list as somebody uses it: it refreshes, and takes tags by Enter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

import pytest

from include.results.reports.publish import publish
from tests.builders_staged import RUN, let_pass, stage
from tests.e2e.airflow_services import Airflow
from tests.e2e.browser import NEEDS_CHROMIUM, new_page
from tests.e2e.page_reader import page_services, read_page

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.airflow


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two experiments of one run each."""
    root = tmp_path_factory.mktemp("data")
    for name in ("one", "other"):
        publish(let_pass(stage(root / name)), f"sqlite:///{root / 'results.db'}")
    return root


airflow = page_services("experiment_batch")


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
def test_a_run_that_is_published_comes_into_the_list(
    airflow: Airflow, page: Page, root: Path
) -> None:
    page.goto(f"{airflow.url}/tidebench/")
    page.get_by_label(f"choose one/{RUN}").check()
    page.evaluate("document.getElementById('under-way').innerHTML += '<i data-dag-run=x></i>'")
    publish(let_pass(stage(root / "third")), f"sqlite:///{root / 'results.db'}")
    page.get_by_label(f"choose third/{RUN}").wait_for()
    assert page.get_by_label(f"choose one/{RUN}").is_checked(), "what was chosen stays chosen"


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
    for path in ("", "files/one/published/report.html"):
        page.goto(f"{airflow.url}/tidebench/{path}")
        assert page.evaluate(paper) == ("rgb(20, 24, 27)" if dark else "rgb(251, 251, 249)"), path


@NEEDS_CHROMIUM
def test_enter_in_the_field_of_tags_gives_them(airflow: Airflow, page: Page) -> None:
    page.goto(f"{airflow.url}/tidebench/?experiment=one")
    page.get_by_label(f"choose one/{RUN}").check()
    page.get_by_label("tags for the chosen").fill("by-enter")
    page.get_by_label("tags for the chosen").press("Enter")
    page.get_by_role("link", name="by-enter", exact=True).wait_for()
    assert urlsplit(page.url).path == "/tidebench/"
    assert "1 run<" in read_page(airflow, "/tidebench/?tag=by-enter")
