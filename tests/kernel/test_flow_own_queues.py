"""Executors with queues of their own, as under Storm's shuffle grouping."""

from __future__ import annotations

import pytest

from tests.builders import measured_at
from tests.kernel.flows import a_chain, a_config, started


def mean_wait_s(instances: int, level: float, **calibration: object) -> float:
    config = a_config(a_chain("O1"), level, calibration={"arrival_cv": 1.0, **calibration})
    testbed = started(config, hosts=2, instances=instances)
    wait_ms = measured_at(testbed, 3600)["processing_duration"]["wait_ms"]
    return float(wait_ms.mean()) / 1000


@pytest.mark.parametrize(("instances", "utilisation"), [(1, 0.5), (4, 0.5), (8, 0.7)])
def test_each_is_a_queue_of_its_own_as_pollaczek_and_khinchine_say(instances, utilisation):
    """Poisson arrivals dealt out at random are Poisson at each of the queues."""
    level = 10 * instances * utilisation
    cv = 0.8
    wait_s = mean_wait_s(instances, level, own_queues=True, service_cv=cv)
    expected_s = 0.1 * utilisation / (1 - utilisation) * (1 + cv**2) / 2
    assert wait_s == pytest.approx(expected_s, rel=0.1)


def test_one_queue_for_all_waits_far_less():
    """Why parallelism alone does not meet an SLO of Fig. 11, but low capacity does."""
    assert mean_wait_s(8, 56.0) < mean_wait_s(8, 56.0, own_queues=True) / 3
