"""Druid's cost-based autoscaler: worked examples of its formula, and when it acts.

Its own tests are rows of `tidebench conform`.
"""

from __future__ import annotations

import math

import pytest

from include.controllers.autoscalers.druid import Druid, StreamMetrics, amplified, shared_counts
from include.testing.builders import a_setting
from tests.autoscaler_world import asked_for, look, looked, numbers

DRUID = Druid(setting=a_setting())


def metrics(**changes):
    """8 tasks of 40 partitions that are idle for a tenth of their time, nothing waiting."""
    values = {"lag_items": 0.0, "tasks": 8, "partitions": 40, "idle_share": 0.1, "rate_per_s": 2e3}
    return StreamMetrics(**(values | changes))


def test_the_cost_of_twice_the_tasks_by_hand():
    """busy 0.9 (8 / 16) ^ 0.32 = 0.7210, idle 0.2790: 0.0290 of 0.75 above the optimum.

    16 (0.25 + (0.0290 / 0.75)^2) = 4.0239, of which 0.6 count. 80,000 items are 2,000 in each
    partition: 1 + 0.4 ln 2000 = 4.0404 times 80,000 / (16 * 2000) s = 10.1009 s, of which 0.4.
    """
    cost = DRUID.cost(metrics(lag_items=80_000), 16)
    assert cost == pytest.approx(0.6 * 4.0239 + 0.4 * 10.1009, abs=1e-3)


def test_tasks_that_cannot_do_the_work_cost_the_lag_that_they_will_have():
    """One task would be 0.9 * 8 ^ 0.32 = 1.7508 times busy: 0.7508 h of lag, and no idle time."""
    assert DRUID.cost(metrics(), 1) == pytest.approx(0.4 * 0.7508 * 3600 + 0.6 * 2.25, abs=0.1)


def test_the_first_version_prices_idle_seconds():
    """2 tasks of 4 that are 60 % idle are 20 % idle: 0.75 * 2 * 3600 * 0.2, and 0.25 * 500 / 20."""
    first = Druid(setting=a_setting(), version="18976", lag_weight=0.25, idle_weight=0.75)
    reading = metrics(lag_items=500, tasks=4, idle_share=0.6, rate_per_s=10.0)
    assert first.cost(reading, 2) == pytest.approx(1080 + 6.25)


@pytest.mark.parametrize(
    ("idle", "lag", "tasks"),
    [
        pytest.param(0.1, 0, 14, id="busy: 40 partitions by 3"),
        pytest.param(0.25, 0, 7, id="7 tasks are 21.7 % idle: 7 (0.25 + 2 * 0.131^2) < 8 * 0.25"),
        pytest.param(0.8, 0, 6, id="idle: the second count below"),
        pytest.param(0.25, 4e6, 40, id="lag: as many as there are partitions"),
    ],
)
def test_the_cheapest_count(idle, lag, tasks):
    assert DRUID.cheapest(metrics(idle_share=idle, lag_items=lag)) == tasks


def test_counts_share_out_the_partitions():
    assert shared_counts(10, 1, 100) == [1, 2, 3, 4, 5, 10]
    assert shared_counts(10, 2, 4) == [2, 3, 4]


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
