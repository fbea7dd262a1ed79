"""Flink's autoscaler: apache/flink-kubernetes-operator at 6e9caeb, module flink-autoscaler.

Numbers of its own tests are rows (``upstream/flink.json``), which ``test_conformance.py`` runs.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from include.controllers.autoscalers.flink import Flink, Vertex
from include.testing.builders import a_setting, a_topology, an_operator
from tests.autoscaler_world import asked_for, flowing, instances_under, look, looked

SETTING = a_setting(a_topology("O1", "O2"))
FLINK = Flink(setting=SETTING)


def flink(**options):
    return Flink(setting=SETTING, **options)


def vertex(current, target, true, catch_up=0.0):
    return Vertex(current=current, target_per_s=target, true_per_s=true, catch_up_per_s=catch_up)


def test_without_lag_the_defaults_provide_for_1_595_times_the_input():
    """1 / 0.7 + 300 / 1800; a quarter of it waits while nothing is done within the bounds."""
    assert FLINK.capacity_per_s(vertex(1, 100_000, 1.0), 0.7, restart=True) == 159_524
    assert FLINK.bounds_per_s(vertex(1, 1000, 1.0), backlog=False) == (1000, 2667)


def test_while_it_waits_it_says_what_for():
    memory, because = FLINK.initial_memory(), []
    for minute, o1 in enumerate(flowing("O1", [(600, 600, 0.5)] * 21)):
        memory, decision = FLINK.decide(memory, looked(60.0 * minute, o1))
        because.append(decision.because)
    assert because[:5] == ["it lets a change settle for 300 s"] * 5
    assert because[5:20] == ["its window of 900 s is not full yet"] * 15
    assert because[20:] == ["no operator that was read should have more or fewer instances"] * 2


def test_after_a_change_it_waits_for_a_whole_window_again():
    """50/s from minute 21 on; with 7.8/s to catch up they take 88/s, and five instances."""
    counts = instances_under(lambda minute: 1300 if minute <= 20 else 3000, FLINK, 50)
    assert counts == [1] * 20 + [2] * 20 + [5] * 10


def quiet(minute):
    """Two instances are needed in the first half hour, then one is enough."""
    return 1300 if minute < 30 else 120


def test_a_scale_down_waits_an_hour():
    """The first decision after the change of minute 20 is that of minute 40."""
    assert instances_under(quiet, FLINK, 120) == [1] * 20 + [2] * 80 + [1] * 20
    assert (
        instances_under(quiet, flink(scale_down_after_s=0.0), 60) == [1] * 20 + [2] * 20 + [1] * 20
    )


def test_after_a_scale_up_nothing_goes_down_within_the_grace_of_older_operators():
    """Up at minute 20, less is enough from minute 30 on, and the hour is over at minute 80
    (1.6.0, JobVertexScalerTest.testScaleDownAfterScaleUpDetection)."""
    older = flink(scale_down_after_s=0.0, up_grace_s=3600.0)
    assert instances_under(quiet, older, 120) == [1] * 20 + [2] * 60 + [1] * 40


def test_what_was_scaled_down_last_may_go_down_further():
    def less_and_less(minute):
        return 5000 if minute < 30 else 1300 if minute < 90 else 120

    older = flink(scale_down_after_s=0.0, up_grace_s=3600.0)
    counts = instances_under(less_and_less, older, 140)
    downs = [minute for minute in range(1, 140) if counts[minute] < counts[minute - 1]]
    assert len(downs) >= 2
    assert downs[1] - downs[0] < 60


def test_a_job_that_was_started_again_is_read_anew():
    """ScalingMetricCollector: a job updated after the first reading clears them all."""
    observations = []
    for minute, o1 in enumerate(flowing("O1", [(1300, 1200, 1.0)] * 59)):
        started_s = 600.0 if minute > 10 else 0.0
        observations.append(replace(looked(60.0 * minute, o1), job_started_s=started_s))
    asked = asked_for(FLINK, *observations)
    assert next(minute for minute, numbers in enumerate(asked) if numbers) == 10 + 20


@pytest.mark.parametrize(
    ("wanted", "gets"),
    [(1, 1), (5, 6), (7, 8), (9, 12), (12, 12), (13, 13), (23, 23), (24, 24), (40, 24)],
)
def test_key_groups_are_spread_evenly_up_to_half_of_them(wanted, gets):
    """1.6.0, JobVertexScaler.scale: the next divisor up to numKeyGroups / 2, else as computed."""
    rules = flink(target_share=1.0, restart_s=0.0, most_down=0.99, key_groups=24)
    assert rules.wanted("O1", vertex(10, wanted * 10, 100)) == gets


STATEFUL = a_setting(a_topology("O1", "O2", an_operator("O3", stateful=True)))


@pytest.mark.parametrize(
    ("version", "wanted"),
    [
        ("1.6", (8, 8, 8)),
        ("1.7", (8, 8, 8)),
        ("1.8", (8, 7, 8)),
        ("1.9", (8, 7, 8)),
        ("1.10", (7, 7, 8)),
        ("1.15", (7, 7, 8)),
        ("main", (7, 7, 8)),
    ],
)
def test_since_1_8_only_sources_and_operators_behind_a_hash_are_aligned(version, wanted):
    """ScalingExecutorTest.testAdjustByMaxParallelism; since 1.10 a source needs partitions."""
    rules = Flink(setting=STATEFUL, target_share=1.0, restart_s=0.0, key_groups=24, version=version)
    instances = tuple(rules.wanted(name, vertex(2, 70, 20)) for name in ("O1", "O2", "O3"))
    assert instances == wanted


@pytest.mark.parametrize("version", ["1.6", "1.9"])
@pytest.mark.parametrize(("key_groups", "most"), [(0, 10), (128, 10), (8, 8)])
def test_up_to_1_9_a_source_has_no_more_instances_than_partitions(version, key_groups, most):
    """1.9.0, VertexInfo.updateMaxParallelism, with the partitions of a Kafka or Pulsar source:
    "this.maxParallelism = Math.min(originalMaxParallelism, maxParallelism);"."""
    rules = flink(target_share=1.0, restart_s=0.0, version=version,
                  key_groups=key_groups, source_partitions=10)  # fmt: skip
    assert rules.wanted("O1", vertex(2, 130, 20)) == most
    assert rules.wanted("O1", vertex(2, 40, 20)) == most // 2, "the next that divides them"


@pytest.mark.parametrize(
    ("version", "wanted"), [("1.9", 300), ("1.10", 240), ("1.11", 240), ("main", 300)]
)
def test_since_1_10_instances_are_also_aligned_downward(version, wanted):
    """JobVertexScalerTest.testParallelismComputationWithLimit; FLIP-586 keeps what it computed
    unless there is a number that gives each instance less."""
    rules = Flink(setting=a_setting(a_topology("O1", an_operator("O2", stateful=True))),
                  target_share=1.0, restart_s=0.0, key_groups=720, max_instances=300,
                  version=version)  # fmt: skip
    assert rules.wanted("O2", vertex(200, 200, 100)) == wanted


READINGS = [(0.0, (0, 0, 0.5)), (10.0, (100, 0, 0.5)), (40.0, (1000, 0, 1.0))]


@pytest.mark.parametrize(
    ("version", "rate"),
    [("1.6", (10 / 0.5 + 30 / 1.0) / 2), ("1.7", 25 / (2 / 3)), ("main", 20 / (2 / 3))],
)
def test_the_true_rate_of_each_version(version, rate):
    """1.6: the mean of ratios; to 1.15 the rate of the window; FLINK-39306 the mean of rates."""
    assert flink(version=version).true_per_s(READINGS) == pytest.approx(rate)


def test_nothing_is_decided_about_what_was_not_read():
    looks = [looked(60.0 * minute, look("O1", 1)) for minute in range(40)]
    assert asked_for(FLINK, *looks) == [{}] * 40
