"""The form of `advise` in a browser: a recording is all that it needs."""

from __future__ import annotations

import pytest

from tests.e2e.airflow_services import PASSWORD, USER, Airflow
from tests.e2e.browser import NEEDS_CHROMIUM, new_page

pytestmark = [pytest.mark.scheduler, NEEDS_CHROMIUM]
WIDE, NARROW = 1280, 480


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_recording_alone_can_be_sent(airflow: Airflow, width: int) -> None:
    with new_page(viewport={"width": width, "height": 900}) as page:
        page.goto(f"{airflow.url}/tidebench/")
        page.fill("input[name=username]", USER)
        page.fill("input[name=password]", PASSWORD)
        page.click("button[type=submit]")
        page.wait_for_url("**/tidebench/")
        page.goto(f"{airflow.url}/dags/advise")
        page.get_by_role("button", name="Trigger").first.click()
        send = page.get_by_role("button", name="Trigger").last
        page.wait_for_selector("[name=element_recording]")
        assert send.is_disabled()
        field = page.locator("[name=element_recording]")
        field.fill("/data/job.csv")
        field.blur()
        page.wait_for_timeout(1000)
        assert send.is_enabled()
        box = page.locator("[role=dialog][data-state=open]").bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
