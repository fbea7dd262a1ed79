"""The page and the console summary: what they show, and what they never do."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from include.model.errors import StoreError
from include.results.reports.comparison import (
    PublishedFigure,
    billed_by,
    compared,
    cost_unit,
)
from include.results.reports.figures.bill import PARTS
from include.results.reports.figures.bill import draw as draw_bill
from include.results.reports.page import report_files
from include.results.reports.publish import publish
from include.results.reports.summary import summary
from include.results.tables.catalogue import PUBLISHED, is_by_run, schema_of
from include.results.tables.staged import Row, read_staged
from include.studies import printed
from tests.builders_staged import (
    ORIGIN,
    RUN,
    VERDICT,
    change,
    let_pass,
    parts_of,
    restage,
    stage,
)
from tests.kernel.worlds import printed as printed_by


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return _page(stage(tmp_path_factory.mktemp("page")))


def _page(folder: Path) -> str:
    tables = {table: read_staged(folder, table) for table in PUBLISHED}
    return dict(report_files(tables, VERDICT, ORIGIN, printed))["report.html"]


class _Elements(HTMLParser):
    """Attributes of every element of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, {name: value or "" for name, value in attrs}))


def test_only_the_papers_own_case_is_held_against_the_paper(tmp_path: Path) -> None:
    folder = stage(tmp_path / "demo")
    change(folder, "runs", topology="manufacturing_live", conditions="testbed=docker")
    assert "<small>paper" not in _page(folder)
    let_pass(folder)
    publish(folder, f"sqlite:///{tmp_path / 'results.db'}")
    assert "Published: PeerJ" not in summary(folder, printed)


def test_regret_is_shown_once_there_is_a_cover_and_until_then_how_to_get_it(
    page: str, tmp_path: Path
) -> None:
    asked = "<code>tidebench bound FOLDER</code>"
    assert asked in page
    assert ">cover cost</th>" not in page
    folder = let_pass(stage(tmp_path / "demo"))
    publish(folder, f"sqlite:///{tmp_path / 'results.db'}")
    assert "Regret" not in summary(folder)
    change(folder, "cost", cover_cost=50.0, regret=1.4, total_regret=1.94)
    covered = _page(folder)
    assert asked not in covered
    assert '<td class="n">50.00</td><td class="n">1.40</td><td class="n">1.94</td></tr>' in covered
    assert "run that lets items wait can be below 1" in covered
    assert covered.count(">total</th>") >= 1
    assert ">near real-time total</th>" in covered
    assert ">end-to-end total</th>" in covered
    assert ">age p95 s</th>" in covered
    publish(let_pass(folder), f"sqlite:///{tmp_path / 'results.db'}")
    lines = [line.split() for line in summary(folder).splitlines() if "Regret:" in line]
    assert lines == [
        ["Regret:", "hosts", "/", "cover,", "BTU", "10", "min", "1.40"],
        ["Regret:", "near", "real-time", "total", "/", "cover,", "BTU", "10", "min", "1.94"],
    ]


def test_the_parts_of_the_cost_have_a_section_once_they_are_known(
    page: str, tmp_path: Path
) -> None:
    assert "#bill" not in page
    folder = stage(tmp_path)
    run, other = read_staged(folder, "runs")[0], "btu-random_walk_1-btu10-s2"
    restage(folder, "runs", [run, run | {"run": other}])
    restage(folder, "cost_parts_means", parts_of("cost_parts_means", run))
    shown = _page(folder)
    section = shown[shown.index('<section id="bill">') : shown.index('<section id="time">')]
    assert '<a href="#bill">' in shown
    assert section.count("<svg") == 1
    assert ">70.0</text>" in section
    assert all(f">{label}</text>" in section for label, _ in PARTS.values())
    assert all(f"<dt>{label}</dt><dd>" in section for label, _ in PARTS.values())
    assert "There are rows once <code>tidebench bound FOLDER</code>" in " ".join(section.split())
    assert '<td class="n">25.00</td><td class="n">10.00</td><td class="n">5.00</td>' in section
    assert f"1 of 2 runs have no parts, for one of the reasons above: {other}." in section
    restage(folder, "cost_parts", [
        row | {"run": name} for name in (run["run"], other)
        for row in parts_of("cost_parts", run)
    ])  # fmt: skip
    assert "runs have no parts" not in _page(folder)


@pytest.mark.parametrize("cases", [1, 2, 24])
@pytest.mark.parametrize("bars", [1, 5])
def test_a_bill_of_any_size_has_room(cases: int, bars: int) -> None:
    """Where there is none, matplotlib warns, and a warning is an error here."""
    (row,) = parts_of("cost_parts_means", {"conditions": "", "controller": "c" * 20})
    rows = [
        row
        | {"conditions": "hosts=3" * (case % 2), "btu_min": float(case), "variant": "a_b=1, " * k}
        for case in range(cases)
        for k in range(bars)
    ]
    assert draw_bill(rows).count(">70.0</text>") == cases * bars
    assert draw_bill([row | {"btu_min": float(case)} for case in range(25)]) == ""


def test_sections_come_in_their_order(page: str) -> None:
    ids = [attributes.get("id") for tag, attributes in _Elements(page).seen if tag == "section"]
    assert ids == ["run", "results", "time", "operators", "scaling", "adapt", "advice", "checks",
                   "downloads", "again"]  # fmt: skip


def test_figures_stand_beside_the_published_ones(page: str) -> None:
    assert '<b>70.00</b><small>paper 69.33 <span class="delta">+0.67</span>' in page
    assert page.count("<svg") == 4
    assert page.index("Strict near real-time compliance") < page.index("SLA compliance")


COSTS = ("resource_cost", "real_time_total_cost", "near_real_time_total_cost", "relaxed_total_cost")


def test_books_with_one_btu_are_told_apart_and_a_cloud_has_nothing_printed() -> None:
    rows = [
        {"run": "r", "btu_min": 60.0, "price_book": name, "price_book_btu_min": btu_min,
         "price_source": source, **dict.fromkeys(COSTS, 1.0)}
        for name, btu_min, source in
        (("btu10", 10.0, ""), ("btu60", 60.0, ""), ("mine", 60.0, "box of me, EUR"))
    ]  # fmt: skip
    assert billed_by(rows) == {
        "btu10": "BTU 10 min", "btu60": "BTU 60 min, btu60", "mine": "BTU 60 min, mine",
    }  # fmt: skip
    assert billed_by(rows[:2]) == {"btu10": "BTU 10 min", "btu60": "BTU 60 min"}
    assert billed_by(rows[2:]) == {"mine": "BTU 60 min, mine"}
    tables = {"runs": [{"run": "r"}], "compliance": [], "cost": rows}
    _, comparisons = compared(tables, lambda *_: PublishedFigure(2.0, "cost", "Table 5"))
    assert len({comparison.label for comparison in comparisons}) == len(comparisons) == 12
    assert {comparison.published for comparison in comparisons if "mine" in comparison.label} == {
        None
    }
    assert {comparison.published for comparison in comparisons if "btu60" in comparison.label} == {
        2.0
    }
    assert cost_unit(rows[:2]) == "in units of the paper"
    assert "currency of the book" in cost_unit(rows)


def test_more_memory_than_a_host_has_is_explained_where_it_stands(tmp_path: Path) -> None:
    folder = stage(tmp_path)
    assert "memory reserved (highest 95 %)." in _page(folder)
    assert "keeps its memory until it has drained" not in _page(folder)
    change(folder, "utilisation", host_memory_max_percent=126.0)
    (caption,) = re.findall(r"memory reserved \(highest 126 %\)\.(.*?)</figcaption>", _page(folder))
    assert "keeps its memory until it has drained" in caption


def test_every_link_of_the_page_leads_to_a_file_that_is_there(tmp_path: Path) -> None:
    folder = let_pass(stage(tmp_path / "demo"))
    (folder / "data_docs" / "index.html").write_text("the gate writes it")
    files = publish(folder, f"sqlite:///{tmp_path / 'results.db'}")
    page = (folder / "published" / "report.html").read_text(encoding="utf-8")
    links = {attributes["href"] for tag, attributes in _Elements(page).seen if tag == "a"}
    ids = {attributes["id"] for _, attributes in _Elements(page).seen if "id" in attributes}
    assert {link[1:] for link in links if link.startswith("#")} <= ids
    beside = {link for link in links if not link.startswith("#")}
    for link in beside:
        assert (folder / "published" / link).is_file(), link
    assert {file.name for file in files} - {"report.html"} == beside - {"../data_docs/index.html"}


def test_the_page_asks_nobody_for_anything(page: str) -> None:
    for tag, attributes in _Elements(page).seen:
        assert tag not in ("script", "link", "img", "iframe", "object"), tag
        for name in ("src", "href", "xlink:href", "srcset", "data"):
            assert not re.match(r"(https?:)?//", attributes.get(name, "")), attributes
    assert not re.search(r"url\((?!#)|@import", page)


def test_who_advised_has_a_section_where_somebody_did(page: str, tmp_path: Path) -> None:
    assert '<a href="#advice">Advice</a>' in page
    section = page[page.index('<section id="advice">') : page.index('<section id="checks">')]
    assert "Operator instances: keda" in section
    row = re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", section.partition('class="total"')[2])[:9]
    assert row == ["keda", "overall", "2", "0", "9.00", "11.50", "50.0", "2.00", "2.50"]
    folder = stage(tmp_path)
    for table in ("advisors", "advisors_timeline"):
        restage(folder, table, [])
    alone = _page(folder)
    assert "#advice" not in alone
    assert alone.count("<svg") == 3


def test_an_engine_that_stopped_has_a_section(page: str, tmp_path: Path) -> None:
    assert "#rescales" not in page
    stop = {"run": RUN, "asked_s": 30.0, "down_s": 31.0, "up_s": 33.0, "cause": "controller",
            "gap_s": 2.5, "reprocessed_items": 7, "checkpoint_s": 0.2, "checkpoint_bytes": 2048,
            "instances_before": 9, "instances_after": 11}  # fmt: skip
    folder = stage(tmp_path)
    restage(folder, "rescales", [stop, stop | {"down_s": 60.0, "up_s": 61.0, "gap_s": None}])
    shown = _page(folder)
    assert '<a href="#rescales">Rescales</a>' in shown
    section = shown[shown.index('<section id="rescales">') : shown.index('<section id="advice">')]
    assert section.count("<svg") == 2
    assert "btu (1)" in section  # one gap is known
    assert '<th scope=row class="n">31.00</th>' in section
    assert shown.count("<svg") == page.count("<svg") + 2


def test_ids_are_unique_also_with_several_runs(tmp_path: Path) -> None:
    first, second = stage(tmp_path / "a", "run-a"), stage(tmp_path / "b", "run-b")
    tables = {t: read_staged(first, t) + read_staged(second, t) for t in PUBLISHED}
    page = dict(report_files(tables, VERDICT, ORIGIN))["report.html"]
    ids = [attributes["id"] for _, attributes in _Elements(page).seen if "id" in attributes]
    assert len(ids) == len(set(ids)) > 20
    assert page.count("<svg") == 8
    assert "2 runs of 2 minutes" in page


def test_of_several_cases_the_page_begins_with_the_best(tmp_path: Path) -> None:
    tables = _of_many(tmp_path, 1)
    assert 'class="glance"' not in dict(report_files(tables, VERDICT, ORIGIN))["report.html"]
    (first,) = [row for row in tables["tournament"] if row["metric"] == "strict_total_cost"]
    tables["tournament"] = [first, first | {"controller": "tide", "mean": first["mean"] - 1}]
    page = dict(report_files(tables, VERDICT, ORIGIN))["report.html"]
    table = page[page.index('class="glance"') :].partition("</table>")[0]
    assert re.findall(r'<th scope="row">(\w+)', table) == ["tide", first["controller"]]


def test_conditions_that_differ_are_named(tmp_path: Path) -> None:
    tables = _of_many(tmp_path, 2)
    for row, conditions in zip(tables["runs"], ("", "calibration=mine"), strict=True):
        row["conditions"] = conditions
    first = dict(report_files(tables, VERDICT, ORIGIN))["report.html"]
    assert "under 2 conditions: the usual ones; calibration=mine." in first


def test_what_was_run_is_a_sentence_of_one_and_of_several(tmp_path: Path) -> None:
    tables = _of_many(tmp_path, 2)
    one = dict(report_files(tables, VERDICT, ORIGIN))["report.html"]
    assert re.search(r"controller btu provisioned the \w+ topology under arrival pattern ", one)
    for row, controller, topology in zip(tables["runs"], ("btu", "hpa"), "tu", strict=True):
        row |= {"controller": controller, "topology": topology}
    two = dict(report_files(tables, VERDICT, ORIGIN))["report.html"]
    assert "controllers btu and hpa provisioned the t and u topology under arrival" in two


def test_a_summary_is_a_whole_sentence() -> None:
    summaries = {table: schema_of(table).summary for table in PUBLISHED}
    assert "Figs. 8-11" in summaries["timeline"]
    assert {table for table, text in summaries.items() if not text.endswith(".")} == set()
    assert summaries["cost"] == "Cost of a run under each of its price books."


def _of_many(folder: Path, runs: int) -> dict[str, list[Row]]:
    """The tables of a run, repeated for many."""
    tables = {table: read_staged(stage(folder), table) for table in PUBLISHED}
    names = [f"run-{k:02d}" for k in range(runs)]
    for table in filter(is_by_run, PUBLISHED):
        tables[table] = [row | {"run": name} for name in names for row in tables[table]]
    return tables


@pytest.mark.parametrize(("runs", "folded", "drawn"), [(20, 0, 20), (21, 7, 3)])
def test_of_many_runs_tables_are_folded_and_figures_elsewhere(
    tmp_path: Path, runs: int, folded: int, drawn: int
) -> None:
    files = dict(report_files(_of_many(tmp_path, runs), VERDICT, ORIGIN))
    page = files.pop("report.html")
    assert page.count(f"<summary>all {runs} runs</summary>") == folded
    assert page.count("<svg") == 4 * drawn
    assert page.count("<script>") == (1 if folded else 0)
    assert f"run-{runs - 1}" in page
    of_runs = [name for name in files if name.startswith("runs/")]
    assert len(of_runs) == (runs if folded else 0)


def test_every_one_of_many_runs_has_a_page_of_its_own(tmp_path: Path) -> None:
    folder = stage(tmp_path / "demo")
    for table, rows in _of_many(tmp_path / "made", 21).items():
        restage(folder, table, rows)
    files = publish(let_pass(folder), f"sqlite:///{tmp_path / 'results.db'}")
    published = folder / "published"
    page = (published / "report.html").read_text(encoding="utf-8")
    links = [attributes["href"] for tag, attributes in _Elements(page).seen if tag == "a"]
    of_runs = [published / link for link in links if link.startswith("runs/")]
    assert len(of_runs) == len(set(of_runs)) == 21
    assert set(of_runs) <= set(files)
    manifest = json.loads((published / "manifest.json").read_text())
    for path in of_runs:
        text = path.read_text(encoding="utf-8")
        assert f"<h1>{path.stem}</h1>" in text
        assert f"of run {path.stem}</title>" in text
        assert text.count("<svg") == 4
        assert "memory reserved (highest 95 %)." in text
        assert ">45.0</td>" in text, "time to adapt"
        assert "<script" not in text
        assert f"runs/{path.name}" in manifest["sha256"]
        for tag, attributes in _Elements(text).seen:
            if tag == "a":
                assert (path.parent / attributes["href"].partition("#")[0]).is_file()


def test_a_variant_stands_beside_its_controller(tmp_path: Path) -> None:
    folder = stage(tmp_path)
    change(folder, "runs", variant="scale_up_above_items=500")
    page = _page(folder)
    assert "controller btu (scale_up_above_items=500) provisioned" in page
    assert "<dt>variant</dt><dd>scale_up_above_items=500</dd>" in page
    assert re.search(r"<dt>duration min</dt><dd>\d+</dd>", page), "2, not 2.0"
    assert "<dt>conditions</dt>" not in page


def test_names_are_escaped(tmp_path: Path) -> None:
    page = _page(stage(tmp_path, "<script>alert(1)</script>&"))
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&amp;" in page


@pytest.mark.parametrize(
    ("controller", "pattern", "compliance", "cost"),
    [
        ("btu", "random_walk_1", [49.0, 85.0, 89.0], [69.33, None]),
        ("btu-runtime", "stepwise", [49.0, 85.0, 89.0], [72.33, None]),
        ("threshold", "random_walk_1", [39.0, 66.0, 71.0], [61.33, 86.0]),
        ("threshold-peerj", "stepwise", [40.0, 67.0, 71.0], [58.0, 79.0]),
        ("fixed", "stepwise", [None, None, None], [None, None]),
        ("btu", "constant", [None, None, None], [None, None]),
    ],
)
def test_each_case_is_held_against_its_own_published_figure(
    tmp_path: Path,
    controller: str,
    pattern: str,
    compliance: list[float | None],
    cost: list[float | None],
) -> None:
    folder = stage(tmp_path, controller=controller, pattern=pattern)
    tables = {table: read_staged(folder, table) for table in ("runs", "compliance", "cost")}
    shares, rows = compared(tables, printed)
    assert [comparison.published for comparison in shares] == compliance
    costs = [comparison for comparison in rows if "Resource" in comparison.label]
    assert [comparison.published for comparison in costs] == cost


def test_the_summary_shows_what_was_controlled_or_published(tmp_path: Path) -> None:
    folder = let_pass(stage(tmp_path / "demo"))
    publish(folder, f"sqlite:///{tmp_path / 'results.db'}")
    told = summary(folder, printed)
    assert told.index("Strict: late, or overdue") < told.index("Compliance, percent")
    assert max(map(len, summary(folder).partition("Page: ")[0].splitlines())) <= 100
    lines = [line.split() for line in told.splitlines()]
    assert lines[0][0] == f"{RUN}:"
    assert ["Real-time", "49.0", "49.0", "+0.0"] in lines
    assert ["Resource,", "BTU", "10", "min", "70.00", "69.33", "+0.67"] in lines
    assert not any(line[:3] == ["Resource,", "BTU", "30"] for line in lines)
    assert ["Page:", str(folder / "published" / "report.html")] in lines
    assert ["Data", "Docs:", str(folder / "data_docs" / "index.html")] in lines


def test_a_summary_of_nothing_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is missing"):
        summary(tmp_path)


def test_the_summary_imports_nothing_heavy() -> None:
    code = (
        "import sys, include.results.reports.summary, include.results.reports.publish, "
        "include.results.tables.build, "
        "include.results.quality.gates, include.results.quality.expectations\n"
        "heavy = {'pyspark', 'great_expectations', 'pandas', 'matplotlib', 'numpy', 'pyarrow'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert printed_by(code).strip() == "[]"


def test_every_text_of_a_figure_takes_the_colour_of_the_page(page: str) -> None:
    texts = [attributes for tag, attributes in _Elements(page).seen if tag == "text"]
    inside_bars = [attributes for attributes in texts if "fill: #ffffff" in attributes["style"]]
    assert len(texts) > 50
    assert len(inside_bars) == 3
    assert all("currentcolor" in g["style"].lower() for g in texts if g not in inside_bars)
