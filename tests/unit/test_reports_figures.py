"""Figures that are compared have the same axes, whatever is in each."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

from include.results.reports.figures import (
    advice,
    compliance,
    rescales,
    scaling,
    style,
    timeline,
    tournament,
)
from include.results.reports.figures.frame import RUN
from include.results.reports.page import report_files
from include.results.reports.tournament import Cell, Match, Standing
from include.results.tables.catalogue import PUBLISHED
from include.results.tables.staged import read_staged
from include.studies.peerj141.figures import draw_curves, draw_tradeoff, scale_of_curves
from tests.builders_staged import ORIGIN, VERDICT, change, restage, stage, tables_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Limits = list[tuple[tuple[float, float], tuple[float, float]]]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Limits]]:
    """Limits of the x and the y axis of every panel of all that matplotlib draws, by its name."""
    limits: dict[str, list[Limits]] = {}
    finish = style.as_svg

    def watched(figure: Figure, name: str, description: str) -> str:
        axes = [(a.get_xlim(), a.get_ylim()) for a in figure.axes if a.get_visible()]
        limits.setdefault(name.removesuffix(f" {RUN}"), []).append(axes)
        return finish(figure, name, description)

    monkeypatch.setattr(style, "as_svg", watched)
    for module in (timeline, compliance, scaling, advice):
        module._frame.cache_clear()
    return limits


def test_runs_of_one_page_share_their_axes(tmp_path: Path, drawn: dict[str, list[Limits]]) -> None:
    folder = stage(tmp_path, "calm")
    busy = tables_of("busy", controller="threshold")
    busy["runs"][0]["duration_min"] = 6.0
    busy["timeline"][3] |= {"hosts": 20, "waiting_items": 9000}
    busy["scaling"][0] |= {"upscaling": 30, "migrations": 10, "hosts_released": 7}
    own_workload = tables_of("elsewhere")
    own_workload["runs"][0]["topology"] = "trading_queries"
    own_workload["timeline"][0]["hosts"] = 500
    for table in ("runs", "timeline", "scaling", "compliance", "cost"):
        restage(folder, table, [*read_staged(folder, table), *busy[table], *own_workload[table]])
    change(folder, "tournament", metric="resource_cost")
    tables = {table: read_staged(folder, table) for table in PUBLISHED}
    dict(report_files(tables, VERDICT, ORIGIN))
    over_time, elsewhere = drawn["timeline"]  # calm and busy are drawn on the same
    activity, _ = drawn["scaling"]
    assert len(drawn["compliance"]) == 1
    assert {x for x, _ in (*over_time, *activity)} == {(0.0, 6.0)}
    assert over_time[1][1][1] > 20, "hosts of the busy run fit"
    assert over_time[3][1][1] > 9000
    assert activity[0][1][1] > 40, "bars stand on each other"
    assert activity[1][1][0] < -7
    assert elsewhere[1][1][1] > 500 > over_time[1][1][1]


def places_of(svg: str) -> list[tuple[float, float, float, float]]:
    """Left, lowest, right and highest point of what each path of a run's own shows, in points."""
    ElementTree.fromstring(svg)  # is well-formed
    boxes = []
    for matrix, shapes in re.findall(r'<g transform="matrix\(([^)]*)\)">(.*?)</g>', svg):
        a, _, _, d, e, f = map(float, matrix.split())
        for path in re.findall(r' d="([^"]*)"', shapes):
            x = y = 0.0
            xs, ys = [], []
            for letter, numbers in re.findall(r"([MHVhv])([^MHVZhvz]*)", path):
                values = [float(number) for number in numbers.split()]
                if letter == "M":
                    x, y = values
                x = values[0] if letter == "H" else x + values[0] if letter == "h" else x
                y = values[0] if letter == "V" else y + values[0] if letter == "v" else y
                xs.append(e + a * x)
                ys.append(f + d * y)
            boxes.append((min(xs), max(ys), max(xs), min(ys)))
    return boxes


def test_a_run_is_drawn_where_the_axes_are() -> None:
    rows = tables_of("a<b")["timeline"]
    svg = timeline.draw("a<b", rows, timeline.scale_of(rows, 2.0))
    assert "of run a&lt;b</title>" in svg
    boxes = re.findall(r'<rect x="(.*?)" y="(.*?)" width="(.*?)" height="(.*?)"', svg)
    x, y, width, height = max(
        ([float(number) for number in box] for box in boxes), key=lambda b: b[1]
    )
    # The lowest panel has the items that wait: 5 after 15 s, 40 in the end, on an axis to 43.2.
    area, line = places_of(svg)[-2:]
    zero, top = y + height, y + height * (1 - 40 / 43.2)
    assert area == pytest.approx((x + width / 8, zero, x + width, top), abs=0.01)
    assert line[1] == pytest.approx(zero - height * 5 / 43.2, abs=0.01)


def test_a_run_far_above_the_others_leaves_the_chart_and_says_so() -> None:
    """Its peak is more than three times the median of all: 40, 40 and 9000 items wait."""
    runs = {name: tables_of(name) for name in ("calm", "even", "wild")}
    runs["wild"]["timeline"][3]["waiting_items"] = 9000
    runs["wild"]["scaling"][0] |= {"upscaling": 300, "migrations": 10, "downscaling": 70}
    for name, kind in (("timeline", timeline), ("scaling", scaling)):
        scale = kind.scale_of([row for tables in runs.values() for row in tables[name]], 2.0)
        alone = kind.scale_of(runs["calm"][name], 2.0)
        assert scale == alone, "as if the wild run were not there"
        svgs = {run: kind.draw(run, tables[name], scale) for run, tables in runs.items()}
        assert "leaves the chart" not in svgs["calm"]
        wild = re.findall("leaves the chart: ([0-9,]+)", svgs["wild"])
        assert wild == {"timeline": ["9,000"], "scaling": ["70", "310"]}[name]
        tops = {run: min(top for *_, top in places_of(svg)) for run, svg in svgs.items()}
        assert tops["wild"] > 0, "inside of the picture"
    assert style.up_to_most(runs["calm"]["timeline"], lambda _: None) == 1.08


def advised(advisor: str, *instances: tuple[int, int]) -> list[dict[str, Any]]:
    """Actual and advised instances, a minute apart."""
    return [
        {"run": "x", "advisor": advisor, "time_s": 60.0 * minute,
         "actual_instances": actual, "advised_instances": would}
        for minute, (actual, would) in enumerate(instances)
    ]  # fmt: skip


def test_every_advisor_has_a_panel_with_what_there_was() -> None:
    rows = [*advised("keda", (4, 4), (4, 8), (6, 9)), *advised("tide care<2", (4, 2), (6, 6))]
    scale = advice.scale_of(rows, 2.0)
    assert scale.limits[0] == pytest.approx((0.0, 9 * 1.08))
    svg = advice.draw("x", rows, scale)
    assert [svg.count(text) for text in ("Operator instances: keda", "tide care&lt;2")] == [1, 1]
    area, line, second, would = places_of(svg)
    up = area[1] - line[3]  # from nothing to the nine that keda would have
    assert area[1] - area[3] == pytest.approx(up * 6 / 9)
    assert line[1] == pytest.approx(area[1] - up * 4 / 9)
    assert (area[0], area[2]) == (line[0], line[2])
    assert second[2] - second[0] == pytest.approx((area[2] - area[0]) / 2), "it ends after a minute"
    assert second[1] - would[1] == pytest.approx(up * 2 / 9)
    assert advice.draw("x", [], scale) == ""


def test_stops_are_drawn_where_they_were_and_as_high_as_their_gap() -> None:
    timeline_rows = tables_of("x")["timeline"]  # two minutes; 40 items wait in the end
    stops = [
        {"down_s": 30.0, "gap_s": 1.0, "cause": "controller"},
        {"down_s": 60.0, "gap_s": 4.0, "cause": "crash"},
        {"down_s": 90.0, "gap_s": None, "cause": "engine"},
    ]
    scale = rescales.scale_of(stops, timeline_rows, 2.0)
    assert [each[1] for each in scale.limits] == pytest.approx([40 * 1.08, 4 * 1.08])
    area, *lines = places_of(rescales.draw("x", stops, timeline_rows, scale))[-7:]
    waits, gaps = lines[:3], lines[3:]
    width = area[2] - area[0]  # from the first reading, at 15 s, to the end
    for stop, at_s in zip(waits, (30, 60, 90), strict=True):
        assert stop[0] == pytest.approx(area[0] + width * (at_s - 15) / 105, abs=0.01)
    heights = [bottom - top for _, bottom, _, top in gaps]
    assert heights[1] == pytest.approx(4 * heights[0])
    assert heights[2] == 0.0
    assert rescales.draw("x", [], timeline_rows, scale) == ""


def test_gaps_are_a_distribution_per_controller() -> None:
    svg = rescales.draw_gaps({"ds2": [0.4, 2.0, 1.0], "tide <care>": [0.5], "none": []})
    assert "ds2 (3)" in svg
    assert "tide &lt;care&gt; (1)" in svg
    assert "none" not in re.findall(r">([^<]*)</text>", svg)
    assert rescales.draw_gaps({"none": []}) == ""


def test_shares_are_stacked_and_named() -> None:
    rows = compliance.in_order(tables_of("x")["compliance"])
    svg = compliance.draw("x", rows)
    lefts_and_rights = [(left, right) for left, _, right, _ in places_of(svg)]
    assert len(lefts_and_rights) == 4, "a path per level"
    assert all(a[1] <= b[1] for a, b in pairwise(lefts_and_rights))
    whole = lefts_and_rights[-1][1] - lefts_and_rights[0][0]
    assert (lefts_and_rights[0][1] - lefts_and_rights[0][0]) / whole == pytest.approx(0.49)
    assert svg.count(">49 %</text>") == len(rows)
    nothing = [dict(row) for row in rows]
    nothing[1] |= {"real_time_compliance_percent": None, "sampled_items": 0}
    assert svg.count("nothing was sampled") == 0
    assert compliance.draw("x", nothing).count(">nothing was sampled</text>") == 1


def test_bars_stand_on_each_other_and_what_shrank_hangs_below() -> None:
    rows = tables_of("x")["scaling"]
    rows[0] |= {"upscaling": 3, "migrations": 2, "downscaling": 1}
    up, moved, down, leased = places_of(scaling.draw("x", rows, scaling.scale_of(rows, 2.0)))
    assert up[3] == pytest.approx(moved[1])
    assert (up[1] - up[3]) / (moved[1] - moved[3]) == pytest.approx(1.5)
    assert down[3] == pytest.approx(up[1])
    assert (up[0], up[2]) == pytest.approx((leased[0], leased[2])), "of the same minute"


def test_patterns_of_a_reproduction_share_their_axes(drawn: dict[str, list[Limits]]) -> None:
    low = {"threshold": [(0.0, 1.0, 2.0, 9.0), (1.0, 1.0, 3.0, 9.0)]}
    high = {"threshold": [(0.0, 8.0, 12.0, 60.0)]}
    scale = scale_of_curves([*low.values(), *high.values()], 120.0)
    for pattern, rows in (("low", low), ("high", high)):
        draw_curves(pattern, rows, scale)
    assert drawn["curves low"] == drawn["curves high"]
    assert [top for _, (_, top) in drawn["curves low"][0]] == pytest.approx([8.64, 12.96, 64.8])


def test_no_text_of_a_reproduction_is_black() -> None:
    """As text without a colour is, also on a dark page."""
    cells = [
        {"pattern": "stepwise", "controller": "btu", "btu_min": btu_min, "metric": metric,
         "mean": btu_min, "sigma": 0.5}
        for btu_min in (10.0, 30.0)
        for metric in ("resource_cost", "near_real_time_compliance")
    ]  # fmt: skip
    curves = {"threshold": [(0.0, 1.0, 2.0, 9.0), (1.0, 1.0, 3.0, 9.0)]}
    scale = scale_of_curves(curves.values(), 120.0)
    for svg in (draw_tradeoff(cells, [], ["stepwise"]), draw_curves("stepwise", curves, scale)):
        texts = re.findall(r"<text [^>]*>", svg)
        assert texts
        assert [text for text in texts if "fill: " not in text] == []


def test_panels_of_cost_against_compliance_share_their_axes(drawn: dict[str, list[Limits]]) -> None:
    cells = [
        {"pattern": pattern, "controller": "btu", "btu_min": 10.0, "metric": metric,
         "mean": mean, "sigma": 0.5}
        for pattern, cost, share in (("stepwise", 50.0, 40.0), ("two_level", 500.0, 99.0))
        for metric, mean in (("resource_cost", cost), ("near_real_time_compliance", share))
    ]  # fmt: skip
    draw_tradeoff(cells, [], ["stepwise", "two_level"])
    (first, second) = drawn["tradeoff"][0]
    assert first == second
    assert first[0][0] < 50 < 500 < first[0][1]


def test_workloads_of_a_tournament_share_what_was_got_for_the_cost(
    drawn: dict[str, list[Limits]],
) -> None:
    def cell(mean: float) -> Cell:
        return Cell(mean=mean, half=None, decimals=1, best=False)

    tournament.draw(
        [
            Match(
                workload=(name, "constant", ""),
                metrics=("resource_cost", "strict_relaxed_compliance_percent"),
                standings=(Standing(name="btu", controller="btu", runs=3, cells={
                    "resource_cost": cell(cost),
                    "strict_relaxed_compliance_percent": cell(share),
                }),),
            )
            for name, cost, share in (("one", 5.0, 97.0), ("other", 500.0, 20.0))
        ]
    )  # fmt: skip
    (got, paid, other_got, other_paid) = drawn["tournament"][0]
    assert got == other_got
    assert paid[1] == other_paid[1]
    assert paid[0] != other_paid[0], "what a host costs is not the same on both"
