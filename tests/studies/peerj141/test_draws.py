"""How sure a mean error is: its interval, from the errors by seed."""

from __future__ import annotations

import numpy as np
import pytest

from include.results.reports.comparison import PublishedFigure
from include.studies.peerj141.draws import interval
from include.studies.peerj141.judgement import judge
from include.studies.peerj141.verdict import verdict

SEEDS = range(25, 49)


def row_of(values, metric="resource_cost", btu_min: float | None = 10.0):
    """The row of the verdict on a printed 80, of runs with these values, and one of another."""
    cell = {
        "pattern": "stepwise", "controller": "btu-runtime", "btu_min": 10.0, "metric": metric,
    }  # fmt: skip
    measured = {**cell, "mean": 82.0, "sigma": 1.0, "runs": 24}
    runs = [
        {**cell, "variant": "", "seed": seed, "value": value}
        for seed, value in zip(SEEDS, values, strict=False)
    ]
    figure = PublishedFigure(80, "", "t", 1.0)
    published = {("stepwise", "btu", btu_min, metric): figure}
    (row,) = verdict([measured], published, [*runs, {**runs[0], "variant": "other", "value": 1.0}])
    return row


def test_errors_by_seed_have_the_unit_of_the_verdict():
    errors = row_of([88.0, 72.0])["errors"]
    assert errors == {25: pytest.approx(10), 26: pytest.approx(-10)}
    points = row_of([88.0], metric="relaxed_compliance", btu_min=None)
    assert points["errors"] == {25: pytest.approx(8)}


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
    (row,) = judge([row_of(costs)])
    assert row["holds"] is answer
    assert row["seeds"] == len(costs)


def test_a_cell_is_inside_where_its_interval_ends_below_the_tolerance():
    for spread, inside in ((0.1, True), (8.0, False)):
        row = row_of([82.0 - spread, 82.0 + spread] * 12)
        assert row["tolerance"] == pytest.approx(3.1, abs=0.05)
        assert row["error"] == pytest.approx(2.5)
        assert row["inside"] is inside
