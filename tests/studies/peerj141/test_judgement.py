"""Reproduced or not: mean absolute errors against their limits."""

from __future__ import annotations

import pytest

from include.studies.peerj141.judgement import judge, shortfalls
from include.studies.peerj141.published import approach_of, kind_of, published_cells
from include.studies.peerj141.study import verdict_sentences

SEEDS = range(25, 49)
UNITS = {"compliance": "points", "resource cost": "percent", "total cost": "percent"}


def a_row(controller="btu-runtime", pattern="stepwise", kind="compliance", **changes):
    values = {
        "pattern": pattern, "controller": controller, "kind": kind, "error": 0.5,
        "error_unit": UNITS[kind], "inside": True,
    }  # fmt: skip
    return values | changes


def every(controller, *kinds, **changes):
    """A row on each stored figure of the controller, of these kinds or of all."""
    return [
        a_row(controller, pattern, kind_of(metric), **changes)
        for pattern, approach, _, metric in published_cells()
        if approach == approach_of(controller) and kind_of(metric) in (kinds or UNITS)
    ]


def judged(*rows, seeds=SEEDS):
    """The judgement of rows whose every seed is as far off as they are."""
    return judge([{**row, "errors": dict.fromkeys(seeds, row["error"])} for row in rows])


BOTH = judged(*every("btu-runtime"), *every("threshold"))


def test_the_mean_absolute_error_decides_and_not_the_mean_error():
    rows = every("btu-runtime", "compliance", error=1.4)
    (row,) = judged(*rows[::2], *({**row, "error": -1.4} for row in rows[1::2]))
    assert (row["mean_absolute_error"], row["limit"]) == (pytest.approx(1.4), 1.2)
    assert row["holds"] is False
    (shortfall,) = shortfalls([*BOTH, row])
    assert "btu-runtime, compliance on fitted patterns" in shortfall


@pytest.mark.parametrize(
    ("pattern", "controller", "kind", "limit"),
    [
        ("random_walk_1", "btu-runtime", "resource cost", 4.5),
        ("stepwise", "threshold", "resource cost", 6.0),
        ("stepwise", "threshold", "total cost", 6.0),
        ("stepwise", "threshold-peerj", "compliance", 1.5),
        ("two_level", "threshold", "compliance", 1.5),
        ("random_walk_2", "btu-runtime", "total cost", 6.0),
    ],
)
def test_limits_differ_by_controller_and_by_whether_the_pattern_was_fitted(
    pattern, controller, kind, limit
):
    at, above = (
        judged(a_row(controller, pattern, kind, error=off), *every(controller, kind, error=off))[0]
        for off in (limit, limit + 0.01)
    )
    assert (at["holds"], above["holds"]) == (True, False)


def test_another_reading_of_the_paper_is_shown_but_not_judged():
    (row,) = judged(*every("btu", "compliance", error=99.0, inside=False))
    assert (row["judged"], row["holds"]) == (False, False)
    assert shortfalls([*BOTH, row]) == []


def test_cells_outside_are_counted_and_do_not_decide() -> None:
    rows = judged(*(a_row("threshold", inside=n > 6) for n in range(20)))
    assert [(row["cells"], row["outside"]) for row in rows] == [(20, 7)]
    assert shortfalls([*BOTH, *rows]) == []


def test_what_was_not_measured_is_not_reproduced() -> None:
    of_none = {
        name: [
            f"{name}, {kind} on fitted patterns: no stored figure was measured" for kind in UNITS
        ]
        for name in ("btu-runtime", "threshold")
    }
    assert shortfalls([]) == [*of_none["btu-runtime"], *of_none["threshold"]]
    alone = judged(*every("btu-runtime"), *every("btu"))
    assert shortfalls(alone) == of_none["threshold"]


def test_a_part_of_the_figures_is_not_judged() -> None:
    part = [row for row in every("btu-runtime") if row["pattern"] == "stepwise"]
    rows = judged(*part, *every("threshold"))
    assert [row["holds"] for row in rows] == [None] * 3 + [True] * 3
    why = [f"{kind} of {2 * kind} stored figures do not judge it, all do" for kind in (9, 3, 9)]
    assert shortfalls(rows) == [
        f"btu-runtime, {kind} on fitted patterns: {text}"
        for kind, text in zip(UNITS, why, strict=True)
    ]
    said = verdict_sentences(rows)
    assert [line.endswith(text) for line, text in zip(said, why, strict=False)] == [True] * 3
    assert said[-1].endswith(": reproduced")


def test_too_few_seeds_are_a_shortfall_of_their_own():
    (row,) = judged(*every("btu-runtime", "compliance"), seeds=range(3))
    assert (row["holds"], row["interval_high"]) == (None, None)
    assert shortfalls([*BOTH, row]) == [
        "btu-runtime, compliance on fitted patterns: 3 seeds do not judge it, 24 do"
    ]
