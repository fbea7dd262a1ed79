"""Options of controllers: the defaults of their sources, and every value that makes no sense."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from include.controllers import CONTROLLERS
from include.testing.builders import a_setting


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, {}) for name in CONTROLLERS),
        ("tide", {"least_gain": 0.0}),
        ("threshold", {"interval_s": 3.0, "boot_blocks": True}),
        ("threshold", {"interval_s": 60.0, "boot_blocks": False}),
        ("btu-runtime", {"interval_s": 3.0, "boot_blocks": True}),
        ("btu-runtime", {"interval_s": 60.0, "boot_blocks": False}),
    ],
)
def test_options_that_make_sense_are_no_problem(name: str, options: dict[str, Any]) -> None:
    assert list(CONTROLLERS[name].build(setting=a_setting(), **options).problems()) == []


GAIN = "least_gain must be at least 0 and below 1e+12"
ROUND = "interval_s (60.0) is how often it looks whether a host is up, and must be below round_s"
POLICIES = [{"percent": 0, "period_s": 15}, {"instances": 0.5, "period_s": 15}]
RULES = {"windows": 3, "select": "most", "policies": POLICIES}


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        (
            "btu",
            {"observations": 1, "formula": "finale", "release_limit_share": 1.5},
            ["observations", "Did you mean 'final'?", "release_limit_share"],
        ),
        ("btu", {"observations": 6}, ["at most the 5 that an observation has, got 6"]),
        ("btu-runtime", {"interval_s": 60.0, "boot_blocks": True}, [ROUND]),
        ("threshold", {"interval_s": 60.0, "boot_blocks": True}, [ROUND]),
        (
            "threshold",
            {"reading": "text", "scale_up_above_items": 100,
             "scale_up_twice_above_items": 99, "scale_down_below_items": 101},
            ["reading", "scale_up_twice_above_items (99)", "scale_down_below_items (101)"],
        ),
        ("fixed", {"instances_each": -1}, ["instances_each"]),
        (
            "fugu-sarsa",
            {"lower": 0.7, "grace_s": -1.0, "fill_to": "brim", "successive": 0, "step": 0.3,
             "imp": 2.0, "penalty": -1.0, "dur": 0.0},
            ["0 <= lower < target < upper <= 1", "grace_s must not be negative",
             "fill_to must be one of target, upper, full", "successive must be at least 1",
             "step must divide 1", "imp must lie between 0 and 1", "penalty must not be negative",
             "dur must be above 0"],
        ),
        (
            "kalman-pure",
            {"filter": "fir", "cpu_noise": 0.0, "scale_down_below": 0.9, "dead_time_s": -1.0},
            ["filter must be one of", "cpu_noise must be above 0", "dead_time_s", "scale_up_above"],
        ),
        (
            "tide",
            {"care": 0.0, "end_to_end": 1.5, "least_gain": -1.0},
            ["care", "end_to_end", GAIN],
        ),
        ("tide", {"care": 1e300}, ["care must be above 0 and at most 1e+06, got 1e+300"]),
        *(("tide", {"least_gain": gain}, [GAIN]) for gain in (-1.0, nan, inf, 1e12)),
        (
            "hpa",
            {"target_cpu": 1.5, "release": "at once", "min_instances": 101,
             "behavior": {"scale_up": RULES, "scale_sideways": {}}},
            ["release", "windows", "select", "policies.0.percent", "policies.1.instances",
             "sideways", "min_instances", "target_cpu"],
        ),
        (
            "keda",
            {"limit_to_lag": True, "allow_idle": True, "even_partitions": True},
            ["limit_to_lag and allow_idle", "limit_to_lag and even_partitions"],
        ),
        ("keda", {"scaler": "sqs"}, ["unknown scaler 'sqs'"]),
        (
            "druid",
            {"version": "1", "optimal_idle": 1.5, "min_instances": 101},
            ["version '1'", "optimal_idle", "min_instances"],
        ),
        (
            "flink-autoscaler",
            {"version": "0.9", "min_instances": 9, "max_instances": 8},
            ["version '0.9'", "min_instances (9) must not be above max_instances (8)"],
        ),
        ("target-tracking", {"target_share": 50.0}, ["target_share"]),
    ],
)  # fmt: skip
def test_options_that_make_no_sense_are_all_named(
    name: str, options: dict[str, Any], said: list[str]
) -> None:
    problems = list(CONTROLLERS[name].build(setting=a_setting(), **options).problems())
    assert len(problems) == len(said), problems
    assert all(part in "\n".join(problems) for part in said), problems
