"""Druid's cost-based autoscaler: worked examples of its formula, and when it acts.

Its own tests are rows of `tidebench conform`.
"""

from __future__ import annotations

import math

import pytest

from include.controllers.autoscalers.druid import Druid, StreamMetrics, amplified
from include.testing.builders import a_setting
from tests.autoscaler_world import asked_for, look, looked, numbers

DRUID = Druid(setting=a_setting())


def metrics(**changes):
    """8 tasks of 40 partitions that are idle for a tenth of their time, nothing waiting."""
    values = {"lag_items": 0.0, "tasks": 8, "partitions": 40, "idle_share": 0.1, "rate_per_s": 2e3}
    return StreamMetrics(**(values | changes))


def test_tasks_that_cannot_do_the_work_cost_the_lag_that_they_will_have():
    """One task would be 0.9 * 8 ^ 0.32 = 1.7508 times busy: 0.7508 h of lag, and no idle time."""
    assert DRUID.cost(metrics(), 1) == pytest.approx(0.4 * 0.7508 * 3600 + 0.6 * 2.25, abs=0.1)


def test_little_lag_is_not_made_less():
    assert amplified(10, 100) == 10
    assert amplified(100 * math.e, 100) == pytest.approx(1.4 * 100 * math.e)
    assert amplified(0, 100) == 0


def run(busy, start, rule=DRUID, minutes=61):
    """When something changes and to how many, where instances work such a share of their time."""
    memory, instances, changes = rule.initial_memory(), start, []
    for turn in range(minutes * 4):
        now_s = 15.0 * turn
        done = {"arrived_in_all": 1000 * turn, "completed_in_all": 1000 * turn}
        observation = looked(now_s, look("O1", instances, busy_share=busy, **done))
        memory, targets = rule.targets(memory, observation)
        if targets:
            instances = numbers(targets)["O1"]
            changes.append((now_s / 60, instances))
    return changes


def test_it_acts_every_ten_minutes_and_scales_up_at_once():
    assert run(0.95, 5, minutes=21) == [(10, 10), (20, 20)]


def test_a_scale_down_waits_half_an_hour_and_goes_two_counts():
    assert run(0.05, 50) == [(10, 25), (40, 17)]


def test_without_a_rate_it_says_nothing():
    looks = [looked(15.0 * turn, look("O1", 2, busy_share=0.9)) for turn in range(50)]
    assert asked_for(DRUID, *looks) == [{}] * 50
