"""PeerJ CS 141: what the original runtime and the preprint do differently."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from include.controllers import CONTROLLERS
from include.controllers.peerj141.btu import Btu, BtuBased, BtuMemory
from include.controllers.peerj141.btu_runtime import (
    BtuRuntime,
    RuntimeMemory,
    bucket,
    by_free_cpu,
    in_source,
    through_the_origin,
)
from include.controllers.plan import Plan
from include.model.decision import (
    LeaseHost,
    MigrateInstance,
    ProlongLease,
    ReleaseHost,
    StartInstance,
    StopInstance,
)
from include.model.observation import Observation
from include.testing.builders import (
    a_host,
    a_sample,
    a_setting,
    a_topology,
    an_operator,
    cluster_of,
    idle,
    late,
    why,
)
from tests.paper.test_peerj_141_figure_5 import NOW_S, ending, needed

RUNTIME, PAPER = BtuRuntime(setting=a_setting()), Btu(setting=a_setting())


def serving(instance: str, serves_s: float = 60.0) -> StopInstance:
    """Stopped as the original stops: it works on until the next tick."""
    return StopInstance(instance, serves_s=serves_s)


def actions(controller: BtuBased, observation: Observation) -> tuple[object, ...]:
    memory = RuntimeMemory() if isinstance(controller, BtuRuntime) else BtuMemory()
    return controller.decide(memory, observation)[1].actions


def full_host_with_idle_o2() -> Observation:
    return cluster_of({"h1": "O1 O2 O2 O2"}, late("O1"), idle("O2"))


def test_the_runtime_reclaims_an_instance_and_leases_a_host_all_the_same() -> None:
    assert actions(PAPER, full_host_with_idle_o2()) == (
        StopInstance("i4"),
        StartInstance("O1", "h1"),
    )
    assert actions(RUNTIME, full_host_with_idle_o2()) == (
        serving("i2"),
        LeaseHost("small", "new-1"),
        StartInstance("O1", "new-1"),
    )


def test_the_runtime_reclaims_although_it_frees_too_little() -> None:
    setting = a_setting(a_topology(an_operator("O1", memory_mb=2000.0), "O2", "O3"))
    observation = cluster_of({"h1": "O1 O2 O2"}, late("O1"), idle("O2"))
    assert not any(isinstance(a, StopInstance) for a in actions(Btu(setting=setting), observation))
    assert serving("i2") in actions(BtuRuntime(setting=setting), observation)


def test_the_runtime_counts_only_record_highs() -> None:
    # utilities: O1 idle 101.5 (a record), O2 in time about 1.5 (not one)
    observation = cluster_of(
        {"h1": "O1 O2", "h2": "O1 O2"}, idle("O1"), a_sample("O2"), hosts=[ending("h2")]
    )
    assert actions(PAPER, observation) == (
        StopInstance("i4"),
        StopInstance("i3"),
        ReleaseHost("h2"),
    )
    assert actions(RUNTIME, observation) == (
        serving("i3"),
        MigrateInstance("i4", "h1", serves_s=60.0),
        ReleaseHost("h2"),
    )


def test_the_runtime_reads_the_minimum_of_algorithm_3_as_0() -> None:
    assert RUNTIME.all_operators(np.array([2, 5, 3]), 7).fewest_instances == 0
    assert PAPER.all_operators(np.array([2, 5, 3]), 7).fewest_instances == 2


@pytest.mark.parametrize(("waiting_items", "runtime_starts"), [(250, 0), (251, 1)])
def test_the_runtime_scales_up_on_a_long_queue_alone(
    waiting_items: int, runtime_starts: int
) -> None:
    """BTU-TWICE."""
    for durations_ms in ((), (10.0,) * 5):
        observation = cluster_of({"h1": "O1"}, a_sample("O1", waiting_items, durations_ms))
        assert actions(PAPER, observation) == ()
        assert actions(RUNTIME, observation) == (StartInstance("O1", "h1"),) * runtime_starts


def test_two_start_at_once_above_five_thresholds() -> None:
    """BTU-TWICE: ``Monitor`` multiplies ``upscalingthreshold``."""
    ten = replace(PAPER, scaling_threshold_items=10)
    for waiting_items, starts in ((50, 1), (51, 2)):
        observation = cluster_of({"h1": "O1"}, a_sample("O1", waiting_items, (5000.0,) * 5))
        assert actions(ten, observation) == (StartInstance("O1", "h1"),) * starts


def test_the_runtime_has_no_20_percent_limit_but_leaves_one_instance() -> None:
    observation = cluster_of({"h1": "", "h2": "O1 O1 O1"}, idle("O1"), hosts=[ending("h2")])
    assert actions(RUNTIME, observation) == (
        serving("i1"),
        serving("i2"),
        MigrateInstance("i3", "h1", serves_s=60.0),
        ReleaseHost("h2"),
    )


def test_the_runtime_makes_room_for_a_move_and_keeps_the_host_all_the_same() -> None:
    observation = cluster_of(
        {"h1": "O1 O1 O1 O2", "h2": "O2"}, idle("O1"), needed("O2"), hosts=[ending("h2")]
    )
    assert actions(RUNTIME, observation) == (serving("i1"), ProlongLease("h2"))
    assert actions(Btu(setting=a_setting(), reclaim_for_migrations=True), observation) == (
        StopInstance("i3"),
        MigrateInstance("i5", "h1"),
        ReleaseHost("h2"),
    )


def test_a_host_given_back_serves_no_longer_than_it_is_paid_for() -> None:
    observation = cluster_of({"h1": "O1", "h2": "O1"}, idle("O1"), hosts=[ending("h2", 40)])
    assert actions(RUNTIME, observation) == (serving("i2", 40.0), ReleaseHost("h2"))


def test_the_runtime_moves_nothing_to_a_host_that_still_boots() -> None:
    """It leases one more, as for every instance that finds no place."""
    observation = cluster_of(
        {"h1": "", "h2": "O1"}, a_sample("O1"), hosts=[a_host("h1", up=False), ending("h2")]
    )
    assert actions(RUNTIME, observation) == (LeaseHost("small", "new-1"), ProlongLease("h2"))


@pytest.mark.parametrize(("ordered_s", "kept"), [(NOW_S - 179, True), (NOW_S - 180, False)])
def test_the_runtime_keeps_the_first_host_that_ends_after_an_order(
    ordered_s: float, kept: bool
) -> None:
    setting = a_setting(btu_s=3600.0)
    observation = cluster_of(
        {"h1": "O1", "h2": "", "h3": ""},
        a_sample("O1"),
        hosts=[a_host("h1", ordered_s=ordered_s), ending("h2", 150), ending("h3", 170)],
    )
    released = (ReleaseHost("h2"), ReleaseHost("h3"))
    expected = (ProlongLease("h2"),) if kept else released
    assert actions(BtuRuntime(setting=setting), observation) == expected
    assert actions(Btu(setting=setting), observation) == (() if kept else released)


def test_the_runtime_counts_the_longest_queue_with_what_instances_hold() -> None:
    def starts(waiting_items: int, longest: int) -> int:
        sample = structs.replace(late("O1", waiting_items), longest_queue_items=longest)
        observation = cluster_of({"h1": "O1"}, sample)
        return len(actions(BtuRuntime(setting=a_setting()), observation))

    assert [starts(40, items) for items in (50, 51, 250, 251)] == [0, 1, 1, 2]
    assert starts(400, 50) == 0


@pytest.mark.parametrize(
    ("durations_ms", "predicted_ms"),
    [((500.0,) * 5, 1000.0), ((100.0, 200.0, 300.0, 400.0, 500.0), 800.0), ((400.0,), 600.0)],
)
def test_a_line_through_the_origin(durations_ms: tuple[float, ...], predicted_ms: float) -> None:
    """Slope sum(xy) / sum(xx) with x from 0 to 4, read at 6; a single duration stands at 4."""
    assert through_the_origin(durations_ms) == pytest.approx(predicted_ms)


@pytest.mark.parametrize(
    ("duration_ms", "waiting_items", "starts"),
    [(1001.0, 251, 2), (1001.0, 250, 1), (999.0, 251, 1), (501.0, 51, 1), (499.0, 250, 0)],
)
def test_only_a_late_operator_gets_two(duration_ms: float, waiting_items: int, starts: int) -> None:
    observation = cluster_of({"h1": "O1"}, a_sample("O1", waiting_items, (duration_ms,) * 5))
    assert actions(RUNTIME, observation) == (StartInstance("O1", "h1"),) * starts


def test_memory_is_divided_as_whole_numbers() -> None:
    """A host of 4 cores and 2 GB with 2 cores and 1.4 GB left, for half a core and 500 MB."""
    numbers = np.array([[4.0, 4.0], [2000.0, 2000.0], [2.0, 0.4], [1400.0, 1400.0]])
    ranked = by_free_cpu(numbers, an_operator("O1", cpu_cores=0.5, memory_mb=500.0))
    assert ranked.tolist() == [1.5 / 4 / 2, np.inf]


def test_an_operator_that_needs_an_instance_may_give_one() -> None:
    """O2 will be late, and has the most instances: 1 + 1 - 0.7 * 1.01 is above 0."""
    soon_late = a_sample("O2", 51, (700.0,) * 5)
    observation = cluster_of({"h1": "O1 O2 O2 O2"}, late("O1"), soon_late)
    assert StopInstance("i2", serves_s=60.0) in actions(RUNTIME, observation)


def test_the_first_two_of_the_first_operators_by_name_give_until_there_is_room() -> None:
    """O4 needs three places; X gives two, Y one, and a host is leased all the same."""
    large = an_operator("O4", memory_mb=3000.0)
    runtime = BtuRuntime(setting=a_setting(a_topology("X", "Y", large)))
    observation = cluster_of(
        {"h1": "X X X Y", "h2": "X Y Y Y", "h3": "O4"}, idle("X"), idle("Y"), late("O4")
    )
    assert actions(runtime, observation) == (
        StopInstance("i1", serves_s=60.0),
        StopInstance("i2", serves_s=60.0),
        StopInstance("i4", serves_s=60.0),
        LeaseHost("small", "new-1"),
        StartInstance("O4", "new-1"),
    )


def test_names_are_those_of_the_source() -> None:
    """In a HashMap generatereport is first and calculatequality last; a TreeMap has the latter
    before the former. Those between are no better than the first."""
    utilities = {"O1": 1.0, "O5": 3.0, "O9": 2.0}
    assert RUNTIME.counted(utilities) == {"O5": 3.0, "O9": 2.0}
    assert list(RUNTIME.counted(utilities)) == ["O5", "O9"]
    assert RUNTIME.counted({"O3": 2.0, "O4": 1.0}) == {"O4": 1.0, "O3": 2.0}
    assert RUNTIME.counted({"O3": 1.0, "O4": 2.0}) == {"O4": 2.0}
    assert sorted("abz", key=bucket) == ["a", "b", "z"]
    assert [bucket(in_source(f"O{i}")) for i in range(1, 10)] == [10, 11, 4, 4, 11, 8, 9, 9, 0]


def test_hosts_come_by_lease_and_two_at_first_suffice() -> None:
    """h1 is leased first and ends last; once it has gone, h2 is looked at all the same: O1 finds
    no other host, so one is leased for it."""
    observation = cluster_of(
        {"h1": "O1", "h2": "O1"}, idle("O1"), hosts=[ending("h1"), ending("h2", 30.0)]
    )
    assert actions(RUNTIME, observation) == (
        StopInstance("i1", serves_s=60.0),
        ReleaseHost("h1"),
        LeaseHost("small", "new-1"),
        ProlongLease("h2"),
    )


def test_a_host_goes_when_what_was_to_leave_it_made_the_room() -> None:
    """Once a stop leaves O1 its last instance O2 counts, and the oldest of O2 is on h1 itself."""
    observation = cluster_of(
        {"h1": "O1 O2", "h2": "O1 O2 O3 O3"},
        idle("O1"),
        a_sample("O2"),
        needed("O3"),
        hosts=[ending("h1")],
    )
    assert actions(RUNTIME, observation) == (
        StopInstance("i1", serves_s=60.0),
        StopInstance("i2", serves_s=60.0),
        ReleaseHost("h1"),
    )


def test_an_operator_that_has_just_moved_gives_nothing() -> None:
    """O2 counts once O1 has given an instance, and O3 finds no place after O2 has moved."""
    observation = cluster_of(
        {"h1": "O1 O2 O3", "h2": "O1 O2 O2"},
        a_sample("O1", 0, (300.0,) * 5),
        a_sample("O2", 0, (700.0,) * 5),
        needed("O3"),
        hosts=[ending("h1")],
    )
    assert actions(RUNTIME, observation) == (
        StopInstance("i1", serves_s=60.0),
        MigrateInstance("i2", "h2", serves_s=60.0),
        LeaseHost("small", "new-1"),
        ProlongLease("h1"),
    )


def test_what_made_room_for_another_host_wants_a_place_in_the_simulation() -> None:
    """i2 made room for O3 of h1. It takes the place there that O4 of h2 would need to move."""
    large = an_operator("O4", memory_mb=3000.0)
    runtime = BtuRuntime(setting=a_setting(a_topology("O1", "O3", large)))
    observation = cluster_of(
        {"h1": "O3", "h2": "O1 O4", "h3": "O1 O1 O1 O1"},
        a_sample("O1"),
        needed("O3"),
        needed("O4"),
        hosts=[ending("h1"), ending("h2")],
    )
    assert actions(runtime, observation) == (
        StopInstance("i2", serves_s=60.0),
        ProlongLease("h1"),
        ProlongLease("h2"),
    )


def test_rows_of_this_decision_count_at_once() -> None:
    """O1 has one of three rows, then one of four, then of seven."""
    observation = cluster_of({"h1": "O1 O1 O2", "h2": ""}, a_sample("O1"), needed("O2"))
    memory = RuntimeMemory({"O1": 1, "O2": 2}, of_hosts=0)
    plan = Plan(RUNTIME.setting, observation)
    standings = RUNTIME.standings(observation, memory, {})
    without = 1 + 1 - 0.5 * 1.01
    assert RUNTIME.utilities(plan, standings)["O1"] == pytest.approx(without - 1 / 3)
    plan.lease(why())
    assert RUNTIME.utilities(plan, standings)["O1"] == pytest.approx(without - 1 / 4)
    plan.migrate(plan.on_host("h1")[2], "h2", why())
    assert RUNTIME.utilities(plan, standings)["O1"] == pytest.approx(without - 1 / 7)


def test_nothing_moves_where_the_simulation_finds_no_place() -> None:
    """i4 was stopped, but is simulated and takes the only place; O1 cannot give another."""
    observation = cluster_of(
        {"h1": "O1 O2 O3", "h2": "O1 O2 O3"},
        idle("O1"),
        needed("O2"),
        needed("O3"),
        hosts=[ending("h2")],
    )
    assert actions(RUNTIME, observation) == (StopInstance("i4", serves_s=60.0), ProlongLease("h2"))


def test_what_finds_a_place_moves_where_an_operator_has_no_load_left() -> None:
    """The utility of O1 is above 5, so O2 moves; O3 finds no place and O1 gives one for it."""
    observation = cluster_of(
        {"h1": "O1 O1 O2", "h2": "O2 O3", "h3": "O3 O3 O3 O3"},
        idle("O1"),
        needed("O2"),
        needed("O3"),
        hosts=[ending("h2")],
    )
    assert actions(RUNTIME, observation) == (
        MigrateInstance("i4", "h1", serves_s=60.0),
        StopInstance("i1", serves_s=60.0),
        ProlongLease("h2"),
    )


def test_a_host_is_leased_for_an_instance_that_was_to_leave_its_own() -> None:
    """No place is free, and no operator may give one."""
    observation = cluster_of(
        {"h1": "O2 O2 O3 O3", "h2": "O2"}, needed("O2"), needed("O3"), hosts=[ending("h2")]
    )
    assert actions(RUNTIME, observation) == (LeaseHost("small", "new-1"), ProlongLease("h2"))


def test_rows_of_moves_and_hosts_count_as_scalings() -> None:
    """A move is a start, a stop and a migration, and nobody shrinks its operator for 180 s.

    Both first hosts have a row, and the one that is given back another."""
    observation = cluster_of({"h1": "O1", "h2": "O2"}, needed("O1"), needed("O2"))
    moving = cluster_of({"h1": "O1", "h2": "O2"}, needed("O1"), needed("O2"), hosts=[ending("h2")])
    memory, decision = RUNTIME.decide(RUNTIME.initial_memory(), moving)
    assert decision.actions == (MigrateInstance("i2", "h1", serves_s=60.0), ReleaseHost("h2"))
    assert memory == RuntimeMemory(
        scalings={"O1": 1, "O2": 4, "O3": 1},
        upscaled_s={"O1": 0.0, "O2": NOW_S, "O3": 0.0},
        of_hosts=3,
    )
    assert RUNTIME.standings(observation, memory, {}).names == ("O1",)


def test_the_preprint_shrinks_a_late_operator_that_the_final_version_spares() -> None:
    observation = cluster_of({"h1": "O2 O2 O2 O3"}, late("O1"), needed("O2"), a_sample("O3"))
    preprint = CONTROLLERS["btu-preprint"].build(setting=a_setting())
    assert StopInstance("i3") in preprint.decide(BtuMemory(), observation)[1].actions
    assert actions(PAPER, observation)[0] == LeaseHost("small", "new-1")


def test_the_preprint_decides_every_20_s_without_a_20_percent_limit() -> None:
    preprint = CONTROLLERS["btu-preprint"].build(setting=a_setting())
    assert preprint.interval_s == 20.0
    observation = cluster_of(
        {"h1": "O1 O2", "h2": "O1 O1 O1"}, idle("O1"), idle("O2"), hosts=[ending("h2")]
    )
    stops = preprint.decide(BtuMemory(), observation)[1].actions
    assert [type(action) for action in stops] == [StopInstance] * 3 + [ReleaseHost]
