"""The UI as people use it, in a browser: log in, trigger by form, watch, compare, open, log out.

Chromium is the one of the system; the test is skipped where there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from include.experiment.params import run_from_params
from include.results.reports.publish import publish
from include.results.tables.staged import read_table
from tests.builders_staged import let_pass, stage
from tests.e2e.airflow_services import PASSWORD, USER, Airflow
from tests.e2e.browser import NEEDS_CHROMIUM, new_page

if TYPE_CHECKING:
    from playwright.sync_api import Frame, Page

pytestmark = [pytest.mark.scheduler, NEEDS_CHROMIUM]

DEADLINE_S = 600.0
ATTEMPTS = 4
FORM = {"experiment": "seen", "duration_min": 4, "btu_min": 2, "seed": 5}
UNDER_WAY = ("running", "success")  # from then on a window has its name


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with new_page(viewport={"width": 1440, "height": 900}) as opened:
        yield opened


@pytest.fixture(scope="module")
def other(root: Path) -> None:
    """A second run, made up and published, to compare with."""
    folder = let_pass(stage(root / "seen-too"))
    publish(folder, f"sqlite:///{root / 'results.db'}")


def visit(page: Page, address: str, selector: str) -> None:
    """Go there until the selector is seen: Chromium gives up loading whenever a network
    interface of the machine comes or goes."""
    from playwright.sync_api import Error

    for attempt in range(ATTEMPTS):
        try:
            page.goto(address)
            page.wait_for_selector(selector)
            return
        except Error:
            if attempt == ATTEMPTS - 1:
                raise


def experiments(page: Page, airflow: Airflow) -> Frame:
    """The frame of the page "Experiments" inside of Airflow's."""
    visit(page, airflow.url, "a:has-text('Experiments')")
    page.get_by_role("link", name="Experiments").first.click()
    page.wait_for_selector("iframe[title=Experiments]")
    handle = page.query_selector("iframe[title=Experiments]")
    assert handle is not None
    frame = handle.content_frame()
    assert frame is not None
    frame.wait_for_selector("h1")
    return frame


def fill(page: Page, field: str, text: str) -> None:
    typed = page.locator(f"[name=element_{field}]")
    typed.fill(text)
    typed.blur()


def test_who_is_not_logged_in_is_sent_to_the_log_in(airflow: Airflow, page: Page) -> None:
    visit(page, f"{airflow.url}/tidebench/", "input[name=username]")
    assert "/auth/login" in page.url
    page.fill("input[name=username]", USER)
    page.fill("input[name=password]", PASSWORD)
    page.click("button[type=submit]")
    page.wait_for_url("**/tidebench/")
    assert page.locator("h1").inner_text() == "Experiments"


def test_a_run_is_triggered_by_its_form_and_its_windows_are_watched(
    airflow: Airflow, page: Page, root: Path
) -> None:
    before = set(airflow.runs("experiment"))
    visit(page, f"{airflow.url}/dags/experiment", "button:has-text('Trigger')")
    page.get_by_role("button", name="Trigger").first.click()
    fill(page, "experiment", str(FORM["experiment"]))
    fill(page, "btu_min", "2")
    fill(page, "duration_min", "4")
    fill(page, "seed", "5")
    page.locator("#element_controller input[role=combobox]").fill("threshold-peerj")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Fine tuning").click()
    fill(page, "controller_options", "scale_up_above_items = 70\n")
    page.get_by_role("button", name="Trigger").last.click()
    page.wait_for_selector("[role=dialog]", state="hidden")

    while not (fresh := set(airflow.runs("experiment")) - before):
        page.wait_for_timeout(500)
    (run,) = fresh
    airflow.until("experiment", run, lambda states: states.get(("control_window", 1)) in UNDER_WAY)
    watch_in_the_list(airflow, page, run)
    windows = f"{airflow.url}/dags/experiment/runs/{run}/tasks/control_window/mapped"
    visit(page, windows, "a:has-text('window 001, minute 2 to 4')")
    assert airflow.finish("experiment", run, DEADLINE_S) == "success", airflow.tail()
    asked = FORM | {
        "controller": "threshold-peerj",
        "controller_options": {"scale_up_above_items": 70},
    }
    rows = read_table(root / "seen" / "published" / "runs.parquet")
    assert [row["run"] for row in rows] == [run_from_params(asked).run_id]

    open_report(airflow, page, run)


def watch_in_the_list(airflow: Airflow, page: Page, run: str) -> None:
    """Airflow has the run under its name; one that failed is in the list and says why."""
    name = "seen · threshold-peerj · random_walk_1 · seed 5"
    about = airflow.ask("GET", f"/api/v2/dags/experiment/dagRuns/{quote(run)}")
    assert about["note"] == name
    failed = airflow.trigger("experiment", {"experiment": "unseen", "controller": "nobodys"})
    assert airflow.finish("experiment", failed, DEADLINE_S) == "failed"
    frame = experiments(page, airflow)
    refused = frame.locator("#under-way tr", has_text="unseen · nobodys")
    assert "unknown controller 'nobodys'" in refused.inner_text()


def open_report(airflow: Airflow, page: Page, run: str) -> None:
    """From the task that published to what it has published."""
    task = f"{airflow.url}/dags/experiment/runs/{quote(run)}/tasks/publish_report/details"
    visit(page, task, "a[href$='/tidebench/files/seen/published/report.html']")
    report = page.locator("a[href$='/tidebench/files/seen/published/report.html']")
    report.evaluate("link => link.removeAttribute('target')")  # in this tab
    report.click()
    page.wait_for_url("**/published/report.html")
    assert page.locator("h1").inner_text() == "seen"


def test_two_runs_are_found_compared_and_opened(airflow: Airflow, page: Page, other: None) -> None:
    frame = experiments(page, airflow)
    frame.fill("input[name=text]", "seen")
    frame.get_by_role("button", name="Filter").click()
    frame.get_by_text("2 runs", exact=True).wait_for()
    for box in frame.locator("input[name=run]").all():
        box.check()
    frame.get_by_role("button", name="Compare the chosen").first.click()
    frame.get_by_text("2 runs side by side").wait_for()
    frame.locator("#curves .uplot").first.wait_for()

    frame.locator("a[href$='/checks/seen']").click()
    frame.get_by_text(re.compile("All [0-9]+ checks of the published tables passed")).wait_for()
    frame.get_by_role("link", name="data docs").first.click()
    frame.get_by_text("Expectation Validation Result").first.wait_for()
    assert "/plugin/experiments/tidebench/files/seen" in page.url  # can be shared as it is


def test_a_link_to_a_dag_run_leads_out_of_the_frame(airflow: Airflow, page: Page) -> None:
    frame = experiments(page, airflow)
    frame.get_by_role("link", name="DAG run").first.click()
    page.wait_for_url("**/dags/experiment/runs/**")
    assert "/plugin/" not in page.url
