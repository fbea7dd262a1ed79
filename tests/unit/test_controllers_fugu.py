"""The three FUGU controllers on hand-made clusters, measurement after measurement."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given

from include.controllers import CONTROLLERS
from include.controllers.fugu.sarsa import IN, NONE, OUT, best_action
from include.model.decision import LeaseHost, MigrateInstance, ReleaseHost
from include.model.host import HostFlavor
from include.testing.builders import (
    a_host,
    a_sample,
    a_setting,
    a_topology,
    an_instance,
    an_observation,
    an_operator,
)
from include.testing.clusters import SETTING, observations
from include.testing.contract import any_cluster
from include.testing.replay import Replay

SHARED = HostFlavor(name="small", vcpus=4, memory_mb=4000, cpu_shared=True)
NAMES = tuple("ABCDEFGHI")
SET = a_setting(
    a_topology(*(an_operator(name, memory_mb=100.0) for name in NAMES)),
    flavor=SHARED,
    monitor_every_s=5.0,
    max_hosts=6,
)


class World:
    """Hosts of which each operator uses a share; decisions are carried out at once."""

    def __init__(self, name, on, **options):
        options = {"successive": 1 if name == "fugu-sarsa" else 3} | options
        self.controller = CONTROLLERS[name].build(setting=SET, **options)
        self.memory = self.controller.initial_memory()
        self.on = {host: dict(loads) for host, loads in on.items()}
        self.now_s = 3600.0
        self.unread = set()

    def measure(self, **loads):
        """The next measurement, with other loads of operators if given; returns the decision."""
        self.now_s += 5.0
        for held in self.on.values():
            held |= {op: load for op, load in loads.items() if op in held}
        running = [
            an_instance(op.lower(), op, host, cpu_share=4 * load)
            for host, held in self.on.items()
            for op, load in held.items()
        ]
        hosts = [
            a_host(
                host,
                ordered_s=float(number),
                cpu_share=None if host in self.unread else min(1.0, sum(held.values())),
            )
            for number, (host, held) in enumerate(self.on.items())
        ]
        observation = an_observation(
            operators=[a_sample(op) for held in self.on.values() for op in held],
            hosts=hosts,
            running=running,
            now_s=self.now_s,
        )
        self.memory, decision = self.controller.decide(self.memory, observation)
        for action in decision.actions:
            if isinstance(action, MigrateInstance):
                op = action.instance.upper()
                load = next(held.pop(op) for held in self.on.values() if op in held)
                self.on[action.host][op] = load
            elif isinstance(action, ReleaseHost):
                del self.on[action.host]
            elif isinstance(action, LeaseHost):
                self.on[f"h{len(self.on) + 1}"] = {}
        return decision


FULL = {"h1": {"A": 0.4, "B": 0.3, "C": 0.15}, "h2": {"D": 0.2}}
IDLE = {"h1": {"A": 0.2}, "h2": {"B": 0.35}}


def test_local_acts_after_three_measurements_in_a_row():
    world = World("fugu-local", FULL)
    assert [len(world.measure().steps) for _ in range(3)] == [0, 0, 1]
    assert world.on == {"h1": {"A": 0.4, "C": 0.15}, "h2": {"D": 0.2, "B": 0.3}}


def test_a_measurement_between_the_thresholds_starts_the_count_again():
    world = World("fugu-local", FULL)
    loads = [0.15, 0.15, 0.05, 0.15, 0.15, 0.15]
    assert [len(world.measure(C=load).steps) for load in loads] == [0, 0, 0, 0, 0, 1]


def test_one_measurement_counts_once_however_often_it_is_looked_at():
    controller = CONTROLLERS["fugu-local"].build(setting=SET)
    memory = controller.initial_memory()
    observation = an_observation(
        operators=[a_sample(name) for name in "AB"],
        hosts=[a_host("h1", cpu_share=0.9), a_host("h2", cpu_share=0.3)],
        running=[an_instance(n.lower(), n, "h1", cpu_share=1.8) for n in "AB"],
    )
    for later_s in (0.0, 1.0, 2.0, 3.0, 4.0):
        now = dataclasses.replace(observation, now_s=3600.0 + later_s)
        memory, decision = controller.decide(memory, now)
        assert decision.steps == ()
    assert memory.streaks == {"h1": 1}


@pytest.mark.parametrize("name", ["fugu-local", "fugu-sarsa"])
def test_a_host_is_left_alone_for_the_grace_period_after_a_decision(name):
    world = World(name, FULL, grace_s=30.0)
    while not world.measure().steps:
        pass
    acted_s = world.now_s
    while not world.measure(A=0.5, C=0.45, D=0.2).steps:
        pass
    quiet_s = world.now_s - acted_s
    assert quiet_s == (30.0 if name == "fugu-sarsa" else 30.0 + 2 * 5.0)


def test_a_new_host_takes_what_fits_nowhere_once_it_is_up():
    world = World("fugu-local", {"h1": {"A": 0.5, "B": 0.4}, "h2": {"C": 0.5}})
    steps = [world.measure().actions for _ in range(4)]
    assert steps[:2] == [(), ()]
    assert [type(action) for action in steps[2]] == [LeaseHost]
    assert steps[3] == (MigrateInstance("b", "h3"),)


PARTLY = {"A": 0.5, "B": 0.2, "C": 0.28}
"""Where h1 has these and the only other host 0.25 to the target, B moves and C needs a new one."""


@pytest.mark.parametrize("name", ["fugu-local", "fugu-sarsa"])
def test_a_host_is_brought_down_to_the_target_though_a_part_has_to_wait(name):
    """IV-A: "the load to move will be chosen larger so as to get done to the target utilization".

    The part that waits moves once the grace period of the host is over.
    """
    world = World(name, {"h1": PARTLY, "h2": {"D": 0.35}}, successive=3, grace_s=10.0)
    while not world.measure().steps:
        pass
    assert world.on == {"h1": {"A": 0.5, "C": 0.28}, "h2": {"D": 0.35, "B": 0.2}, "h3": {}}
    assert world.measure().steps == ()
    assert world.measure().actions == (MigrateInstance("c", "h3"),)


def test_global_has_its_grace_period_though_a_part_has_to_wait():
    """IV-A: "after each scaling decision the affected host is not touched for a certain period
    of time, called grace period"."""
    high = {"h1": PARTLY, "h2": {"D": 0.35}, "h3": {"E": 0.5, "F": 0.48}, "h4": {"G": 0.97}}
    world = World("fugu-global", high | {"h5": {"H": 0.97}}, grace_s=10.0)
    while not world.measure().steps:
        pass
    assert world.on["h2"] == {"D": 0.35, "B": 0.2}
    assert world.measure().steps == ()
    assert MigrateInstance("f", "h6") in world.measure().actions


def test_a_host_that_is_not_measured_once_waits_on_for_a_new_one():
    world = World("fugu-local", {"h1": {"A": 0.5, "B": 0.4}, "h2": {"C": 0.5}})
    while not world.measure().steps:
        pass
    world.unread = {"h1"}
    assert world.measure().steps == ()
    world.unread = set()
    assert world.measure().actions == (MigrateInstance("b", "h3"),)


def test_local_releases_an_underloaded_host():
    world = World("fugu-local", IDLE)
    decisions = [world.measure() for _ in range(3)]
    assert decisions[2].actions == (MigrateInstance("a", "h2"), ReleaseHost("h1"))
    assert "h1 uses 0.20, 3 times below 0.30" in decisions[2].steps[0].because


def test_one_overloaded_host_is_for_local_thresholds_not_for_global_ones():
    uneven = {"h1": {"A": 0.5, "B": 0.45}, "h2": {"C": 0.4}, "h3": {"D": 0.1}}
    local, everywhere = World("fugu-local", uneven), World("fugu-global", uneven)
    for _ in range(3):
        local.measure()
        everywhere.measure()
    assert sum(local.on["h1"].values()) <= 0.6
    assert everywhere.on == uneven


def test_global_brings_every_host_down_to_the_target():
    high = {"h1": {"A": 0.5, "B": 0.4}, "h2": {"C": 0.45, "D": 0.4}, "h3": {"E": 0.3, "F": 0.5}}
    world = World("fugu-global", high)
    for _ in range(4):
        world.measure()
    assert max(sum(held.values()) for held in world.on.values()) <= 0.6
    assert len(world.on) == 6


def test_global_empties_the_least_loaded_host():
    low = {"h1": {"A": 0.2}, "h2": {"B": 0.1}, "h3": {"C": 0.25, "D": 0.2}}
    world = World("fugu-global", low)
    for _ in range(3):
        decision = world.measure()
    assert decision.actions[-1] == ReleaseHost("h2")
    assert "hosts use 0.25 on average, 3 times below 0.30; h2 uses least" in decision.because


def test_global_leaves_everything_alone_for_the_grace_period():
    low = {"h1": {"A": 0.1}, "h2": {"B": 0.1}, "h3": {"C": 0.1}}
    world = World("fugu-global", low, grace_s=30.0)
    sizes = []
    for _ in range(12):
        world.measure()
        sizes.append(len(world.on))
    assert sizes == [3, 3, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1]


def test_sarsa_starts_like_the_thresholds():
    world = World("fugu-sarsa", FULL, successive=2)
    assert world.measure().steps == ()
    assert world.memory.tables["h1"].last is None, "not decided, so nothing to learn"
    (step,) = world.measure().steps
    assert "h1 uses 0.85, where scale out promises 0.88" in step.because


def test_sarsa_learns_from_a_refusal_not_to_scale_in():
    world = World("fugu-sarsa", {"h1": {"A": 0.25}, "h2": {"B": 0.5}})
    assert world.measure().steps == ()
    assert world.memory.tables["h1"].last.refused
    world.measure()
    table = world.memory.tables["h1"]
    assert best_action(table.rewards[5]) == NONE
    assert best_action(table.rewards[6]) == NONE, "nor at a higher utilisation"
    assert best_action(table.rewards[4]) == IN, "but at a lower one"
    assert best_action(world.memory.tables["h2"].rewards[6]) == IN, "every host has its own table"


def test_sarsa_does_not_learn_to_stay_overloaded_when_there_are_no_more_hosts():
    full = {f"h{n}": {a: 0.5, b: 0.4} for n, (a, b) in enumerate(("AB", "CD", "EF"), start=1)}
    full |= {"h4": {"G": 0.5}, "h5": {"H": 0.5}, "h6": {"I": 0.5}}
    world = World("fugu-sarsa", full)
    assert all(world.measure().steps == () for _ in range(50))
    table = world.memory.tables["h1"]
    assert best_action(table.rewards[18]) == OUT
    assert table.visits[18] == (0, 0, 0)


def test_sarsa_learns_a_decision_from_the_utilisation_after_the_grace_period():
    world = World("fugu-sarsa", FULL, grace_s=30.0)
    world.measure()
    before = world.memory.tables["h1"]
    assert before.last.action == OUT
    for _ in range(5):
        world.measure(C=0.05)  # what is measured in between is not learned from
        assert world.memory.tables["h1"] == before
    world.measure(C=0.1)
    after = world.memory.tables["h1"]
    reached = sum(world.on["h1"].values())
    q, q_next = before.rewards[17][OUT], before.rewards[round(reached / 0.05)][OUT]
    earned = 1 + abs(0.6 - 0.85) / 0.6 - abs(0.6 - reached) / 0.6
    assert after.rewards[17][OUT] == pytest.approx(0.8 * q + 0.2 * (earned + 0.1 * q_next))


def test_sarsa_does_not_learn_from_a_decision_that_waits_for_a_host():
    world = World("fugu-sarsa", {"h1": {"A": 0.5, "B": 0.4}, "h2": {"C": 0.5}})
    (action,) = world.measure().actions
    assert isinstance(action, LeaseHost)
    table = world.memory.tables["h1"]
    assert world.measure(B=0.25).actions == (MigrateInstance("b", "h3"),), "though load has fallen"
    assert world.memory.tables["h1"] == table


def test_a_table_is_made_with_its_host_and_goes_with_it():
    world = World("fugu-sarsa", IDLE)
    world.measure()
    assert set(world.memory.tables) == {"h2"}


@pytest.mark.parametrize("name", ["fugu-local", "fugu-global", "fugu-sarsa"])
def test_a_host_that_was_not_measured_neither_gives_nor_takes(name):
    world = World(name, {**FULL, "h3": {"E": 0.1}})
    world.unread = {"h1", "h2"}
    assert all(world.measure().steps == () for _ in range(6))


@pytest.mark.parametrize("name", ["fugu-local", "fugu-global", "fugu-sarsa"])
def test_under_constant_load_it_comes_to_rest(name):
    on = {"h1": dict.fromkeys("ABCD", 0.24), "h2": {"E": 0.1, "F": 0.1}, "h3": {"G": 0.25}}
    world = World(name, on)
    decisions = [world.measure() for _ in range(200)]
    assert any(decision.steps for decision in decisions[:100]) or name == "fugu-global"
    assert not any(decision.steps for decision in decisions[100:])


@any_cluster
@given(observations())
def test_every_decision_after_the_first_measurement_can_be_carried_out(observation):
    for name in ("fugu-local", "fugu-global"):
        controller = CONTROLLERS[name].build(setting=SETTING, successive=1, lower=0.4, grace_s=0.0)
        _, decision = controller.decide(controller.initial_memory(), observation)
        Replay(observation).run(decision)
