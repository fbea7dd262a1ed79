"""The HorizontalPodAutoscaler: kubernetes, pkg/controller/podautoscaler, and its documentation.

Numbers of ``replica_calculator_test.go`` and ``horizontal_test.go`` (00067268) are named by test.
"""

from __future__ import annotations

import pytest

from include.controllers.autoscalers.hpa import Hpa, percent, replicas
from include.testing.builders import a_setting
from tests.today_world import look, looked, numbers

HPA = Hpa(setting=a_setting())


@pytest.mark.parametrize(
    ("shares", "unready", "target", "wanted"),
    [
        pytest.param([0.3, 0.5, 0.7], 0, 0.3, 5, id="TestReplicaCalcScaleUp"),
        pytest.param([0.5, 0.7], 1, 0.3, 4, id="TestReplicaCalcScaleUpUnreadyLessScale"),
        pytest.param([0.4], 2, 0.3, 3, id="TestReplicaCalcScaleUpUnreadyNoScale"),
        pytest.param([0.1, 0.3, 0.5, 0.25, 0.25], 0, 0.5, 3, id="TestReplicaCalcScaleDown"),
        pytest.param([2.0], 0, 1.0, 2, id="documentation: 200m of 100m doubles"),
        pytest.param([0.5] * 4, 0, 1.0, 2, id="documentation: 50m of 100m halves"),
        pytest.param([0.9] * 50, 0, 0.75, 60, id="blog of v1.33: 50 * 90/75"),
        pytest.param([0.87] * 10, 0, 0.8, 10, id="1.0875 is within the tolerance"),
        pytest.param([0.88] * 10, 0, 0.8, 11, id="1.1 is not: floating point, as in Go"),
        pytest.param([0.72] * 10, 0, 0.8, 10, id="0.9 is within the tolerance"),
        pytest.param([0.71] * 10, 0, 0.8, 9, id="0.8875 is not"),
        pytest.param([0.2, 0.2, None, None], 0, 0.8, 3, id="down: missing ones use all"),
        pytest.param([1.0, 1.0, None, None], 0, 0.6, 4, id="up: missing ones turn nothing around"),
        pytest.param([1.0, 1.0, 1.0, None], 0, 0.6, 5, id="up: missing ones use nothing"),
        pytest.param([0.2, None, None, None], 0, 0.8, 4, id="down: they turn nothing around"),
        pytest.param([0.3, 0.3], 2, 0.8, 1, id="down: unready ones do not count"),
        pytest.param([None, None], 1, 0.8, None, id="nothing was read"),
    ],
)
def test_replicas_follow_from_usage(shares, unready, target, wanted):
    assert replicas(shares, unready, target, 0.1) == wanted


def test_utilisation_is_a_whole_percentage_cut_off():
    """``GetResourceUtilizationRatio`` divides integers: 28.9 % are 28."""
    assert percent([0.289]) == 28
    assert percent([0.29]) == 29


def run(hpa, *looks):
    """The numbers that each look gives, 15 s apart; the first three numbers of a look are its
    instances and the CPU of each."""
    memory, found = hpa.initial_memory(), []
    for turn, (count, share) in enumerate(looks):
        now = looked(15.0 * turn, look("O1", count, cpu=[share] * count))
        memory, targets = hpa.targets(memory, now)
        found.append(numbers(targets).get("O1"))
    return found


def test_a_scale_down_waits_for_the_highest_recommendation_of_300_s():
    """TestScaleDownStabilizeInitialSize: what is there at first is a recommendation, too."""
    assert run(HPA, *[(5, 0.2)] * 22) == [5] * 20 + [2] * 2


def test_a_scale_up_does_not_wait_and_forgets_nothing():
    assert run(HPA, (2, 0.4), (2, 1.0), (3, 0.2), *[(3, 0.2)] * 20)[:4] == [2, 3, 3, 3]
    assert run(HPA, (2, 0.4), (2, 1.0), (3, 0.2), *[(3, 0.2)] * 20)[-1] == 1


@pytest.mark.parametrize(
    ("current", "wanted", "limited"),
    [
        (1, 50, 5),  # "4 pods or 100 % every 15 seconds, whichever is more"
        (4, 50, 8),
        (10, 50, 20),
        (60, 200, 100),
        (10, 12, 12),
        (100, 1, 1),  # "100 % of the currently running replicas can be removed"
        (3, 0, 1),
    ],
)
def test_the_default_policies_limit_one_sync(current, wanted, limited):
    assert HPA.limited(current, wanted) == limited


def test_fewer_may_be_removed_at_once():
    assert Hpa(setting=a_setting(), down_percent=10.0).limited(80, 10) == 72


def test_defaults_are_those_of_the_source():
    assert (HPA.interval_s, HPA.target_cpu, HPA.tolerance, HPA.stabilise_s) == (15, 0.8, 0.1, 300)
    assert (HPA.up_instances, HPA.up_percent, HPA.down_percent) == (4, 100, 100)


def test_a_failed_read_recommends_nothing():
    """Neither is an operator touched nor its history that was not read."""
    memory, _ = HPA.targets(HPA.initial_memory(), looked(0, look("O1", 2, cpu=[0.8, 0.8])))
    later, targets = HPA.targets(memory, looked(15, look("O1", 2)))
    assert targets == {}
    assert later == memory


def test_options_that_make_no_sense_are_named():
    wrong = Hpa(setting=a_setting(), target_cpu=1.5, release="at once", up_instances=0)
    told = "\n".join(wrong.problems())
    for name in ("target_cpu", "release", "up_instances"):
        assert name in told
    assert not [*HPA.problems()]
