"""The section Tournament: when it is there, what it marks, and the figure made from its table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from include.controllers.base import Group
from include.results.reports.figures import tournament as figure
from include.results.reports.page import report_files
from include.results.reports.summary import summary
from include.results.reports.tournament import (
    END_TO_END_SHARE,
    END_TO_END_TOTAL,
    GROUPS,
    METRICS,
    is_tournament,
    matches,
)
from include.results.tables.catalogue import PUBLISHED, schema_of
from include.results.tables.staged import read_staged
from tests.builders_staged import ORIGIN, VERDICT, as_published, restage, stage


def row(controller: str, metric: str, mean: float, **changes: Any) -> dict[str, Any]:
    values = {
        "topology": "t", "pattern": "p", "conditions": "", "controller": controller, "variant": "",
        "btu_min": 10.0, "metric": metric, "unit": "any", "mean": mean, "sigma": 1.0, "runs": 4,
    }  # fmt: skip
    return values | changes


COMPLIANCE = "strict_relaxed_compliance_percent"
ROWS = [
    row("btu", "resource_cost", 10.0),
    row("btu", COMPLIANCE, 90.0),
    row("henge", "resource_cost", 12.0),
    row("henge", COMPLIANCE, 95.0),
    row("henge", "resource_cost", 5.0, topology="u", sigma=None, runs=1),
    row("henge", COMPLIANCE, 80.0, topology="u", sigma=None, runs=1),
    row("henge", "utility_percent", 70.0, topology="u", sigma=None, runs=1),
]


@pytest.mark.parametrize(
    ("topologies", "controllers", "expected"),
    [("t", "abcd", False), ("t", "abcde", True), ("tu", "a", True), ("t", "a", False)],
)
def test_several_topologies_or_more_than_four_controllers_are_a_tournament(
    topologies: str, controllers: str, expected: bool
) -> None:
    runs = [{"topology": t, "controller": c} for t in topologies for c in controllers]
    assert is_tournament(runs) is expected


def test_the_best_of_each_column_is_the_cheapest_or_the_highest() -> None:
    first, second = matches(ROWS)
    best = {
        (standing.name, metric)
        for standing in first.standings
        for metric, cell in standing.cells.items()
        if cell.best
    }
    assert best == {("btu", "resource_cost"), ("henge", COMPLIANCE)}
    assert second.workload == ("u", "p", "")


def test_equals_are_best_together_as_they_are_shown() -> None:
    rows = [row("a", "resource_cost", 10.001), row("b", "resource_cost", 10.004)]
    (match,) = matches(rows)
    assert [standing.cells["resource_cost"].best for standing in match.standings] == [True, True]


def test_the_best_is_judged_by_what_nobody_improves_by_starving() -> None:
    starving = [row("a", "relaxed_compliance_percent", 99.0), row("a", COMPLIANCE, 20.0)]
    serving = [row("b", "relaxed_compliance_percent", 90.0), row("b", COMPLIANCE, 90.0)]
    (match,) = matches([*starving, *serving])
    assert match.quality == COMPLIANCE
    assert [standing.cells[COMPLIANCE].best for standing in match.standings] == [False, True]


def terminal(folder: Path, rows: list[dict[str, Any]], *, end_to_end: bool = False) -> list[str]:
    """What is printed of two runs whose tournament has these rows."""
    stage(folder)
    restage(folder, "tournament", rows)
    first = read_staged(folder, "runs")[0]
    restage(folder, "runs", [first, {**first, "run": "second", "controller": "other"}])
    manifest = as_published(folder) / "published" / "manifest.json"
    manifest.write_text('{"not_measured": ["a", "b"]}')
    return summary(folder, end_to_end=end_to_end).splitlines()


def test_the_terminal_ranks_the_controllers_of_several_runs(tmp_path: Path) -> None:
    total, utility = "strict_total_cost", "utility_percent"
    cheap, dear = row("henge", total, 10.0), row("btu", total, 12.0)
    alone = {"sigma": None, "runs": 1}
    lines = terminal(
        tmp_path,
        [
            cheap, dear, row("btu", COMPLIANCE, 99.0), row("henge", COMPLIANCE, 40.0),
            *({**row, "topology": "u", **alone} for row in (cheap, dear)),
            row("btu", utility, 70.0, topology="u", **alone),
            row("henge", utility, 60.0, topology="u", **alone),
        ],
    )  # fmt: skip
    assert [" ".join(line.split()) for line in lines[:9]] == [
        "t · p",
        "by total seeds strict rel. % total",
        "1 henge 4 40.0 ± 1.6 10.00 ± 1.59",
        "2 btu 4 99.0 ± 1.6 12.00 ± 1.59",
        "",
        "u · p",
        "by utility % seeds total utility %",
        "1 btu 1 12.00 - 70.0 -",
        "2 henge 1 10.00 - 60.0 -",
    ]
    assert lines[-2].split() == ["Page:", str(tmp_path / "published" / "report.html")]
    assert lines[-3].startswith("2 of the runs that were asked for last are not measured, so means")


def test_who_lets_items_wait_at_the_source_is_ranked_behind_if_asked(tmp_path: Path) -> None:
    columns = ("resource_cost", "strict_total_cost", END_TO_END_TOTAL, END_TO_END_SHARE)
    means = {"waits": (5.0, 5.0, 20.0, 10.0), "serves": (8.0, 9.0, 9.5, 80.0)}
    rows = [
        *(row(name, *one) for name, of in means.items() for one in zip(columns, of, strict=True)),
        row("older", "strict_total_cost", 1.0),
    ]
    (by_operator,), (by_age,) = matches(rows), matches(rows, end_to_end=True)
    assert [one.name for one in by_operator.ranking] == ["older", "waits", "serves"]
    assert [one.name for one in by_age.ranking] == ["serves", "waits", "older"]
    headings, *lines = terminal(tmp_path, rows, end_to_end=True)[1:5]
    assert headings.lstrip().startswith("by end-to-end total")
    assert [line.split()[1] for line in lines] == ["serves", "waits", "older"]
    assert lines[-1].split()[-1] == "-"
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", figure.draw([by_age]))
    assert {"end-to-end near real-time, %", "waits", "serves"} <= set(texts)


def test_the_terminal_shows_a_ranking_in_a_hundred_columns(tmp_path: Path) -> None:
    means = {
        "strict_near_real_time_compliance_percent": 88.88, COMPLIANCE: 99.99,
        "resource_cost": 1234.56, "strict_total_cost": 12345.67,
    }  # fmt: skip
    rows = [row("kalman-weierstrass", name, mean) for name, mean in means.items()]
    title, headings, line = terminal(tmp_path, rows)[:3]
    assert title == "t · p"
    assert headings.endswith("  total")
    assert "strict nrt %" in headings
    assert max(map(len, (title, headings, line))) <= 100


def test_options_and_btus_that_differ_are_named() -> None:
    rows = [
        row("btu", "resource_cost", 1.0),
        row("btu", "resource_cost", 1.0, btu_min=30.0),
        row("btu", "resource_cost", 1.0, variant="n=2"),
    ]
    (match,) = matches(rows)
    assert [standing.name for standing in match.standings] == [
        "btu (n=2) BTU 10",
        "btu BTU 10",
        "btu BTU 30",
    ]


def test_a_controller_says_where_it_comes_from() -> None:
    names = ("btu", "keda", "tide", "mine")
    (match,) = matches([row(name, "resource_cost", 10.0) for name in names])
    groups = [
        (group, [standing.name for standing in standings]) for group, standings in match.groups
    ]
    assert groups == [
        ("published", ["btu"]), ("in use today", ["keda"]), ("not registered", ["mine"]),
        ("ours", ["tide"]),
    ]  # fmt: skip


def test_groups_are_those_of_the_registry_and_ours_is_the_last() -> None:
    assert sorted(GROUPS) == sorted([*Group, ""])
    assert GROUPS[-1] == Group.OURS


def test_every_metric_of_the_table_is_on_the_page() -> None:
    outcomes = schema_of("outcomes").column_names
    others = [name for name in outcomes[outcomes.index("seed") + 1 :] if name != "cover_cost"]
    assert list(METRICS) == others  # the cover is the same whoever controls


def test_long_ages_are_in_seconds() -> None:
    (match,) = matches([row("btu", "age_p95_ms", 179871.0)])
    assert METRICS["age_p95_ms"][0] == "age p95, s"
    assert match.standings[0].cells["age_p95_ms"].value == "179.9"


def test_the_figure_has_a_panel_per_workload_and_a_name_per_controller() -> None:
    svg = figure.draw(matches(ROWS))
    assert svg == figure.draw(matches(ROWS))
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert {"t", "u", "p", "btu", "henge", "utility, %", "strict relaxed, %"} <= set(texts)
    assert texts.count("henge") == 1
    assert texts.count("published") == 1


def test_a_name_in_the_figure_has_options_only_where_they_tell_it_apart() -> None:
    long = "calibration=manufacturing_burnt, flavor=live-third-cpu-1gb"
    variants = [("tide", "care=1"), ("tide", "care=2"), ("threshold", "interval_s=15")]
    rows = [
        row(controller, metric, 50.0, variant=variant, conditions=long)
        for controller, variant in variants
        for metric in ("resource_cost", COMPLIANCE)
    ]
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", figure.draw(matches(rows)))
    assert {"tide (care=1)", "tide (care=2)", "threshold"} <= set(texts)
    assert f"p, {long}" in texts


def test_a_title_is_cut_where_the_next_workload_begins() -> None:
    conditions = "duration_min=60, flavor=live-third-cpu-1gb"
    of_one = [row("tide", m, 50.0, conditions=conditions) for m in ("resource_cost", COMPLIANCE)]
    of_three = [{**one, "topology": topology} for topology in "tuv" for one in of_one]
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", figure.draw(matches(of_three)))
    assert texts.count("p, 60 min, …") == 3
    (title,) = (match.title for match in matches(of_one))
    assert title == "t · p · 60 min, flavor=live-third-cpu-1gb", "the headings of the page have all"


def test_whoever_gets_less_for_more_is_beaten_and_equals_are_not() -> None:
    worse = [row("fixed", "resource_cost", 12.0), row("fixed", COMPLIANCE, 94.0)]
    equal = [row("tide", "resource_cost", 12.0), row("tide", COMPLIANCE, 95.0)]
    (match,) = matches([*ROWS[:4], *worse, *equal])
    places = [figure.place_of(standing, COMPLIANCE) for standing in match.standings]
    unbeaten = [
        standing.name
        for standing, place in zip(match.standings, places, strict=True)
        if figure.unbeaten(place, places)
    ]
    assert unbeaten == ["btu", "henge", "tide"]


def test_a_controller_of_ones_own_is_drawn_and_one_without_cost_is_not() -> None:
    rows = [
        row("mine", "resource_cost", 3.0),
        row("mine", COMPLIANCE, 50.0),
        row("free", "resource_cost", 0.0),
        row("free", COMPLIANCE, 50.0),
    ]
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", figure.draw(matches(rows)))
    assert "mine" in texts
    assert "free" not in texts


def cup(folder: Path) -> dict[str, list[dict[str, Any]]]:
    stage(folder)
    restage(folder, "tournament", ROWS)
    first = read_staged(folder, "runs")[0]
    restage(folder, "runs", [first, {**first, "run": "second", "topology": "u"}])
    return {table: read_staged(folder, table) for table in PUBLISHED}


def test_the_page_of_a_tournament_shows_table_and_figure(tmp_path: Path) -> None:
    page = dict(report_files(cup(tmp_path), VERDICT, ORIGIN))["report.html"]
    assert page.index('<section id="tournament">') < page.index('<section id="run">')
    assert '<td class="n"><b>10.00</b><small>± 1.59</small></td>' in page
    assert '<td class="n">12.00<small>± 1.59</small></td>' in page
    assert '<td class="n">80.00' not in page
    assert '<td class="n"><b>80.0</b></td>' in page
    assert 'role="img" aria-labelledby="tournament-title"' in page
