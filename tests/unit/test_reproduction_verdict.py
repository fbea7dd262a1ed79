"""Published beside measured: errors, tolerances, and what is compared with what."""

from __future__ import annotations

import pytest

from include.reproduction.published import Figure
from include.reproduction.verdict import summary, verdict


def a_cell(controller: str, metric: str, mean: float, btu_min: float = 10.0, sigma: float = 1.0):
    return {
        "pattern": "p", "controller": controller, "btu_min": btu_min, "metric": metric,
        "mean": mean, "sigma": sigma, "runs": 3,
    }  # fmt: skip


def judged(controller: str, metric: str, mean: float, figure: Figure, btu_min=10.0):
    approach = "threshold" if controller == "threshold" else "btu"
    published = {("p", approach, btu_min, metric): figure}
    (row,) = verdict([a_cell(controller, metric, mean)], published)
    return row


@pytest.mark.parametrize(("mean", "inside"), [(53.0, True), (53.1, False), (47.0, True)])
def test_compliance_may_be_three_points_off(mean, inside):
    row = judged("btu", "relaxed_compliance", mean, Figure(50, "percent", "t"))
    assert (row["error"], row["error_unit"]) == (pytest.approx(mean - 50), "points")
    assert (row["tolerance"], row["inside"]) == (3.0, inside)


@pytest.mark.parametrize(("mean", "inside"), [(88.0, True), (87.9, True), (89.0, False)])
def test_cost_may_be_ten_percent_off(mean, inside):
    row = judged("btu", "resource_cost", mean, Figure(80, "cost", "t"))
    assert (row["error"], row["error_unit"]) == (pytest.approx(100 * (mean / 80 - 1)), "percent")
    assert (row["tolerance"], row["inside"]) == (10.0, inside)


def test_two_published_sigmas_are_tolerated_where_they_are_more():
    wide = judged("btu", "resource_cost", 95.0, Figure(80, "cost", "t", sigma=8.0))
    assert (wide["tolerance"], wide["inside"]) == (20.0, True)
    narrow = judged("btu", "resource_cost", 95.0, Figure(80, "cost", "t", sigma=1.0))
    assert (narrow["tolerance"], narrow["inside"]) == (10.0, False)


def test_threshold_compliance_has_no_btu():
    row = judged("threshold", "relaxed_compliance", 71, Figure(70, "percent", "t"), btu_min=None)
    assert (row["btu_min"], row["measured_mean"]) == (None, 71)


def test_both_btu_controllers_stand_for_the_approach_and_fixed_for_none():
    cells = [a_cell(name, "resource_cost", 80) for name in ("btu-runtime", "btu", "fixed")]
    rows = verdict(cells, {("p", "btu", 10.0, "resource_cost"): Figure(80, "cost", "t")})
    assert [row["controller"] for row in rows] == ["btu-runtime", "btu"]


def test_a_cell_that_was_not_measured_has_no_row():
    published = {("other", "btu", 10.0, "resource_cost"): Figure(80, "cost", "t")}
    assert verdict([a_cell("btu", "resource_cost", 80)], published) == []


def test_an_erratum_is_named_beside_its_cell():
    row = judged("btu", "resource_cost", 80.0, Figure(80.2, "cost", "t"))
    assert row["erratum"] == "Three runs that pay 1 per BTU cannot have this mean."


def test_summary_averages_absolute_errors_per_kind():
    published = {
        ("p", "btu", 10.0, "real_time_compliance"): Figure(50, "percent", "t"),
        ("p", "btu", 10.0, "relaxed_compliance"): Figure(90, "percent", "t"),
        ("p", "btu", 10.0, "resource_cost"): Figure(80, "cost", "t"),
    }
    means = {"real_time_compliance": 49, "relaxed_compliance": 95, "resource_cost": 76}
    rows = summary(verdict([a_cell("btu", m, mean) for m, mean in means.items()], published))
    assert [(row["kind"], row["mean_absolute_error"], row["inside"]) for row in rows] == [
        ("compliance", pytest.approx(3), 1),
        ("resource cost", pytest.approx(5), 1),
    ]
