"""KEDA's RabbitMQ scaler (kedacore/keda, pkg/scalers/rabbitmq_scaler.go) behind an HPA.

``GetExternalPerPodMetricReplicas`` (kubernetes, replica_calculator.go) makes replicas of messages.
"""

from __future__ import annotations

import pytest

from include.controllers.autoscalers.keda import Keda, per_instance
from include.testing.builders import a_setting
from tests.today_world import look, looked, numbers

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
    assert numbers(KEDA.targets(KEDA.initial_memory(), now)[1]) == {"O1": 4}


def test_where_nobody_counts_by_queue_all_that_waits_counts():
    now = looked(0, look("O1", 3, waiting=70))
    assert numbers(KEDA.targets(KEDA.initial_memory(), now)[1]) == {"O1": 4}


def test_it_goes_down_to_one_after_the_window_of_the_hpa():
    memory, found = KEDA.initial_memory(), []
    for turn in range(22):
        now = looked(15.0 * turn, look("O1", 7, waiting=0))
        memory, targets = KEDA.targets(memory, now)
        found.append(numbers(targets)["O1"])
    assert found == [7] * 21 + [1]


def test_it_never_asks_for_more_than_a_hundred():
    """``maxReplicaCount``; 50 double to 100 at once, and stay there."""
    now = looked(0, look("O1", 80, waiting=100_000))
    assert numbers(KEDA.targets(KEDA.initial_memory(), now)[1]) == {"O1": 100}


def test_a_failed_read_is_no_reading():
    assert KEDA.targets(KEDA.initial_memory(), looked(0)) == (KEDA.initial_memory(), {})


def test_defaults_are_those_of_the_source():
    """defaultRabbitMQQueueLength is 20."""
    assert (KEDA.items_each, KEDA.max_instances, KEDA.stabilise_s) == (20, 100, 300)
