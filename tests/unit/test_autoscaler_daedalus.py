"""Daedalus: dos-group/daedalus at 6a55dcb, daedalus/*.py; each test names the file.

The repository has no tests with numbers, so expectations are worked out from its formulas.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from include.controllers.autoscalers import forecast
from include.controllers.autoscalers.daedalus import (
    Daedalus,
    FittedLine,
    OperatorHistory,
    ScaleOutForecast,
    percentage_error,
    scale_out,
)
from include.testing.builders import a_setting
from tests.autoscaler_world import asked_for, flowing, instances_under, looked

DAEDALUS = Daedalus(setting=a_setting())


def test_the_line_is_that_of_least_squares():
    """regression.py: running covariance and variance, not one point kept."""
    generator = np.random.default_rng(1)
    x = generator.random(50)
    y = 3 + 40 * x + generator.normal(0, 0.5, 50)
    line = FittedLine()
    for point in zip(x.tolist(), y.tolist(), strict=True):
        line = line.with_one(*point)
    slope, intercept = np.polyfit(x, y, 1)
    assert line.at(1.0) == pytest.approx(slope + intercept, rel=1e-9)


def test_one_point_is_a_line_through_nothing():
    assert FittedLine().with_one(0.25, 5.0).at(1.0) == 20.0
    assert FittedLine().at(1.0) == 0.0


def an_outlook(current=2, each=10.0, workload=15.0, lag=0, ahead=15.0):
    return ScaleOutForecast(
        history=OperatorHistory(each=each),
        current=current,
        workload_per_s=workload,
        lag=lag,
        forecast=np.full(900, ahead) if isinstance(ahead, float) else ahead,
        up_s=30,
        down_s=15,
    )


@pytest.mark.parametrize(
    ("outlook", "wanted"),
    [
        pytest.param({}, 2, id="2 * 10 are more than 15, and recover in 600 s"),
        pytest.param({"workload": 25.0, "ahead": 25.0}, 3, id="30 are more than 25"),
        pytest.param({"workload": 15.0, "ahead": 42.0}, 5, id="the forecast needs more"),
        pytest.param({"current": 4}, 2, id="4 to 2"),
        pytest.param({"current": 4, "lag": 41}, 4, id="no scale-down with more lag than capacity"),
        pytest.param({"lag": 2600}, 3, id="2 take more than 600 s to recover"),
        pytest.param({"ahead": 500.0}, 18, id="past the maximum"),
        pytest.param({"current": 1, "workload": 0.0, "ahead": 0.0}, 1, id="nothing to do"),
    ],
)
def test_the_smallest_scale_out_that_does(outlook, wanted):
    """execution_manager.py, determine_scaleout; max_scaleout of config.py is 18."""
    assert scale_out(an_outlook(**outlook), 1e9, 18, 600, 600) == wanted


def test_a_change_without_a_pause_has_recovered_at_once():
    outlook = replace(an_outlook(current=1, workload=0.5, ahead=0.5), up_s=0, down_s=0)
    assert scale_out(outlook, 1e9, 18, 600, 600) == 1


def test_within_ten_minutes_only_what_must_be():
    """ "try to minimize scaling decisions before 10 minutes"."""
    rising = np.concatenate([np.full(60, 15.0), np.full(840, 42.0)])
    assert scale_out(an_outlook(ahead=rising), 599, 18, 600, 600) == 2
    assert scale_out(an_outlook(ahead=rising), 600, 18, 600, 600) == 5
    assert scale_out(an_outlook(workload=25.0, ahead=25.0), 599, 18, 600, 600) == 3


def test_the_error_is_a_share_of_the_workload():
    """forecasting.py, wape."""
    assert percentage_error(20.0, (15.0, 99.0)) == 0.25
    assert percentage_error(20.0, ()) == float("inf")


def test_an_autoregressive_process_is_recognised():
    """Changes that swing back are forecast to swing back; what has no pattern goes on as it was."""
    generator, value, change, values = np.random.default_rng(3), 100.0, 0.0, []
    for _ in range(300):
        change = -0.8 * change + float(generator.normal(0, 1))
        value += change
        values.append(value)
    last = values[-1] - values[-2]
    ahead = forecast.autoregressive(values, 2)
    assert ahead[0] - values[-1] == pytest.approx(-0.8 * last, abs=0.3)
    assert forecast.autoregressive([5.0, 7.0], 3) == [7.0, 7.0, 7.0]
    assert forecast.autoregressive([2.0 * n for n in range(20)], 2) == pytest.approx([40, 42])
    assert forecast.autoregressive([20.0 - n for n in range(20)], 9)[-1] == 0.0


def test_a_line_goes_on_and_never_below_nothing():
    assert forecast.line([1.0, 2.0, 3.0], 2) == pytest.approx([4.0, 5.0])
    assert forecast.line([2.0, 1.0], 3) == pytest.approx([0.0, 0.0, 0.0], abs=1e-9)
    assert forecast.line([4.0], 2) == [4.0, 4.0]


def test_in_the_first_five_minutes_only_what_must_be():
    """execution_manager.py: "self.last_rescale = time.time()-300", and ten minutes from there."""
    looks = enumerate(flowing("O1", [(900, 900, 0.375)] * 6, count=4))
    asked = asked_for(DAEDALUS, *(looked(60.0 * minute, o1) for minute, o1 in looks))
    assert asked == [{}] * 5 + [{"O1": 2}, {}]


def test_a_load_above_capacity_is_answered_at_once_and_then_left_alone():
    """25/s of instances of 10/s each: three. Nothing is learned of the first two minutes
    (capacity.py: "uptime[uptime.values < 120000]")."""
    counts = instances_under(lambda _: 25 * 60, DAEDALUS, 40, each=600)
    assert counts[:2] == [1, 1]
    assert set(counts[2:]) <= {3, 4}
    assert counts[-1] == 3
