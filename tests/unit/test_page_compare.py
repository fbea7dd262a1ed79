"""Runs side by side: which are one case, what is better, and curves on one grid."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from include.results.reports.database import Publication, sent_rows
from include.results.reports.results import Query, Row
from include.results.reports.statistics import Mean, mean_of
from tests.builders_staged import tables_of
from tidebench.page import render
from tidebench.page.better import direction_of, verdict_of
from tidebench.page.cases import BY_CASE, BY_RUN, cases_of, labels_of, way_of
from tidebench.page.compare import TABLES, Line, compared
from tidebench.page.curves import MOST_POINTS, curves_of
from tidebench.page.listing import runs_list
from tidebench.page.scatter import COST, LABEL_HEIGHT, LEFT, LETTER_WIDTH, SHARE, scatter_of


def run(seed: int, **values: Any) -> dict[str, Any]:
    return {**tables_of(f"r{seed}", seed=seed)["runs"][0], "experiment": "demo", **values}


def timeline(run_row: dict[str, Any], *readings: tuple[float, float]) -> dict[str, list[Row]]:
    rows: list[Row] = [
        {"time_s": at_s, "level_machines": None, "hosts": hosts, "instances": 9, "waiting_items": 0}
        for at_s, hosts in readings
    ]
    return {"runs": [run_row], "timeline": rows}


def hosts(curves: dict[str, Any]) -> list[dict[str, Any]]:
    (chart,) = [chart for chart in curves["charts"] if chart["name"] == "hosts"]
    return chart["series"]


def test_runs_that_differ_in_their_seed_only_are_one_case() -> None:
    runs = [run(1), run(3), run(1, controller="threshold"), run(2), run(2, btu_min=30.0)]
    assert way_of(runs, "") == BY_CASE
    cases = cases_of(runs, BY_CASE)
    assert [case.places for case in cases] == [(0, 3, 1), (2,), (4,)]  # by seed
    assert labels_of(cases) == [
        "btu · BTU 10 · mean of 3 seeds", "threshold · BTU 10 · seed 1", "btu · BTU 30 · seed 2",
    ]  # fmt: skip
    assert len(cases_of(runs, BY_RUN)) == 5
    assert way_of(runs, BY_RUN) == BY_RUN
    assert way_of(runs[:1], "") == way_of([run(1), run(1, controller="x")], "") == BY_RUN


def test_labels_tell_every_curve_apart() -> None:
    same = [run(1), run(1, run="r1-other-books")]
    assert len(set(labels_of(cases_of(same, BY_RUN)))) == 2


@pytest.mark.parametrize(
    ("name", "direction"),
    [
        ("strict_relaxed_total_cost", -1), ("regret", -1), ("total_regret", -1), ("age_p95_ms", -1),
        ("begun_cost", -1),
        ("unprocessed_items", -1), ("strict_relaxed_compliance_percent", 1),
        ("utility_percent", 1), ("cover_cost", 0), ("hosts_leased", 0),
        ("host_cpu_mean_percent", 0),
    ],
)  # fmt: skip
def test_a_quantity_has_a_direction_or_none(name: str, direction: int) -> None:
    assert direction_of(name) == direction


def test_one_seed_cannot_tell_better_from_worse() -> None:
    single, several = mean_of([10.0]), mean_of([99.0, 100.0, 101.0])
    for first, second in ((single, several), (several, single), (single, mean_of([9.0]))):
        assert verdict_of(first, second, -1) == verdict_of(first, second, 1) == ""


def test_nothing_is_said_of_what_has_no_direction_or_no_difference() -> None:
    means = mean_of([10.0, 11.0, 12.0]), mean_of([90.0, 91.0, 92.0])
    assert verdict_of(*means, 0) == ""
    assert verdict_of(means[0], means[0], 1) == ""


def test_means_are_told_apart_only_where_welchs_interval_does() -> None:
    # Welch's t of these is 2.143 with 7.986 degrees of freedom, p = 0.0645 (scipy.stats.ttest_ind).
    near = mean_of([10.0, 11, 12, 13, 14]), mean_of([12.0, 13.5, 14, 15, 16])
    assert verdict_of(*near, -1) == "unclear"
    far = mean_of([10.0, 11, 12, 13, 14]), mean_of([22.0, 23.5, 24, 25, 26])
    assert verdict_of(*far, -1) == "worse"
    assert verdict_of(*far, 1) == "better"
    assert verdict_of(Mean(1.0, 0.0, 3), Mean(2.0, 0.0, 3), 1) == "better", "no spread at all"


def line(name: str, *values: Any) -> Line:
    return Line(name=name, label=name, about="", decimals=1, values=values, unit="")


def test_a_mean_is_of_all_runs_of_a_case_or_empty() -> None:
    cases = cases_of([run(1), run(2)], BY_CASE)
    assert line("a", 1.0, None).over(cases).values == (None,)
    assert line("a", 1.0, 3.0).over(cases).values == (mean_of([1.0, 3.0]),)


def test_a_seed_of_0_is_shown(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'results.db'}"
    rows = {name: tables_of("zero", seed=0)[name] for name in ("runs", *TABLES)}
    with sent_rows(url, Publication(experiment="one", edition="1", checks=1), rows):
        pass
    sections: Any = compared(url, tmp_path, ["one/zero"], "")["sections"]
    given = {line.name: line.values for line in sections["What was run"]["equal"]}
    assert given["seed"] == ("0",)


def test_a_duration_is_called_as_in_reports_and_found_by_either_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "airflow_url", str)
    monkeypatch.setattr(render, "environment", render.environment.__wrapped__)
    url = f"sqlite:///{tmp_path / 'results.db'}"
    rows = {name: tables_of("long")[name] for name in ("runs", *TABLES)}
    rows["runs"][0]["conditions"] = "duration_min=30, max_hosts=8"
    with sent_rows(url, Publication(experiment="one", edition="1", checks=1), rows):
        pass
    rights = dict.fromkeys(("may_label", "may_run_matrix", "may_remove"), False)
    for text, found in (("duration_min=30", True), ("30 min", True), ("31 min", False)):
        content = runs_list(url, tmp_path, Query(text=text))
        page = render.render("list", {**content, **rights, "under_way": []})
        assert ("<small>30 min, max_hosts=8</small>" in page) is found
    sections: Any = compared(url, tmp_path, ["one/long"], "")["sections"]
    given = {line.name: line.values for line in sections["What was run"]["equal"]}
    assert given["conditions"] == ("30 min, max_hosts=8",)
    runs = [run(1), run(1, conditions="duration_min=30")]
    assert labels_of(cases_of(runs, BY_RUN))[1] == "btu · 30 min · seed 1"


def test_the_list_is_sorted_end_to_end_and_earlier_runs_have_a_dash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "airflow_url", str)
    monkeypatch.setattr(render, "environment", render.environment.__wrapped__)
    url = f"sqlite:///{tmp_path / 'results.db'}"
    rows: dict[str, list[dict[str, Any]]] = {"runs": [], "outcomes": []}
    for name, cost, total in (("waits", 5.0, 20.5), ("serves", 9.0, 9.5), ("older", 1.0, None)):
        tables = tables_of(name)
        tables["outcomes"][0] |= {
            "strict_total_cost": cost, "end_to_end_near_real_time_total_cost": total,
            "end_to_end_near_real_time_compliance_percent": total,
        }  # fmt: skip
        for table in rows:
            rows[table] += tables[table]
    with sent_rows(url, Publication(experiment="one", edition="1", checks=1), rows):
        pass
    query = Query(sort="end_to_end_cost", descending=False)
    rights = dict.fromkeys(("may_label", "may_run_matrix", "may_remove"), False)
    others = {**rights, "under_way": []}
    page = render.render("list", {**runs_list(url, tmp_path, query), **others})
    assert re.findall(r'value="one/(\w+)"', page) == ["serves", "waits", "older"]
    _, *lines = page.partition('<table class="list">')[2].split("<tr>")[1:]
    cells = [re.findall(r'<td class="n">([^<]*)</td>', line) for line in lines]
    assert [row[5:7] for row in cells] == [["9.50", "9.5"], ["20.50", "20.5"], ["-", "-"]]


def points(costs: list[Any], shares: list[Any]) -> list[Any]:
    labels = [f"run {k}" for k in range(len(costs))]
    scatter = scatter_of(labels, {COST: costs, SHARE: shares})
    assert scatter is not None
    for point in scatter.points:
        assert LEFT <= point.x - point.half_x <= point.x + point.half_x <= scatter.right
        assert 0 <= point.y - point.half_y <= point.y + point.half_y <= scatter.bottom
        assert point.label_y <= scatter.bottom
    return list(scatter.points)


def test_cheaper_is_to_the_left_and_more_in_time_is_higher() -> None:
    cheap, dear = points([10.0, 20.0], [80.0, 90.0])
    assert cheap.x < dear.x
    assert cheap.y > dear.y, "y counts from above"
    several = points([mean_of([10.0, 12.0, 14.0]), 20.0], [80.0, mean_of([90.0, 91.0])])
    assert several[0].half_x > 0 == several[0].half_y
    assert several[1].half_y > 0 == several[1].half_x


def test_labels_of_points_in_one_place_cover_none_of_each_other() -> None:
    heights = sorted(point.label_y for point in points([10.0] * 20, [80.0] * 20))
    assert min(b - a for a, b in pairwise(heights)) >= LABEL_HEIGHT


def test_a_long_label_has_room_beside_the_points() -> None:
    label = "threshold (scale_up_above_items=100) · random_walk_1 · mean of 5 seeds"
    scatter = scatter_of([label, "btu"], {COST: (1.0, 2.0), SHARE: (80.0, 90.0)})
    assert scatter is not None
    assert scatter.right + LETTER_WIDTH * len(label) < scatter.width
    assert max(point.x for point in scatter.points) < scatter.right


def test_large_numbers_are_whole() -> None:
    assert [render.number(value) for value in (1e6, 1234567, 10.0, 0.25)] == [
        "1,000,000", "1,234,567", "10", "0.25",
    ]  # fmt: skip


def test_there_is_no_scatter_of_one_case_or_of_what_was_not_measured() -> None:
    unknown = {COST: (1.0, None), SHARE: (2.0, 3.0)}
    assert scatter_of(["a"], {COST: (1.0,), SHARE: (2.0,)}) is None
    assert scatter_of(["a", "b"], unknown) is scatter_of(["a", "b"], {}) is None


def test_curves_have_one_grid_and_end_where_a_run_ends() -> None:
    short, long = run(1, duration_min=1.0), run(2, duration_min=2.0, controller="threshold")
    cases = cases_of([short, long], BY_RUN)
    readings = [(15.0 * k, k) for k in range(1, 9)]
    curves = curves_of(cases, [timeline(short, *readings[:4]), timeline(long, *readings)])
    assert curves["x"] == [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2]
    first, second = hosts(curves)
    assert first["mean"] == [None, 1, 2, 3, 4, None, None, None, None]
    assert second["mean"] == [None, 1, 2, 3, 4, 5, 6, 7, 8]
    assert "low" not in first


def test_between_rare_readings_the_last_one_holds() -> None:
    single = run(1, duration_min=2.0)
    curves = curves_of(cases_of([single], BY_RUN), [timeline(single, (30.0, 2), (90.0, 4))])
    assert hosts(curves)[0]["mean"] == [None, None, 2, 2, 2, 2, 4, None, None]


def test_a_long_run_is_thinned_to_means() -> None:
    week = run(1, duration_min=10080.0)
    readings = [(60.0 * k, k % 2) for k in range(1, 10081)]
    curves = curves_of(cases_of([week], BY_RUN), [timeline(week, *readings)])
    assert len(curves["x"]) == MOST_POINTS + 1
    assert curves["step_s"] == 1260
    assert all(0.4 < value < 0.6 for value in hosts(curves)[0]["mean"][1:])


def test_of_a_case_there_are_mean_and_interval() -> None:
    runs = [run(seed, duration_min=1.0) for seed in (1, 2, 3)]
    rows = [
        timeline(run_row, (15.0, value)) for run_row, value in zip(runs, (1, 2, 3), strict=True)
    ]
    (series,) = hosts(curves_of(cases_of(runs, BY_CASE), rows))
    half = mean_of([1.0, 2.0, 3.0]).half
    assert series["mean"][:2] == [None, 2]
    assert series["high"][1] == pytest.approx(2 + half, rel=1e-3)
    assert series["low"][1] == 0, "never below nothing"


def test_what_was_not_recorded_is_absent_and_not_zero() -> None:
    single = run(1)
    curves = curves_of(cases_of([single], BY_RUN), [timeline(single, (15.0, 1))])
    (load,) = [chart for chart in curves["charts"] if chart["name"] == "level_machines"]
    assert set(load["series"][0]["mean"]) == {None}
