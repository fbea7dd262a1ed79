"""The state machine: Henge, section 4.3, transition by transition."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from include.controllers.henge.state_machine import Move, RoundState, next_move
from tests.henge_world import World


def a_round(**changes: object) -> RoundState:
    quiet = {
        "fell": False,
        "at_max": False,
        "stable_rounds": 0,
        "congested": False,
        "reducible": False,
        "just_reduced": False,
        "candidates": True,
    }
    return RoundState(**(quiet | changes))


@pytest.mark.parametrize(
    ("text", "now", "move"),
    [
        ("4.3.1: a job misses its SLO", a_round(), Move.RECONFIGURE),
        ("4.3.1: at the maximum, monitor for 4 rounds", a_round(at_max=True), Move.STAY),
        ("4.3.1: all stabilised", a_round(at_max=True, stable_rounds=4), Move.CONVERGE),
        ("4.3: no further actions will improve", a_round(candidates=False), Move.REVERT),
        (
            "4.3.2: (a), (b) and (c)",
            a_round(fell=True, congested=True, reducible=True),
            Move.REDUCE,
        ),
        ("4.3.3: not (a)", a_round(fell=True, reducible=True), Move.REVERT),
        ("4.3.3: not (b) or not (c)", a_round(fell=True, congested=True), Move.REVERT),
        (
            "4.3.2: lockout, right after a reduction",
            a_round(fell=True, congested=True, reducible=True, just_reduced=True),
            Move.REVERT,
        ),
    ],
)
def test_every_move(text: str, now: RoundState, move: Move) -> None:
    assert next_move(now) is move, text


def test_the_first_900_seconds_are_vanilla_storm() -> None:
    world = World({"A": 10})
    world.latency_ms["A"] = 1000.0
    world.capacity["A.first"] = 0.6
    assert world.until(900) == []
    assert world.round() == {"A.first": 10}  # eq. 4: (0.6 / 0.3 - 1) * 10


def test_the_highest_maximal_utility_comes_first_then_the_lowest_current_one() -> None:
    world = World({"A": 10, "B": 20, "C": 20, "D": 90}, start_s=0)
    world.latency_ms |= {"A": 1000.0, "B": 110.0, "C": 120.0}  # D meets its SLO
    world.capacity = dict.fromkeys(world.capacity, 0.33)
    order = []
    for _ in range(3):
        (touched,) = {name.partition(".")[0] for name in world.round()}
        order.append(touched)
        world.latency_ms[touched] = 100.0
        world.until(world.now_s + 50)
    assert order == ["C", "B", "A"]


def test_only_congested_operators_get_more_each_by_its_own_capacity() -> None:
    world = World({"A": 10}, start_s=0)
    world.latency_ms["A"] = 200.0
    world.capacity |= {"A.first": 0.3, "A.second": 0.9}
    assert world.round() == {"A.second": 20}
    steps = world.decision.steps
    assert "utility 5.00 of 10; capacity 0.90 of A.second asks for 20 more" in steps[0].because


def test_new_instances_go_where_fewest_run() -> None:
    world = World({"A": 10}, start_s=0)
    world.latency_ms["A"], world.capacity["A.first"] = 200.0, 0.48
    world.running = {
        name: instance for name, instance in world.running.items() if instance.host != "h3"
    }
    world.memory = replace(world.memory, wanted={"A.first": 1, "A.second": 1})
    assert world.round() == {"A.first": 6}
    hosts = Counter(instance.host for instance in world.running.values())
    assert hosts == {"h1": 6, "h2": 5, "h3": 5, "h4": 5}


def test_it_waits_until_utilities_have_settled() -> None:
    world = World({"A": 10}, start_s=0)
    world.latency_ms["A"], world.capacity["A.first"] = 200.0, 0.6
    acted = world.until(300)
    assert acted[0][0] == 0
    assert all(later - earlier >= 60 for (earlier, _), (later, _) in pairwise(acted))


def test_an_instance_that_still_starts_is_waited_for() -> None:
    world = World({"A": 10}, start_s=0)
    world.latency_ms["A"], world.capacity["A.first"] = 200.0, 0.6
    world.running["i1"] = type(world.running["i1"])(
        instance="i1", operator="A.first", host="h1", started_s=0.0, ready=False, stopping=False
    )
    assert world.until(300) == []
    assert world.until(380)[0][0] == 360  # 60 s after the limit for starting


@pytest.mark.parametrize(
    ("gained", "touched", "skipped"), [(1.04, "B", {"A": 3660}), (1.05, "A", {})]
)
def test_a_job_that_gained_less_than_5_percent_is_skipped_for_an_hour(
    gained: float, touched: str, skipped: dict[str, float]
) -> None:
    world = World({"A": 10, "B": 5}, start_s=0)
    world.latency_ms |= {"A": 200.0, "B": 200.0}
    world.capacity = dict.fromkeys(world.capacity, 0.33)
    assert set(world.round()) == {"A.first", "A.second"}
    world.latency_ms["A"] = 200 / gained
    world.until(60)
    assert set(world.round()) == {f"{touched}.first", f"{touched}.second"}
    assert world.number("A.first") >= 11  # A keeps what it was given
    assert world.memory.skipped_until_s == skipped


def test_a_job_without_any_utility_that_gains_none_is_skipped() -> None:
    """Section 4.3.1: "utility increases <5%", and 0 stays 0."""
    world = World({"A": 10, "B": 5}, start_s=0)
    world.latency_ms |= {"A": math.inf, "B": 200.0}
    world.capacity = dict.fromkeys(world.capacity, 0.33)
    assert set(world.round()) == {"A.first", "A.second"}
    world.until(60)
    assert set(world.round()) == {"B.first", "B.second"}


def test_the_black_list_expires() -> None:
    world = World({"A": 10}, start_s=0)
    memory = world.memory.skipping("A", 3600.0)
    assert memory.skips("A", 3599.0)
    assert not memory.skips("A", 3600.0)
    assert not memory.skips("B", 0.0)


def test_four_stable_rounds_at_the_maximum_and_it_has_converged() -> None:
    world = World({"A": 10, "B": 20}, start_s=0)
    for rounds in range(1, 5):
        world.round()
        assert not world.memory.converged
        assert world.memory.stable_rounds == rounds
    world.round()
    assert world.memory.converged


def test_a_fall_without_congestion_is_reverted() -> None:
    """Section 4.3.3: back to the configuration with the highest utility, and Converged."""
    world = World({"A": 10, "B": 20}, start_s=0)
    world.latency_ms["A"], world.capacity["A.first"] = 200.0, 0.6
    assert world.round() == {"A.first": 10}
    world.latency_ms |= {"A": 180.0, "B": 200.0}  # A gains 0.6, B loses 10
    world.until(60)
    assert world.round() == {"A.first": -10}
    assert world.memory.converged
    assert world.memory.expected_share == pytest.approx(25 / 30)


def congested_world() -> World:
    """A's reconfiguration hurts B while C meets its SLO on a cluster with a load of 9 of 4."""
    world = World({"A": 10, "B": 20, "C": 20}, start_s=0)
    world.latency_ms["A"] = 200.0
    world.capacity |= {"A.first": 0.6, "C.second": 0.4}
    world.load = 9.0
    assert world.round() == {"A.first": 10}
    world.latency_ms |= {"A": 150.0, "B": 200.0}
    world.until(60)
    return world


def test_a_fall_on_a_congested_cluster_is_answered_by_a_reduction() -> None:
    world = congested_world()
    changed = world.round()
    # 80 % of the uncongested operators of the one satisfied job; its congested one is left.
    assert changed == {"C.first": -8}
    assert world.memory.reduced == ("C",)
    assert world.memory.just_reduced
    assert not world.memory.converged


def test_a_cluster_is_congested_when_most_of_its_hosts_are() -> None:
    world = congested_world()
    world.load = 4.0  # as many as cores: no over-subscription
    assert world.round() == {"A.first": -10}


def test_without_a_job_that_meets_its_slo_nothing_is_reduced() -> None:
    world = congested_world()
    world.latency_ms["C"] = 101.0
    for _ in range(6):  # until the last minute shows it
        world.memory = world.memory.waiting(world.now_s + 10)
        world.round()
    changed = world.round()
    assert changed["C.first"] == 0
    assert changed["A.first"] == -10


def test_lockout_right_after_a_reduction_is_reverted() -> None:
    """Fig. 17b: reconfiguration, fall, reduction, reconfiguration, fall, reversion."""
    world = congested_world()
    world.round()  # the reduction of C
    world.until(130)
    assert world.memory.trial is not None  # B, worth more than A, was reconfigured, or A again
    world.latency_ms = {"A": 400.0, "B": 400.0, "C": 100.0}
    world.until(world.memory.act_from_s)
    world.round()
    assert world.memory.converged
    assert world.number("C.first") == 10  # as before the reduction: the best configuration seen
    assert world.number("A.first") == 10


def test_a_job_is_reduced_once_until_the_history_is_forgotten() -> None:
    world = congested_world()
    world.round()
    assert world.memory.reduced == ("C",)
    assert world.memory.reset().reduced == ()
    assert not world.memory.reset().just_reduced


def test_a_large_drop_ends_the_converged_state_and_the_history() -> None:
    world = World({"A": 10, "B": 10}, start_s=0)
    world.until(60)
    assert world.memory.converged
    world.memory = world.memory.skipping("A", 3600)
    world.latency_ms["A"] = 160.0  # 18.75 % of the whole
    world.capacity = dict.fromkeys(world.capacity, 0.6)
    assert set(world.round()) == {"A.first", "A.second"}
    assert world.memory.skipped_until_s == {}
    world.latency_ms["A"] = 120.0
    world.capacity = dict.fromkeys(world.capacity, 0.2)
    assert world.until(400) == []
    assert world.number("A.first") == 20  # it stays: the better times before are forgotten
    assert world.memory.converged


def test_a_further_slo_violation_ends_the_converged_state_but_not_the_history() -> None:
    """Fig. 10: juice falls to 0.992, which is no large drop, and triggers reconfigurations."""
    world = World({"A": 10, "B": 10}, start_s=0)
    world.until(60)
    assert world.memory.converged
    world.memory = world.memory.skipping("B", 3600)
    world.latency_ms["A"], world.capacity["A.first"] = 104.0, 0.6  # 1.9 % of the whole
    assert world.until(100) == [(60, {"A.first": 10})]
    assert world.memory.skipped_until_s == {"B": 3600}


def test_a_violation_that_could_not_be_helped_is_tolerated() -> None:
    world = World({"A": 10, "B": 10}, start_s=0)
    world.latency_ms["A"] = 200.0  # and nothing of A is congested
    world.until(60)
    assert world.memory.converged
    assert world.memory.tolerated == ("A",)
    world.latency_ms["A"] = 190.0
    world.capacity["A.first"] = 0.6
    assert world.until(200) == []


def test_more_instances_that_bring_nothing_are_given_back() -> None:
    """Of configurations that are worth the same the smallest is the best (HENGE-BEST)."""
    world = World({"A": 10}, start_s=0)
    world.latency_ms["A"], world.capacity["A.first"] = 200.0, 0.6
    assert [changed for _, changed in world.until(300)] == [{"A.first": 10}, {"A.first": -10}]
    assert world.memory.converged


def test_a_new_job_is_an_external_change() -> None:
    world = World({"A": 10, "B": 10}, start_s=0)
    world.joined = {"A"}
    world.until(60)
    assert world.memory.converged
    world.joined = {"A", "B"}
    world.latency_ms["B"], world.capacity["B.first"] = 500.0, 0.6
    assert world.until(180)[0] == (120, {"B.first": 10})  # once its utility has settled


def test_no_action_without_statistics_and_five_minutes_of_fresh_data_afterwards() -> None:
    """Fig. 21: the statistics are lost at 1020 s and are back at 1380 s."""
    world = World({"A": 10, "B": 10})
    world.latency_ms = {"A": 200.0, "B": 300.0}
    world.capacity = dict.fromkeys(world.capacity, 0.33)
    assert [at for at, _ in world.until(1020)] == [900, 960]
    world.unread = {"A", "B"}
    assert world.until(1380) == []
    assert "no statistics of 2 jobs" in world.decision.because
    world.unread = set()
    assert world.until(1680) == []
    assert "nothing before 1680 s" in world.decision.because
    assert world.round()


def test_a_single_job_that_cannot_be_read_stops_every_action() -> None:
    world = World({"A": 10, "B": 10}, start_s=100)
    world.latency_ms["A"], world.capacity["A.first"] = 300.0, 0.6
    world.until(100)
    world.unread = {"B"}
    assert world.until(150) == []
    world.unread = set()
    assert world.round()  # a short gap is no outage


def test_lost_instances_are_replaced_as_storm_does() -> None:
    world = World({"A": 10})
    world.running.popitem()
    assert world.round() == {"A.second": 1}
