"""Up to twenty runs over each other, and the page as a reader uses it, in a browser."""

from __future__ import annotations

import json
import os
import random
import re
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from include.results.reports.database import Publication, sent_rows
from tests.builders_staged import tables_of
from tests.e2e.airflow_services import VIEWER, Airflow
from tests.e2e.browser import NEEDS_CHROMIUM
from tests.e2e.page_reader import EVIL, get, page_services, read_page
from tidebench.page.compare import TABLES

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.airflow

CONTROLLERS = {"btu": 40.0, "threshold": 60.0, "fixed": 90.0, EVIL: 60.2}
RUNS = [(name, seed) for name in CONTROLLERS for seed in range(1, 6)]
KEYS = [f"many/r{k}" for k in range(len(RUNS) + 1)]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four controllers with five seeds each, and one run more, in the database alone."""
    root = tmp_path_factory.mktemp("data")
    draw = random.Random(1)
    tables: dict[str, list[dict[str, object]]] = {}
    for k, (controller, seed) in enumerate([*RUNS, ("btu", 9)]):
        run_tables = tables_of(f"r{k}", controller=controller, seed=seed)
        run_tables["outcomes"][0] |= {
            "strict_total_cost": CONTROLLERS[controller] + draw.random(), "controller": controller,
        }  # fmt: skip
        for row in run_tables["timeline"]:
            row["hosts"] = 2 + k
            row["waiting_items"] *= 10_000 if k == len(RUNS) else 1
        for table in (*TABLES, "runs", "timeline"):
            tables.setdefault(table, []).extend(run_tables[table])
    publication = Publication(experiment="many", edition="1", checks=302)
    with sent_rows(f"sqlite:///{root / 'results.db'}", publication, tables):
        pass
    return root


airflow = page_services()


def address(kind: str, *keys: str, **more: str) -> str:
    return f"/tidebench/{kind}?{urlencode({'run': keys, **more}, doseq=True)}"


def test_twenty_runs_stand_side_by_side_and_no_more(airflow: Airflow) -> None:
    page = read_page(airflow, address("compare", *KEYS[:20]))
    assert "20 runs side by side" in page
    assert EVIL not in page
    assert "± " in page
    assert len(page) < 300_000
    for kind in ("compare", "curves"):
        status, _, content = get(airflow, address(kind, *KEYS), airflow.token)
        assert status == 404
        assert "At most 20 runs" in content
        assert get(airflow, address(kind), airflow.token)[0] == 404
        assert get(airflow, address(kind, "many/none"), airflow.token)[0] == 404


def test_better_and_worse_are_words(airflow: Airflow) -> None:
    page = read_page(airflow, address("compare", *KEYS[:15]))
    row = page[page.index(">Total<") :].partition("</tr>")[0]
    assert row.count('class="worse"') == 2
    assert row.count(" worse</small>") == 2
    turned = read_page(airflow, address("compare", *KEYS[5:10], *KEYS[:5]))
    row = turned[turned.index(">Total<") :].partition("</tr>")[0]
    assert " better</small>" in row
    close = read_page(airflow, address("compare", *KEYS[5:10], *KEYS[15:20]))
    row = close[close.index(">Total<") :].partition("</tr>")[0]
    assert " not clear</small>" in row
    single = read_page(airflow, address("compare", KEYS[0], KEYS[5]))
    assert not re.search(r'class="(better|worse|unclear)"', single)


def test_seeds_are_one_column_until_each_is_asked_for(airflow: Airflow) -> None:
    page = read_page(airflow, address("compare", *KEYS[:20]))
    assert page.count("<th>") - page.count("<tr><th>") >= 4
    assert "many, seeds" in page
    other = unescape(page[: page.index("Show every run")].rpartition('href="')[2].partition('"')[0])
    single = read_page(airflow, other.removeprefix(airflow.url))
    assert "many, seeds" not in single
    assert "Show means over seeds" in single


def test_curves_are_for_who_may_read_and_carry_no_markup(airflow: Airflow) -> None:
    path = address("curves", *KEYS[:20])
    assert get(airflow, path)[0] == 401
    assert get(airflow, path, airflow.token_of(VIEWER))[0] == 200
    status, headers, text = get(airflow, path, airflow.token)
    assert (status, headers["content-type"]) == (200, "application/json")
    assert headers["x-content-type-options"] == "nosniff"
    assert len(text) < 300_000
    curves = json.loads(text)
    (hosts,) = [chart for chart in curves["charts"] if chart["name"] == "hosts"]
    assert [series["mean"][-1] for series in hosts["series"]] == [4, 9, 14, 19]
    alone = json.loads(read_page(airflow, address("curves", *KEYS[:20], by="run")))
    (hosts,) = [chart for chart in alone["charts"] if chart["name"] == "hosts"]
    assert [series["mean"][-1] for series in hosts["series"]] == list(range(2, 22))


def test_the_library_is_served_from_here_and_only_what_is_listed(airflow: Airflow) -> None:
    page = read_page(airflow, address("compare", *KEYS[:2]))
    scripts = [part.partition('"')[0] for part in page.split('<script src="')[1:]]
    assert scripts
    assert all(script.startswith("/tidebench/assets/") for script in scripts)
    for script in scripts:
        assert get(airflow, script, airflow.token)[0] == 200
        assert get(airflow, script)[0] == 401
    for wrong in ("vendor/README.md", "vendor/uplot/LICENSE", "../app.py", "..%2fapp.py"):
        assert get(airflow, f"/tidebench/assets/{wrong}", airflow.token)[0] == 404, wrong


@NEEDS_CHROMIUM
def test_a_reader_hovers_zooms_labels_and_comes_back(
    airflow: Airflow, page: Page, tmp_path: Path
) -> None:
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "console", lambda message: wrong.append(message.text) if message.type == "error" else None
    )
    page.goto(airflow.url + address("compare", *KEYS[:20]))
    page.wait_for_selector("#curves .uplot")
    assert page.locator("#curves .uplot").count() == 4
    assert page.locator("#curves .legend tbody tr").count() == 4

    over = page.locator("#curves .u-over").nth(1)
    over.hover(position={"x": 200, "y": 50})
    page.wait_for_function("document.querySelector('[data-at]').textContent.includes('minute')")
    assert page.locator("[data-chart='1'][data-series='0']").inner_text().startswith("4 ±")

    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 100, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] + 60, steps=5)
    page.mouse.up()
    over.hover(position={"x": 3, "y": 50})
    begins = page.locator("[data-at]").inner_text()
    assert begins != "Run, at minute 0", "what is at the left edge is no longer the first minute"
    for _ in range(70):
        page.get_by_role("button", name="Zoom in").click()
    page.get_by_role("button", name="Show all").click()
    over.hover(position={"x": 3, "y": 50})
    assert page.locator("[data-at]").inner_text() == "Run, at minute 0"
    page.locator("#curves .legend input").first.uncheck()
    assert page.locator("#curves .uplot").count() == 4
    shots(page, tmp_path, "compare")

    page.get_by_role("link", name="Show every run by itself").click()
    page.wait_for_selector("#curves .uplot")
    assert page.locator("#curves .legend tbody tr").count() == 20
    page.locator("thead small a").first.click()
    page.fill("input[name=tags]", "Seen here")
    page.fill("textarea[name=note]", "read in a browser")
    page.get_by_role("button", name="Keep").click()
    page.wait_for_selector("input[name=tags][value='seen here']")
    page.get_by_role("link", name="All runs of many").click()
    page.get_by_role("link", name="seen", exact=True).click()
    page.get_by_text("1 run", exact=True).wait_for()
    shots(page, tmp_path, "list")
    page.locator("input[name=run]").check()
    page.get_by_role("button", name="Archive the chosen").click()
    page.get_by_text("No run matches").wait_for()
    page.get_by_role("link", name="Show all").click()
    page.get_by_text("20 runs", exact=True).wait_for()
    page.get_by_text("More filters").click()
    page.select_option("select[name=shown]", "archived")
    page.get_by_role("button", name="Filter").click()
    page.get_by_text("1 run", exact=True).wait_for()
    page.locator("input[name=run]").check()
    page.get_by_role("button", name="Take the chosen back").click()
    page.get_by_text("No run matches").wait_for()
    assert wrong == []


@NEEDS_CHROMIUM
def test_a_run_far_above_the_others_is_named_over_its_chart(airflow: Airflow, page: Page) -> None:
    """Ten thousand times as many items wait in the last run, which leaves only that chart."""
    page.goto(airflow.url + address("compare", KEYS[5], KEYS[10], KEYS[-1]))
    page.wait_for_selector("#curves .uplot")
    titles = page.locator("#curves h3").all_inner_texts()
    (leaving,) = [title for title in titles if "leaves the chart" in title]
    assert leaving == "Waiting items; leaves the chart: btu · seed 9"


@NEEDS_CHROMIUM
def test_bands_and_marks_of_a_chart_are_not_cut(airflow: Airflow, page: Page) -> None:
    """Of five runs of 17 to 21 hosts the interval of the mean ends at 20.96. 400,000 items wait."""
    page.add_init_script("""
        let library;
        window.drawn = [];
        const keep = { construct: (of, given) => (drawn.push(new of(...given)), drawn.at(-1)) };
        Object.defineProperty(window, "uPlot", {
          get: () => library, set: (made) => { library = new Proxy(made, keep); },
        });
    """)
    page.goto(airflow.url + address("compare", *KEYS[:20]))
    page.locator("#curves .uplot").nth(3).wait_for()
    assert page.evaluate("drawn[1].scales.y.max") > 20.96
    page.goto(airflow.url + address("compare", KEYS[-1]))
    page.locator("#curves .uplot").nth(3).wait_for()
    page.wait_for_timeout(100)  # it is drawn a moment later
    assert page.evaluate("drawn[3].axes[1]._values") == ["0", "200K", "400K"]


def shots(page: Page, tmp_path: Path, name: str) -> None:
    """The page at two widths in both colour schemes: nothing of it is wider than the window."""
    folder = Path(os.environ.get("TIDEBENCH_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    before = page.viewport_size
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for width in (480, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_timeout(300)
            page.screenshot(path=folder / f"{name}-{width}-{scheme}.png")
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{name} is {wide} wide"
    page.set_viewport_size(before)
