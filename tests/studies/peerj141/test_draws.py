"""How sure a verdict is: intervals and draws of three seeds, from the errors by seed."""

from __future__ import annotations

import numpy as np
import pytest

from include.studies.peerj141.draws import errors_by_seed, spread
from include.studies.peerj141.judgement import judge, share_of_draws

SEEDS = range(1, 13)


def a_row(controller="btu-runtime", published=80.0, **changes):
    values = {
        "pattern": "stepwise", "controller": controller, "btu_min": 10.0,
        "metric": "resource_cost", "kind": "resource cost", "published_mean": published,
        "error": 0.0, "error_unit": "percent", "inside": True,
    }  # fmt: skip
    return values | changes


def figures(values, controller="btu-runtime", **changes):
    return [
        {
            "pattern": "stepwise", "controller": controller, "btu_min": 10.0, "variant": "",
            "metric": "resource_cost", "seed": seed, "value": value, **changes,
        }
        for seed, value in zip(SEEDS, values, strict=False)
    ]  # fmt: skip


def test_errors_by_seed_have_the_unit_of_the_verdict():
    metrics = [*figures([88.0, 72.0]), *figures([1.0], variant="other")]
    assert errors_by_seed([a_row()], metrics) == {
        ("stepwise", "btu-runtime", 10.0, "resource_cost"): {
            1: pytest.approx(10),
            2: pytest.approx(-10),
        }
    }
    points = a_row(error_unit="points", metric="relaxed_compliance", btu_min=None)
    known = errors_by_seed([points], figures([88.0], metric="relaxed_compliance"))
    assert list(known.values()) == [{1: pytest.approx(8)}]


def test_the_share_of_draws_is_that_of_all_draws_of_three():
    # eleven seeds are exact, one is off by 12: of 220 draws 55 hold it, with a mean error of 4
    errors = [dict(zip(SEEDS, [12.0, *[0.0] * 11], strict=True))]
    assert spread(errors, limit=3.9).share == pytest.approx(165 / 220)
    assert spread(errors, limit=4.1).share == 1


def test_the_interval_holds_the_mean_error_and_shrinks_with_more_seeds():
    generator = np.random.default_rng(1)
    noise = 5 + generator.normal(size=120)
    widths = []
    for size in (12, 120):
        found = spread([dict(enumerate(noise[:size]))], limit=1.0)
        assert found.low < noise[:size].mean() < found.high
        widths.append(found.high - found.low)
    assert widths[1] < 0.7 * widths[0]


def test_three_seeds_say_nothing_about_draws_of_three():
    assert spread([dict.fromkeys((1, 2, 3), 0.0)], limit=1.0) is None
    assert spread([], limit=1.0) is None
    (row,) = judge([a_row()], figures([80.0] * 3))
    assert (row["seeds"], row["share_of_draws"], row["interval_low"]) == (3, None, None)
    assert share_of_draws([row]) is None


def test_a_draw_passes_the_verdict_when_every_judged_group_keeps_its_limit():
    # each of the two is off with another seed, so the draws that fail add up
    rows = [a_row(), a_row("threshold"), a_row("btu", error=99.0)]
    metrics = [
        *figures([160.0, *[80.0] * 11]),
        *figures([80.0, 160.0, *[80.0] * 10], "threshold"),
        *figures([800.0] * 12, "btu"),
    ]
    judgement = judge(rows, metrics)
    shares = {row["controller"]: row["share_of_draws"] for row in judgement}
    assert shares == {"btu-runtime": 165 / 220, "threshold": 165 / 220, "btu": 0}
    assert share_of_draws(judgement) == pytest.approx(120 / 220)
    assert {row["seeds"] for row in judgement} == {12}
