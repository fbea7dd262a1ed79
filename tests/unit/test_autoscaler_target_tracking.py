"""Target tracking: the user guides of AWS Application Auto Scaling and EC2 Auto Scaling.

They name three minutes above the target, fifteen below, 300 s of cooldown for services, and that
scaling in waits until usage is "usually more than 10 % lower"; the capacity formula is not given.
"""

from __future__ import annotations

import pytest

from include.controllers.autoscalers.target_tracking import TargetTracking
from include.testing.builders import a_setting
from tests.autoscaler_world import look, looked, numbers

TRACKING = TargetTracking(setting=a_setting())


def run(shares, start=2, tracking=TRACKING):
    """The instances after every minute, of which the operator works such a share."""
    memory, instances, counts = tracking.initial_memory(), start, []
    for minute, share in enumerate(shares):
        now = looked(60.0 * minute, look("O1", instances, busy_share=share))
        memory, targets = tracking.targets(memory, now)
        instances = numbers(targets).get("O1", instances)
        counts.append(instances)
    return counts


def test_it_scales_out_in_proportion_after_three_minutes():
    assert run([0.75, 0.75, 0.75, 0.5]) == [2, 2, 3, 3]
    assert run([1.0, 1.0, 1.0]) == [2, 2, 4]


def test_a_minute_at_the_target_begins_anew():
    assert run([0.75, 0.75, 0.5, 0.75, 0.75, 0.75]) == [2] * 5 + [3]


def test_it_scales_in_after_fifteen_minutes_below():
    assert run([0.2] * 16, start=5) == [5] * 14 + [2, 2]


@pytest.mark.parametrize(("share", "last"), [(0.45, 5), (0.44, 5), (0.39, 4)])
def test_it_takes_away_only_what_keeps_usage_at_the_target(share, last):
    """0.45 is not below nine tenths of 0.5; 5 * 0.44 / 0.5 are 4.4, so all five are needed."""
    assert run([share] * 20, start=5)[-1] == last


def test_nothing_is_taken_away_in_the_cooldown():
    tracking = TargetTracking(setting=a_setting(), in_periods=1)
    assert run([0.2] + [0.01] * 6, start=5, tracking=tracking) == [2, 2, 2, 2, 2, 1, 1]


def test_missing_data_changes_no_alarm():
    assert run([0.75, None, 0.75, 0.75]) == [2, 2, 2, 3]
