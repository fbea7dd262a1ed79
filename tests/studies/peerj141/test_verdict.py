"""Published beside measured: errors, their intervals, tolerances, and what is held against what."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t

from include.model.errors import GateFailed
from include.results.reports.comparison import PublishedFigure
from include.studies.peerj141.draws import interval
from include.studies.peerj141.judgement import judge
from include.studies.peerj141.verdict import summary, verdict

SEEDS = range(25, 49)


def a_cell(controller: str, metric: str, mean: float, pattern: str = "p", sigma=1.0):
    return {
        "pattern": pattern, "controller": controller, "btu_min": 10.0, "metric": metric,
        "mean": mean, "sigma": sigma, "runs": 3,
    }  # fmt: skip


def judged(cell, figure: PublishedFigure, btu_min: float | None = 10.0, values=()):
    """The row on one printed figure; ``values`` are those of its runs, and one of a variant."""
    approach = "threshold" if cell["controller"] == "threshold" else "btu"
    runs = [
        {**cell, "variant": "", "seed": seed, "value": value}
        for seed, value in zip(SEEDS, values, strict=False)
    ]
    runs += [{**runs[0], "variant": "other", "value": 1.0}] if runs else []
    published = {(cell["pattern"], approach, btu_min, cell["metric"]): figure}
    (row,) = verdict([cell], published, runs)
    return row


def of_runs(values):
    """The row on a printed cost of 80, where our mean is 82."""
    cell = a_cell("btu-runtime", "resource_cost", 82.0, "stepwise")
    return judged(cell, PublishedFigure(80, "cost", "t", 1.0), values=values)


def test_compliance_is_missed_in_points_and_a_cost_in_percent():
    share = a_cell("btu", "relaxed_compliance", 53.0)
    points = judged(share, PublishedFigure(50, "percent", "t", 1.0), values=[58.0])
    assert (points["error"], points["error_unit"]) == (pytest.approx(3.0), "points")
    assert points["errors"] == {25: pytest.approx(8)}
    cost = a_cell("btu", "resource_cost", 88.0)
    percent = judged(cost, PublishedFigure(80, "cost", "t", 4.0), values=[88.0, 72.0])
    assert (percent["error"], percent["error_unit"]) == (pytest.approx(10.0), "percent")
    assert percent["errors"] == {25: pytest.approx(10), 26: pytest.approx(-10)}


def test_the_interval_holds_the_mean_error_and_shrinks_with_more_seeds():
    generator = np.random.default_rng(1)
    noise = 5 + generator.normal(size=120)
    widths = []
    for size in (12, 120):
        found = interval([dict(enumerate(noise[:size]))])
        assert found.low < noise[:size].mean() < found.high
        widths.append(found.high - found.low)
    assert widths[1] < 0.7 * widths[0]


def test_three_seeds_have_no_interval():
    assert interval([dict.fromkeys((1, 2, 3), 0.0)]) is None
    assert interval([]) is None


@pytest.mark.parametrize(
    ("costs", "answer"),
    [
        ([82.0, 81.0] * 12, True),  # 1.3 to 2.5 % too dear, 4.5 are allowed
        ([80.0, 87.0] * 12, False),  # 4.4 in the mean, surely below 6 only
        ([82.0, 81.0] * 6, None),  # twelve seeds do not judge
    ],
)
def test_a_limit_holds_where_the_interval_of_24_seeds_ends_below_it(costs, answer):
    (row,) = judge([of_runs(costs)] * 6)  # as many as are printed
    assert row["holds"] is answer
    assert row["seeds"] == len(costs)


def test_only_seeds_that_every_cell_has_judge():
    """The interval is of those: 24 runs of each cell judge nothing where six seeds are shared."""
    rows = [of_runs([82.0, 81.0] * 12) for _ in range(6)]
    rows[0]["errors"] = {seed + 18: error for seed, error in rows[0]["errors"].items()}
    (row,) = judge(rows)
    assert (row["seeds"], row["holds"]) == (6, None)


def test_a_cell_is_inside_where_its_interval_ends_below_the_tolerance():
    for spread, inside in ((0.1, True), (8.0, False)):
        row = of_runs([82.0 - spread, 82.0 + spread] * 12)
        assert row["tolerance"] == pytest.approx(3.1, abs=0.05)
        assert row["error"] == pytest.approx(2.5)
        assert row["inside"] is inside


@pytest.mark.parametrize(("off", "inside"), [(0.99, True), (1.01, False)])
def test_a_cell_is_inside_when_chance_explains_its_error(off, inside):
    # a mean of three with sigma 1: 2 degrees of freedom, t = 4.303; half a point of rounding
    reach = 4.303 * math.sqrt(1 / 3) + 0.5
    cell = a_cell("btu", "relaxed_compliance", 50 + off * reach)
    row = judged(cell, PublishedFigure(50, "percent", "t", sigma=1))
    assert (row["tolerance"], row["inside"]) == (pytest.approx(reach, rel=1e-3), inside)


@pytest.mark.parametrize("sigma", [None, 0.0, 50.0])
def test_our_own_noise_never_widens_a_tolerance(sigma):
    noisy, usual = (a_cell("btu", "resource_cost", 80.0, sigma=noise) for noise in (sigma, 1.0))
    figure = PublishedFigure(80, "cost", "t", sigma=1.0)
    assert judged(noisy, figure)["tolerance"] == judged(usual, figure)["tolerance"]


def test_sigmas_are_pooled_over_the_cells_of_a_controller_and_kind():
    published = {
        (pattern, "btu", 10.0, "resource_cost"): PublishedFigure(100, "cost", "t", sigma=sigma)
        for pattern, sigma in (("p", 0.0), ("q", 2.0))
    }
    cells = [a_cell("btu", "resource_cost", 100, name) for name in ("p", "q")]
    tolerances = [row["tolerance"] for row in verdict(cells, published)]
    # the variance (0 + 4) / 2 in percent of 100, two columns of three runs; a half cent
    assert tolerances == [pytest.approx(t.ppf(0.975, 4) * math.sqrt(2 / 3) + 0.005)] * 2


def test_runs_that_were_priced_at_several_btus_count_once():
    """The paper ran its baseline three times for a pattern; its approach, for each BTU as well."""
    for controller, runs in (("btu", 6), ("threshold", 3)):
        published = {
            ("p", controller, btu_min, "resource_cost"): PublishedFigure(100, "cost", "t", 1.0)
            for btu_min in (10.0, 30.0)
        }
        cells = [
            a_cell(controller, "resource_cost", 100) | {"btu_min": btu_min}
            for btu_min in (10.0, 30.0)
        ]
        freedom = runs - runs // 3
        tolerances = [row["tolerance"] for row in verdict(cells, published)]
        assert tolerances == [pytest.approx(t.ppf(0.975, freedom) / math.sqrt(3) + 0.005)] * 2


def test_nothing_is_judged_when_the_paper_prints_no_sigma():
    with pytest.raises(GateFailed, match=r"none has a standard deviation. Add the printed ones"):
        judged(a_cell("btu", "resource_cost", 80.0), PublishedFigure(80, "cost", "t"))


def test_threshold_compliance_has_no_btu():
    cell = a_cell("threshold", "relaxed_compliance", 71)
    row = judged(cell, PublishedFigure(70, "percent", "t", 1.0), btu_min=None)
    assert (row["btu_min"], row["measured_mean"]) == (None, 71)


def test_both_btu_controllers_stand_for_the_approach_and_fixed_for_none():
    cells = [a_cell(name, "resource_cost", 80) for name in ("btu-runtime", "btu", "fixed")]
    rows = verdict(
        cells, {("p", "btu", 10.0, "resource_cost"): PublishedFigure(80, "cost", "t", 1.0)}
    )
    assert [row["controller"] for row in rows] == ["btu-runtime", "btu"]


def test_a_cell_that_was_not_measured_has_no_row():
    published = {("other", "btu", 10.0, "resource_cost"): PublishedFigure(80, "cost", "t")}
    assert verdict([a_cell("btu", "resource_cost", 80)], published) == []


def test_an_erratum_is_named_beside_its_cell():
    row = judged(a_cell("btu", "resource_cost", 80.0), PublishedFigure(80.2, "cost", "t", 1.0))
    assert row["erratum"] == "Three runs that pay 1 per BTU cannot have this mean."


def test_summary_averages_absolute_errors_per_kind():
    published = {
        ("p", "btu", 10.0, "real_time_compliance"): PublishedFigure(50, "percent", "t", 1.0),
        ("p", "btu", 10.0, "relaxed_compliance"): PublishedFigure(90, "percent", "t", 1.0),
        ("p", "btu", 10.0, "resource_cost"): PublishedFigure(80, "cost", "t", 1.0),
    }
    means = {"real_time_compliance": 49, "relaxed_compliance": 95, "resource_cost": 78}
    rows = summary(verdict([a_cell("btu", m, mean) for m, mean in means.items()], published))
    assert [(row["kind"], row["mean_absolute_error"], row["inside"]) for row in rows] == [
        ("compliance", pytest.approx(3), 1),
        ("resource cost", pytest.approx(2.5), 1),
    ]
