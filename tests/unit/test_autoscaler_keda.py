"""KEDA's RabbitMQ scaler (kedacore/keda, pkg/scalers/rabbitmq_scaler.go) behind an HPA.

``GetExternalPerPodMetricReplicas`` (kubernetes, replica_calculator.go) makes replicas of messages.
"""

from __future__ import annotations

import pytest

from include.controllers.autoscalers.keda import Keda, counted_lag
from include.testing.builders import a_setting
from tests.autoscaler_world import asked_for, look, looked

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
