"""The HorizontalPodAutoscaler (kubernetes, pkg/controller/podautoscaler, and its documentation),
and KEDA's RabbitMQ scaler (kedacore/keda, pkg/scalers/rabbitmq_scaler.go) in front of it.

Those of upstream's own tests are rows of `tidebench conform` (test_conformance.py).
``GetExternalPerPodMetricReplicas`` (replica_calculator.go) makes replicas of messages.
"""

from __future__ import annotations

import pytest

from include.controllers.autoscalers.hpa import Hpa, replicas
from include.controllers.autoscalers.keda import Keda, counted_lag
from include.testing.builders import a_setting
from tests.autoscaler_world import asked_for, look, looked, numbers

HPA = Hpa(setting=a_setting())


@pytest.mark.parametrize(
    ("shares", "unready", "target", "wanted"),
    [
        pytest.param([0.4], 2, 0.3, 3, id="TestReplicaCalcScaleUpUnreadyNoScale"),
        pytest.param([2.0], 0, 1.0, 2, id="documentation: 200m of 100m doubles"),
        pytest.param([0.5] * 4, 0, 1.0, 2, id="documentation: 50m of 100m halves"),
        pytest.param([0.9] * 50, 0, 0.75, 60, id="blog of v1.33: 50 * 90/75"),
        pytest.param([0.87] * 10, 0, 0.8, 10, id="1.0875 is within the tolerance"),
        pytest.param([0.88] * 10, 0, 0.8, 11, id="1.1 is not: floating point, as in Go"),
        pytest.param([0.72] * 10, 0, 0.8, 10, id="0.9 is within the tolerance"),
        pytest.param([0.71] * 10, 0, 0.8, 9, id="0.8875 is not"),
        pytest.param([0.8, 0.8], 1, 0.5, 3, id="up: unready ones use nothing"),
        pytest.param([0.8, None], 0, 0.8, 2, id="on the target: missing ones are left out"),
        pytest.param([None, None], 1, 0.8, None, id="nothing was read"),
        pytest.param([0.87, 0.87], 0, 0.58, 3, id="58 is a whole percent, 100 * 0.58 is less"),
    ],
)
def test_replicas_follow_from_usage(shares, unready, target, wanted):
    assert replicas(shares, unready, target, (0.1, 0.1)) == wanted


def run(hpa, *looks):
    """The numbers that each look gives, 15 s apart; the first three numbers of a look are its
    instances and the CPU of each."""
    observations = [
        looked(15.0 * turn, look("O1", count, cpu=[share] * count))
        for turn, (count, share) in enumerate(looks)
    ]
    return [asked.get("O1") for asked in asked_for(hpa, *observations)]


def test_a_scale_down_waits_for_the_highest_recommendation_of_300_s():
    """TestScaleDownStabilizeInitialSize: what is there at first is a recommendation, too."""
    assert run(HPA, *[(5, 0.2)] * 22) == [5] * 20 + [2] * 2


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
    assert HPA.normalised(0.0, current, wanted, (), ()) == limited


def test_policies_count_over_their_period_and_not_per_look():
    """Four pods a minute are four, in however many syncs."""
    four = {"scale_up": {"policies": [{"instances": 4, "percent": None, "period_s": 60}]}}
    hpa = Hpa(setting=a_setting(), behavior=four)
    assert list(hpa.problems()) == []
    assert run(hpa, (2, 20.0), *[(6, 20.0)] * 4) == [6, 6, 6, 6, 10]


def test_a_failed_read_recommends_nothing():
    """Neither is an operator touched nor its history that was not read."""
    memory, _ = HPA.targets(HPA.initial_memory(), looked(0, look("O1", 2, cpu=[0.8, 0.8])))
    later, targets = HPA.targets(memory, looked(15, look("O1", 2)))
    assert targets == {}
    assert later == memory


@pytest.mark.parametrize(("count", "wanted"), [(1, 2), (5, 4)])
def test_an_operator_outside_of_its_bounds_is_brought_back_unmeasured(count, wanted):
    """horizontal.go, reconcileAutoscaler: "} else if currentReplicas > hpa.Spec.MaxReplicas {"
    and "} else if currentReplicas < minReplicas {" stand before computeReplicasForMetrics."""
    hpa = Hpa(setting=a_setting(), min_instances=2, max_instances=4)
    for cpu in (None, 0.8):
        memory, targets = hpa.targets(
            hpa.initial_memory(), looked(0, look("O1", count, cpu=[cpu] * count))
        )
        assert numbers(targets) == {"O1": wanted}
        assert memory.recommended == {"O1": ((0, count),)}


def test_the_first_look_is_a_recommendation_even_where_nothing_is_read():
    """horizontal.go, reconcileAutoscaler: "a.recordInitialRecommendation(currentReplicas, key)"
    stands before the metrics."""
    assert run(HPA, (5, None), *[(5, 0.2)] * 21) == [None] + [5] * 19 + [2] * 2


KEDA = Keda(setting=a_setting())


def test_it_goes_down_to_one_after_the_window_of_the_hpa():
    looks = [looked(15.0 * turn, look("O1", 7, waiting=0)) for turn in range(22)]
    assert asked_for(KEDA, *looks) == [{"O1": 7}] * 21 + [{"O1": 1}]


KAFKA = Keda(setting=a_setting(), scaler="kafka", items_each=10, partitions=5)
STUCK = Keda(setting=a_setting(), scaler="kafka", exclude_persistent=True)
SELDOM = Keda(setting=a_setting(), activation_items=50, items_each=5, behavior={})


@pytest.mark.parametrize(
    ("lags", "options", "counted"),
    [
        # getTotalLag: 61 / 10 are 6 of 5 partitions, so 50; 59 / 10 are 5.
        ((61, 0, 0, 0, 0), {}, 50),
        ((59, 0, 0, 0, 0), {}, 59),
        ((61, 0, 0, 0, 0), {"allow_idle": True}, 61),
        ((61, 3, 0, 0, 0), {"limit_to_lag": True}, 20),
        ((5, 3, 0, 0, 0), {"limit_to_lag": True}, 8),
        # Of 6 partitions 1, 2, 3 and 6 instances have as many each; 35 items need 4, so 6.
        ((35, 0, 0, 0, 0, 0), {"even_partitions": True}, 60),
        ((25, 0, 0, 0, 0, 0), {"even_partitions": True}, 30),
    ],
)
def test_kafka_counts_lag_by_its_partitions(lags, options, counted):
    assert counted_lag(lags, 10.0, **options) == counted


@pytest.mark.parametrize(
    ("scaler", "count", "sample", "wanted"),
    [
        # Each queue is a trigger of its own, and the HPA takes the highest: 61 of 20, not 90.
        (KEDA, 2, {"waiting": 90, "longest_queue_items": 61}, 4),
        (KEDA, 3, {"waiting": 70}, 4),  # nobody counts by queue
        (KEDA, 80, {"waiting": 100_000}, 100),  # maxReplicaCount
        # As many as its partitions; without ``behavior`` no more than four at once.
        *((KAFKA, 2, {"waiting": items, "completed_items": 1}, 4) for items in (35, 49, 700)),
        (KAFKA, 2, {"waiting": 0, "completed_items": 1}, 2),
        # Lag of an operator that stands still is left out.
        (STUCK, 3, {"waiting": 200, "completed_items": 0}, 3),
        (STUCK, 3, {"waiting": 200, "completed_items": 1}, 6),
        (SELDOM, 2, {"waiting": 50}, 2),  # below the activation
        (SELDOM, 2, {"waiting": 51}, 6),
    ],
)
def test_one_look_asks_for(scaler, count, sample, wanted):
    assert asked_for(scaler, looked(0, look("O1", count, **sample))) == [{"O1": wanted}]
