"""Figures that are compared have the same axes, whatever is in each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from include.reports.figures import curves, scaling, style, timeline, tournament, tradeoff
from include.reports.page import render_page
from include.reports.tournament import Cell, Match, Standing
from include.tables.catalogue import PUBLISHED
from include.tables.staged import read_staged
from tests.builders_staged import stage, tables_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ORIGIN = {"experiment": "demo", "edition": "0", "git_commit": None, "versions": {}}
VERDICT: dict[str, Any] = {"passed": True, "checks": [], "quarantined": {}}
Limits = list[tuple[tuple[float, float], tuple[float, float]]]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[str, Limits]:
    """Limits of the x and the y axis of every panel of every figure that is drawn, by its name."""
    seen: dict[str, Limits] = {}
    finish = style.as_svg

    def watched(figure: Figure, name: str, description: str) -> str:
        seen[name] = [(a.get_xlim(), a.get_ylim()) for a in figure.axes if a.get_visible()]
        return finish(figure, name, description)

    monkeypatch.setattr(style, "as_svg", watched)
    return seen


def test_runs_of_one_page_share_their_axes(tmp_path: Path, drawn: dict[str, Limits]) -> None:
    folder = stage(tmp_path, "calm")
    tables = {table: read_staged(folder, table) for table in PUBLISHED}
    busy = tables_of("busy", controller="threshold")
    busy["runs"][0]["duration_min"] = 6.0
    busy["timeline"][3] |= {"hosts": 20, "waiting_items": 9000}
    busy["scaling"][0] |= {"upscaling": 30, "migrations": 10, "hosts_released": 7}
    own_workload = tables_of("elsewhere")
    own_workload["runs"][0]["topology"] = "trading_queries"
    own_workload["timeline"][0]["hosts"] = 500
    for table in ("runs", "timeline", "scaling", "compliance", "cost"):
        tables[table] = [*tables[table], *busy[table], *own_workload[table]]
    tables["tournament"] = [tables["tournament"][0] | {"metric": "resource_cost"}]
    render_page(tables, VERDICT, ORIGIN)
    for kind in ("timeline", "scaling", "compliance"):
        assert drawn[f"{kind} calm"] == drawn[f"{kind} busy"]
    over_time, activity = drawn["timeline calm"], drawn["scaling calm"]
    assert {x for x, _ in (*over_time, *activity)} == {(0.0, 6.0)}
    assert over_time[1][1][1] > 20, "hosts of the busy run fit"
    assert over_time[3][1][1] > 9000
    assert activity[0][1][1] > 40, "bars stand on each other"
    assert activity[1][1][0] < -7
    assert drawn["timeline elsewhere"][1][1][1] > 500 > over_time[1][1][1]


def test_one_run_fills_its_own_axes(drawn: dict[str, Limits]) -> None:
    rows = tables_of("alone")
    timeline.draw("alone", rows["timeline"], timeline.scale_of(rows["timeline"], 2.0))
    scaling.draw("alone", rows["scaling"], scaling.scale_of(rows["scaling"], 2.0))
    assert 9 < drawn["timeline alone"][2][1][1] < 11
    assert 2 < drawn["scaling alone"][0][1][1] < 3


def test_patterns_of_a_reproduction_share_their_axes(drawn: dict[str, Limits]) -> None:
    low = {"threshold": [(0.0, 1.0, 2.0, 9.0), (1.0, 1.0, 3.0, 9.0)]}
    high = {"threshold": [(0.0, 8.0, 12.0, 60.0)]}
    scale = curves.scale_of([*low.values(), *high.values()], 120.0)
    for pattern, own in (("low", low), ("high", high)):
        curves.draw(pattern, own, scale)
    assert drawn["curves low"] == drawn["curves high"]
    assert [top for _, (_, top) in drawn["curves low"]] == pytest.approx([8.64, 12.96, 64.8])


def test_panels_of_cost_against_compliance_share_their_axes(drawn: dict[str, Limits]) -> None:
    cells = [
        {"pattern": pattern, "controller": "btu", "btu_min": 10.0, "metric": metric,
         "mean": mean, "sigma": 0.5}
        for pattern, cost, share in (("stepwise", 50.0, 40.0), ("two_level", 500.0, 99.0))
        for metric, mean in (("resource_cost", cost), ("near_real_time_compliance", share))
    ]  # fmt: skip
    tradeoff.draw(cells, [], ["stepwise", "two_level"])
    first, second = drawn["tradeoff"]
    assert first == second
    assert first[0][0] < 50 < 500 < first[0][1]


def test_workloads_of_a_tournament_share_what_was_got_for_the_cost(
    drawn: dict[str, Limits],
) -> None:
    def cell(mean: float) -> Cell:
        return Cell(mean=mean, half=None, decimals=1, best=False)

    tournament.draw(
        [
            Match(
                workload=(name, "constant", ""),
                metrics=("resource_cost", "strict_relaxed_compliance_percent"),
                standings=(Standing(name="btu", runs=3, cells={
                    "resource_cost": cell(cost),
                    "strict_relaxed_compliance_percent": cell(share),
                }),),
            )
            for name, cost, share in (("one", 5.0, 97.0), ("other", 500.0, 20.0))
        ]
    )  # fmt: skip
    one, other = drawn["tournament"]
    assert one[1] == other[1]
    assert one[0] != other[0], "what a host costs is not the same on both"


def test_no_two_controllers_look_alike_in_a_tournament() -> None:
    from include.controllers import CONTROLLERS
    from include.reports.figures.tournament import UNREGISTERED, looks

    assert set(looks()) == set(CONTROLLERS)
    assert len({*looks().values(), UNREGISTERED}) == len(CONTROLLERS) + 1
    assert looks()["btu"][0] == looks()["btu-runtime"][0] != looks()["threshold"][0]
