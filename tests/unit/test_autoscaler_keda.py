"""KEDA's RabbitMQ scaler (kedacore/keda, pkg/scalers/rabbitmq_scaler.go) behind an HPA.

``GetExternalPerPodMetricReplicas`` (kubernetes, replica_calculator.go) makes replicas of messages.
"""

from __future__ import annotations

import pytest

from include.controllers.autoscalers.keda import Keda, counted_lag, per_instance
from include.testing.builders import a_setting
from tests.autoscaler_world import asked_for, look, looked

KEDA = Keda(setting=a_setting())


@pytest.mark.parametrize(
    ("items", "current", "each", "wanted"),
    [
        pytest.param(30, 1, 10, 3, id="keda.sh: 30 messages, 10 for each pod, are 3 pods"),
        pytest.param(0, 3, 20, 0, id="an empty queue"),
        pytest.param(1, 3, 20, 1, id="rounded up"),
        pytest.param(61, 1, 20, 4, id="rounded up"),
        pytest.param(43, 2, 20, 2, id="1.075 is within the tolerance"),
        pytest.param(45, 2, 20, 3, id="1.125 is not"),
        pytest.param(37, 2, 20, 2, id="0.925 is within the tolerance"),
    ],
)
def test_instances_follow_from_messages(items, current, each, wanted):
    assert per_instance(items, current, each, (0.1, 0.1)) == wanted


def test_messages_are_those_of_the_longest_queue_with_the_unacknowledged():
    """Each queue is a trigger of its own, and the HPA takes the highest: 61 of 20, not 90."""
    now = looked(0, look("O1", 2, waiting=90, longest_queue_items=61))
    assert asked_for(KEDA, now) == [{"O1": 4}]


def test_where_nobody_counts_by_queue_all_that_waits_counts():
    now = looked(0, look("O1", 3, waiting=70))
    assert asked_for(KEDA, now) == [{"O1": 4}]


def test_it_goes_down_to_one_after_the_window_of_the_hpa():
    looks = [looked(15.0 * turn, look("O1", 7, waiting=0)) for turn in range(22)]
    assert asked_for(KEDA, *looks) == [{"O1": 7}] * 21 + [{"O1": 1}]


def test_it_never_asks_for_more_than_a_hundred():
    """``maxReplicaCount``; 50 double to 100 at once, and stay there."""
    now = looked(0, look("O1", 80, waiting=100_000))
    assert asked_for(KEDA, now) == [{"O1": 100}]


def test_a_failed_read_is_no_reading():
    assert KEDA.targets(KEDA.initial_memory(), looked(0)) == (KEDA.initial_memory(), {})


KAFKA = Keda(setting=a_setting(), scaler="kafka", items_each=10, partitions=5)


def lag(*lags, each=10.0, **options):
    return counted_lag(lags, each, **options)


def test_kafka_counts_no_more_lag_than_asks_for_one_instance_of_each_partition():
    """``getTotalLag``: 61 / 10 are 6 of 5 partitions, so 50; 59 / 10 are 5."""
    assert lag(61, 0, 0, 0, 0) == 50
    assert lag(59, 0, 0, 0, 0) == 59
    assert lag(61, 0, 0, 0, 0, allow_idle=True) == 61


def test_kafka_counts_only_partitions_with_lag():
    assert lag(61, 3, 0, 0, 0, limit_to_lag=True) == 20
    assert lag(5, 3, 0, 0, 0, limit_to_lag=True) == 8


def test_kafka_shares_partitions_out_evenly():
    """Of 6 partitions 1, 2, 3 and 6 instances have as many each; 35 items need 4, so 6."""
    assert lag(35, 0, 0, 0, 0, 0, even_partitions=True) == 60
    assert lag(25, 0, 0, 0, 0, 0, even_partitions=True) == 30


@pytest.mark.parametrize(("waiting", "wanted"), [(35, 4), (49, 4), (700, 4), (0, 2)])
def test_kafka_asks_for_as_many_as_its_partitions(waiting, wanted):
    """From two; an object without ``behavior`` takes no more than four at once."""
    now = looked(0, look("O1", 2, waiting=waiting, completed_items=1))
    assert asked_for(KAFKA, now) == [{"O1": wanted}]


def test_kafka_leaves_out_lag_of_an_operator_that_stands_still():
    stuck = Keda(setting=a_setting(), scaler="kafka", exclude_persistent=True)
    for completed, wanted in ((0, 3), (1, 6)):
        now = looked(0, look("O1", 3, waiting=200, completed_items=completed))
        assert asked_for(stuck, now) == [{"O1": wanted}]


def test_nothing_is_asked_for_below_the_activation():
    keda = Keda(setting=a_setting(), activation_items=50, items_each=5, behavior={})
    for waiting, wanted in ((50, 2), (51, 6)):
        now = looked(0, look("O1", 2, waiting=waiting))
        assert asked_for(keda, now) == [{"O1": wanted}]
