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
RULES = {"windows": 3, "select": "most", "policies": [{"percent": 0, "period_s": 15}]}


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        (
            "btu",
            {"interval_s": 0.0, "observations": 1, "formula": "finale", "release_limit_share": 1.5},
            ["interval_s", "observations", "Did you mean 'final'?", "release_limit_share"],
        ),
        ("btu-runtime", {"interval_s": 60.0, "boot_blocks": True}, [ROUND]),
        ("threshold", {"interval_s": 60.0, "boot_blocks": True}, [ROUND]),
        (
            "threshold",
            {"interval_s": 0.0, "reading": "text", "scale_up_above_items": 100,
             "scale_up_twice_above_items": 99, "scale_down_below_items": 101},
            ["interval_s", "reading", "scale_up_twice_above_items (99)",
             "scale_down_below_items (101)"],
        ),
        ("fixed", {"interval_s": -1.0, "instances_each": -1}, ["interval_s", "instances_each"]),
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
            {"care": 0.0, "interval_s": 0.0, "end_to_end": 1.5, "least_gain": -1.0},
            ["interval_s", "care", "end_to_end", GAIN],
        ),
        *(("tide", {"least_gain": gain}, [GAIN]) for gain in (-1.0, nan, inf, 1e12)),
        (
            "hpa",
            {"target_cpu": 1.5, "release": "at once", "min_instances": 101,
             "behavior": {"scale_up": RULES, "scale_sideways": {}}},
            ["release", "windows", "select", "policies", "sideways", "min_instances", "target_cpu"],
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
        ("flink-autoscaler", {"version": "0.9"}, ["version '0.9'"]),
        ("target-tracking", {"target_share": 50.0}, ["target_share"]),
    ],
)  # fmt: skip
def test_options_that_make_no_sense_are_all_named(
    name: str, options: dict[str, Any], said: list[str]
) -> None:
    problems = list(CONTROLLERS[name].build(setting=a_setting(), **options).problems())
    assert len(problems) == len(said), problems
    assert all(part in "\n".join(problems) for part in said), problems


DEFAULTS: dict[str, dict[str, float]] = {
    "target-tracking": {
        "interval_s": 60, "out_periods": 3, "in_periods": 15, "out_cooldown_s": 300,
        "in_cooldown_s": 300, "target_share": 0.5,
    },
    "hpa": {"interval_s": 15, "target_cpu": 0.8, "tolerance": 0.1, "stabilise_s": 300},
    # defaultRabbitMQQueueLength is 20.
    "keda": {"items_each": 20, "max_instances": 100, "stabilise_s": 300},
    # AutoScalerOptions.
    "flink-autoscaler": {
        "target_share": 0.7, "boundary": 0.3, "most_down": 0.6, "catch_up_s": 1800,
        "restart_s": 300, "most_up": 100_000, "stabilise_s": 300, "window_s": 900,
        "scale_down_after_s": 3600, "min_instances": 1, "max_instances": 200, "backlog_lag_s": 300,
    },
    # config/ds2.toml: 10 s, which the readings make 15, a warm-up of 2, activation 1, factor 0.
    "ds2": {"interval_s": 15, "warm_up": 2, "activation": 1, "factor": 0},
    # OPTIMIZE_INTERVAL is 30 s; the QoS of 5000 ms is an option, qos_ms.
    "drs": {"interval_s": 30},
    "dhalion": {"interval_s": 60, "noise_ms": 20, "wait_s": 180},
    # config.py, recovery_time.py, forecasting.py, execution_manager.py, capacity.py.
    "daedalus": {
        "interval_s": 60, "max_instances": 18, "up_s": 30, "down_s": 15, "wait_s": 180,
        "settle_s": 600,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_are_those_of_the_source(name: str) -> None:
    """Each named in the docstring of the autoscaler's own tests."""
    autoscaler = CONTROLLERS[name].build(setting=a_setting())
    found = {option: getattr(autoscaler, option) for option in DEFAULTS[name]}
    assert found == DEFAULTS[name]
