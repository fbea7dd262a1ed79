"""Reproduced or not: mean absolute errors against their limits."""

from __future__ import annotations

import pytest

from include.studies.peerj141.judgement import judge, shortfalls


def a_row(controller="btu-runtime", pattern="stepwise", kind="compliance", **changes):
    values = {
        "pattern": pattern, "controller": controller, "kind": kind, "error": 0.5,
        "error_unit": "points" if kind == "compliance" else "percent", "inside": True,
    }  # fmt: skip
    return values | changes


def test_the_mean_absolute_error_decides_and_not_the_mean_error():
    (row,) = judge([a_row(error=1.4), a_row(error=-1.4)])
    assert (row["mean_absolute_error"], row["limit"], row["holds"]) == (
        pytest.approx(1.4),
        1.2,
        False,
    )
    assert len(shortfalls([row])) == 1
    assert "btu-runtime, compliance on fitted patterns" in shortfalls([row])[0]


@pytest.mark.parametrize(
    ("pattern", "controller", "kind", "limit"),
    [
        ("random_walk_1", "btu-runtime", "resource cost", 4.5),
        ("stepwise", "threshold", "resource cost", 6.0),
        ("stepwise", "threshold", "total cost", 6.0),
        ("two_level", "threshold", "compliance", 1.5),
        ("random_walk_2", "btu-runtime", "total cost", 6.0),
    ],
)
def test_limits_differ_by_controller_and_by_whether_the_pattern_was_fitted(
    pattern, controller, kind, limit
):
    at, above = (
        judge([a_row(controller, pattern, kind, error=off)])[0] for off in (limit, limit + 0.01)
    )
    assert (at["holds"], above["holds"]) == (True, False)


def test_another_reading_of_the_paper_is_shown_but_not_judged():
    (row,) = judge([a_row("btu", error=99.0, inside=False)])
    assert (row["judged"], row["holds"]) == (False, False)
    assert shortfalls([row]) == []


def test_cells_outside_are_counted_and_do_not_decide() -> None:
    rows = judge([a_row("threshold", inside=number > 6) for number in range(20)])
    assert [(row["cells"], row["outside"]) for row in rows] == [(20, 7)]
    assert shortfalls(rows) == []
