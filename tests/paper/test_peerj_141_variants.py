"""PeerJ CS 141: what the original runtime and the preprint do differently."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs

from include.controllers import CONTROLLERS
from include.controllers.peerj141.btu import Btu, BtuMemory
from include.controllers.peerj141.btu_runtime import BtuRuntime
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
)
from tests.paper.test_peerj_141_figure_5 import NOW_S, ending, needed

RUNTIME, PAPER = BtuRuntime(setting=a_setting()), Btu(setting=a_setting())


def serving(instance: str, serves_s: float = 60.0) -> StopInstance:
    """Stopped as the original stops: it works on until the next tick."""
    return StopInstance(instance, serves_s=serves_s)


def actions(controller: Btu, observation: Observation) -> tuple[object, ...]:
    return controller.decide(BtuMemory(), observation)[1].actions


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


@pytest.mark.parametrize(("waiting_items", "runtime_starts"), [(250, 0), (251, 2)])
def test_the_runtime_scales_up_twice_on_a_long_queue_alone(
    waiting_items: int, runtime_starts: int
) -> None:
    """BTU-TWICE: ``Monitor.analyze`` would start one."""
    for durations_ms in ((), (10.0,) * 5):
        observation = cluster_of({"h1": "O1"}, a_sample("O1", waiting_items, durations_ms))
        assert actions(PAPER, observation) == ()
        assert actions(RUNTIME, observation) == (StartInstance("O1", "h1"),) * runtime_starts


def test_the_runtime_has_no_20_percent_limit_but_leaves_one_instance() -> None:
    observation = cluster_of({"h1": "", "h2": "O1 O1 O1"}, idle("O1"), hosts=[ending("h2")])
    assert actions(RUNTIME, observation) == (
        serving("i3"),
        serving("i2"),
        MigrateInstance("i1", "h1", serves_s=60.0),
        ReleaseHost("h2"),
    )


def test_the_runtime_cuts_and_moves_before_it_finds_out_that_the_host_must_stay() -> None:
    """BTU-RUNTIME-LEFT: ``simulateMigration`` would find no place for O3 and move nothing."""
    observation = cluster_of(
        {"h1": "O1 O2 O3", "h2": "O1 O2 O3"},
        idle("O1"),
        needed("O2"),
        needed("O3"),
        hosts=[ending("h2")],
    )
    assert actions(PAPER, observation) == (ProlongLease("h2"),)
    assert actions(RUNTIME, observation) == (
        serving("i4"),
        MigrateInstance("i5", "h1", serves_s=60.0),
        ProlongLease("h2"),
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
    careful = BtuRuntime(setting=a_setting(), reclaim_for_migrations=False)
    assert actions(careful, observation) == (ProlongLease("h2"),)


def test_a_host_given_back_serves_no_longer_than_it_is_paid_for() -> None:
    observation = cluster_of({"h1": "O1", "h2": "O1"}, idle("O1"), hosts=[ending("h2", 40)])
    assert actions(RUNTIME, observation) == (serving("i2", 40.0), ReleaseHost("h2"))


def test_the_runtime_moves_nothing_to_a_host_that_still_boots() -> None:
    observation = cluster_of(
        {"h1": "", "h2": "O1"}, a_sample("O1"), hosts=[a_host("h1", up=False), ending("h2")]
    )
    assert actions(RUNTIME, observation) == (ProlongLease("h2"),)


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
