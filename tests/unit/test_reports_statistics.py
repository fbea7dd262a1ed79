"""Intervals and p values against scipy's own tests on the same samples."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from include.results.reports.statistics import (
    STATISTICS_COLUMNS,
    Mean,
    mean_of,
    welch_p,
    with_intervals,
)

ONE, OTHER = (1.0, 2.0, 6.0), (3.0, 5.0, 7.0)


def a_row(**changes):
    values = {
        "pattern": "p", "btu_min": 10.0, "metric": "resource_cost", "controller": "btu",
        "other_controller": "fixed", "pairs": 3, "mean": 3.0, "other_mean": 5.0,
        "difference": -2.0, "difference_sigma": 1.0, "welch_t": -1.044466,
        "welch_df": 3.723077, "cohens_d": -0.85, "hedges_g": -0.68,
    }  # fmt: skip
    return values | changes


def test_p_values_are_those_of_scipy():
    (row,) = with_intervals([a_row()])
    assert row["paired_p"] == pytest.approx(stats.ttest_rel(ONE, OTHER).pvalue)
    assert row["welch_p"] == pytest.approx(
        stats.ttest_ind(ONE, OTHER, equal_var=False).pvalue, 1e-5
    )
    span = stats.ttest_rel(ONE, OTHER).confidence_interval(0.95)
    assert (row["ci95_low"], row["ci95_high"]) == pytest.approx((span.low, span.high))
    assert set(row) == set(STATISTICS_COLUMNS)


def test_one_pair_has_no_interval():
    alone = a_row(pairs=1, difference_sigma=None, welch_t=None, welch_df=None)
    (row,) = with_intervals([alone])
    assert [row[name] for name in ("ci95_low", "ci95_high", "paired_p", "welch_p")] == [None] * 4


def test_pairs_that_differ_by_the_same_have_an_interval_of_no_width():
    (row,) = with_intervals([a_row(difference_sigma=0.0)])
    assert (row["ci95_low"], row["ci95_high"], row["paired_p"]) == (-2.0, -2.0, None)


def test_a_mean_has_the_interval_of_students_t() -> None:
    mean = mean_of([1.0, 2.0, 3.0])
    assert mean == (2.0, 1.0, 3)
    assert mean.half == pytest.approx(4.302652729911275 / math.sqrt(3)), "t of 2 degrees, 0.975"
    assert mean_of([5.0]).half is None


def test_welch_is_that_of_scipy() -> None:
    one, other = (0.1, 0.4, -1.3, 0.9), (3.5, -2.0, 4.1)
    expected = stats.ttest_ind(one, other, equal_var=False).pvalue
    assert welch_p(mean_of(one), mean_of(other)) == pytest.approx(expected)
    assert welch_p(Mean(1.0, 0.0, 3), Mean(2.0, 0.0, 3)) == 0
    assert welch_p(Mean(1.0, 0.0, 3), Mean(1.0, 0.0, 3)) == 1
