"""Utilities and congestion: Henge, sections 4.1 and 4.2, eq. 1 to 4."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.controllers.henge.jobs import capacity_of, congested_hosts, extra_instances
from include.model.observation import OperatorSample, TenantSample
from include.model.tenant import Intent
from include.model.utility import juice_share, latency_share, utility
from include.testing.builders import a_host, a_sample, an_instance, an_observation


def a_tenant(
    latency_ms: float | None = None,
    juice: float | None = None,
    tail_latency_ms: float | None = None,
) -> TenantSample:
    return TenantSample(
        tenant="T1", latency_ms=latency_ms, tail_latency_ms=tail_latency_ms, juice=juice
    )


@pytest.mark.parametrize(
    ("latency_ms", "expected"),
    [(0.0, 1.0), (99.9, 1.0), (100.0, 1.0), (125.0, 0.8), (200.0, 0.5), (1000.0, 0.1)],
)
def test_eq_2_a_plateau_up_to_the_threshold_then_hyperbolic(
    latency_ms: float, expected: float
) -> None:
    assert latency_share(latency_ms, 100.0) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("juice", "expected"), [(0.0, 0.0), (0.4, 0.5), (0.8, 1.0), (1.0, 1.0), (1.05, 1.0)]
)
def test_eq_1_linear_from_the_origin_to_the_threshold(juice: float, expected: float) -> None:
    assert juice_share(juice, 0.8) == pytest.approx(expected)


def test_a_job_with_twice_the_priority_has_twice_the_utility() -> None:
    """Fig. 2a: T2 has 20 where T1 has 10."""
    sample = a_tenant(juice=0.5)
    t1, t2 = (Intent(max_utility=worth, juice=1.0) for worth in (10.0, 20.0))
    assert utility(t1, sample) == 5.0
    assert utility(t2, sample) == 10.0


def test_a_hybrid_slo_is_worth_the_mean_of_its_two_utilities() -> None:
    """Section 7.2.2: juice 1.0, latency 70 ms, max utility 35."""
    intent = Intent(max_utility=35.0, latency_ms=70.0, juice=1.0)
    assert utility(intent, a_tenant(latency_ms=140.0, juice=1.0)) == 35 * (0.5 + 1.0) / 2
    assert utility(intent, a_tenant(latency_ms=70.0, juice=0.8)) == pytest.approx(35 * 1.8 / 2)
    assert utility(intent, a_tenant(latency_ms=70.0, juice=1.0)) == 35


def test_a_tail_latency_takes_the_place_of_the_mean() -> None:
    sample = a_tenant(latency_ms=50.0, tail_latency_ms=200.0)
    assert utility(Intent(latency_ms=100.0), sample) == 1.0
    assert utility(Intent(latency_ms=100.0, tail=True), sample) == 0.5


@pytest.mark.parametrize(
    ("intent", "sample"),
    [
        (Intent(latency_ms=100.0), a_tenant(juice=1.0, tail_latency_ms=3.0)),
        (Intent(latency_ms=100.0, tail=True), a_tenant(latency_ms=3.0)),
        (Intent(juice=1.0), a_tenant(latency_ms=3.0)),
        (Intent(latency_ms=100.0, juice=1.0), a_tenant(latency_ms=3.0)),
    ],
)
def test_without_the_metric_of_its_slo_a_job_has_no_utility(
    intent: Intent, sample: TenantSample
) -> None:
    assert utility(intent, sample) is None


def test_points_of_the_user_are_joined_by_lines_below_the_threshold() -> None:
    points = ((0.2, 0.0), (0.5, 0.4), (1.0, 0.8))
    assert juice_share(0.1, 1.0, points) == 0.0
    assert juice_share(0.35, 1.0, points) == pytest.approx(0.2)
    assert juice_share(0.75, 1.0, points) == pytest.approx(0.6)
    assert juice_share(1.0, 1.0, points) == 1.0  # the maximum, whatever the points say
    assert latency_share(200.0, 100.0, points) == pytest.approx(0.4)


def test_a_step_function_is_two_points_at_one_place() -> None:
    """ "Utility functions do not need to be continuous."""
    step = ((0.5, 0.0), (0.5, 0.7))
    assert juice_share(0.49, 1.0, step) == 0.0
    assert juice_share(0.5, 1.0, step) == 0.7
    assert juice_share(0.99, 1.0, step) == 0.7


monotone = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=6).map(
    lambda points: tuple(
        zip(sorted(x for x, _ in points), sorted(y for _, y in points), strict=True)
    )
)


@given(points=monotone, better=st.floats(1e-3, 1e4), worse=st.floats(1e-3, 1e4))
def test_utility_never_rises_with_latency(
    points: tuple[tuple[float, float], ...], better: float, worse: float
) -> None:
    better, worse = sorted((better, worse))
    assert 0 <= latency_share(worse, 100.0, points) <= latency_share(better, 100.0, points) <= 1


def an_executor_sample(capacity: float | None) -> OperatorSample:
    return OperatorSample(
        operator="O1",
        waiting_items=0,
        durations_ms=(),
        arrived_items=0,
        completed_items=0,
        capacity=capacity,
    )


def test_eq_3_is_the_capacity_of_the_busiest_executor() -> None:
    """Executed tuples times execute latency per unit time, the maximum over executors."""
    observation = an_observation(
        operators=[a_sample("O1")],
        running=[
            an_instance("i1", "O1", cpu_share=100 * 0.002),  # 100 tuples of 2 ms in a second
            an_instance("i2", "O1", cpu_share=300 * 0.002),
            an_instance("i3", "O1", cpu_share=0.9, ready=False),
            an_instance("i4", "O2", cpu_share=0.95),
        ],
    )
    assert capacity_of(observation.operators["O1"], observation) == pytest.approx(0.6)
    assert capacity_of(an_executor_sample(0.25), observation) == 0.25
    assert capacity_of(an_executor_sample(1.2), observation) == 1.0


def test_an_unknown_capacity_is_none_and_not_zero() -> None:
    observation = an_observation(operators=[a_sample("O1")], running=[an_instance("i1", "O1")])
    assert capacity_of(observation.operators["O1"], observation) is None


@pytest.mark.parametrize(
    ("capacity", "extra"),
    # 10 executors with 70 ms become "an average of 18": a capacity of 0.54.
    [(0.54, 8), (0.6, 10), (0.9, 20), (1.0, 24), (0.33, 1), (0.301, 1), (0.45, 5)],
)
def test_eq_4_extra_threads_follow_congestion(capacity: float, extra: int) -> None:
    assert extra_instances(capacity) == extra


def test_a_machine_is_congested_when_its_load_exceeds_its_cores() -> None:
    loads = (4.0, 4.1, 9.0, None)
    hosts = [a_host(f"h{i}", runnable=load) for i, load in enumerate(loads)]
    assert congested_hosts(an_observation(hosts=hosts), cores=4) == (2, 3)
