"""Published beside measured: errors, tolerances, and what is compared with what."""

from __future__ import annotations

import math

import pytest
from scipy.stats import t

from include.model.errors import GateFailed
from include.results.reports.comparison import PublishedFigure
from include.studies.peerj141.verdict import summary, verdict


def a_cell(controller: str, metric: str, mean: float, btu_min: float = 10.0, sigma=1.0):
    return {
        "pattern": "p", "controller": controller, "btu_min": btu_min, "metric": metric,
        "mean": mean, "sigma": sigma, "runs": 3,
    }  # fmt: skip


def judged(controller: str, metric: str, mean: float, figure: PublishedFigure, btu_min=10.0):
    approach = "threshold" if controller == "threshold" else "btu"
    published = {("p", approach, btu_min, metric): figure}
    (row,) = verdict([a_cell(controller, metric, mean)], published)
    return row


def test_compliance_is_missed_in_points_and_a_cost_in_percent():
    points = judged(
        "btu", "relaxed_compliance", 53.0, PublishedFigure(50, "percent", "t", sigma=1.0)
    )
    assert (points["error"], points["error_unit"]) == (pytest.approx(3.0), "points")
    percent = judged("btu", "resource_cost", 88.0, PublishedFigure(80, "cost", "t", sigma=4.0))
    assert (percent["error"], percent["error_unit"]) == (pytest.approx(10.0), "percent")


@pytest.mark.parametrize(("off", "inside"), [(0.99, True), (1.01, False)])
def test_a_cell_is_inside_when_chance_explains_its_error(off, inside):
    # a mean of three with sigma 1: 2 degrees of freedom, t = 4.303; half a point of rounding
    reach = 4.303 * math.sqrt(1 / 3) + 0.5
    row = judged(
        "btu", "relaxed_compliance", 50 + off * reach, PublishedFigure(50, "percent", "t", sigma=1)
    )
    assert (row["tolerance"], row["inside"]) == (pytest.approx(reach, rel=1e-3), inside)


@pytest.mark.parametrize("sigma", [None, 0.0, 50.0])
def test_our_own_noise_never_widens_a_tolerance(sigma):
    figure = PublishedFigure(80, "cost", "t", sigma=1.0)
    published = {("p", "btu", 10.0, "resource_cost"): figure}
    (row,) = verdict([a_cell("btu", "resource_cost", 80.0, sigma=sigma)], published)
    assert row["tolerance"] == judged("btu", "resource_cost", 80.0, figure)["tolerance"]


def test_sigmas_are_pooled_over_the_cells_of_a_controller_and_kind():
    published = {
        (pattern, "btu", 10.0, "resource_cost"): PublishedFigure(100, "cost", "t", sigma=sigma)
        for pattern, sigma in (("p", 0.0), ("q", 2.0))
    }
    cells = [a_cell("btu", "resource_cost", 100) | {"pattern": name} for name in ("p", "q")]
    tolerances = [row["tolerance"] for row in verdict(cells, published)]
    # the variance (0 + 4) / 2 in percent of 100, two columns of three runs; a half cent
    assert tolerances == [pytest.approx(t.ppf(0.975, 4) * math.sqrt(2 / 3) + 0.005)] * 2


def test_nothing_is_judged_when_the_paper_prints_no_sigma():
    cell = a_cell("btu", "resource_cost", 80.0)
    with pytest.raises(GateFailed, match=r"none has a standard deviation. Add the printed ones"):
        verdict([cell], {("p", "btu", 10.0, "resource_cost"): PublishedFigure(80, "cost", "t")})


def test_threshold_compliance_has_no_btu():
    row = judged(
        "threshold",
        "relaxed_compliance",
        71,
        PublishedFigure(70, "percent", "t", 1.0),
        btu_min=None,
    )
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
    row = judged("btu", "resource_cost", 80.0, PublishedFigure(80.2, "cost", "t", 1.0))
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
