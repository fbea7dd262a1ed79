"""PeerJ CS 141, Fig. 5 (downscaling procedure for a host) and "Optimize resource usage"."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from include.controllers.peerj141.btu import BtuMemory
from include.model.decision import (
    MigrateInstance,
    ProlongLease,
    ReleaseHost,
    StartInstance,
    StopInstance,
)
from include.model.observation import HostSample, Observation, OperatorSample
from include.testing.builders import (
    a_host,
    a_sample,
    a_setting,
    an_instance,
    an_observation,
    cluster_of,
    idle,
    instances,
    late,
)
from tests.paper.test_peerj_141_figure_4 import decide

NOW_S = 3600.0


def needed(name: str) -> OperatorSample:
    """Late, but with a short queue: neither scaled up nor, with a negative utility, down."""
    return a_sample(name, durations_ms=(2900.0,) * 5)


def cluster(
    every: Callable[[str], OperatorSample], hosts: list[HostSample], on: Mapping[str, str]
) -> Observation:
    """Instances on hosts, and a sample of each operator that has one."""
    running = instances(on)
    names = sorted({instance.operator for instance in running})
    return an_observation(operators=map(every, names), hosts=hosts, running=running, now_s=NOW_S)


CROWDED = [needed("O1"), needed("O2"), idle("O3")]


def ending(host: str, in_s: float = 60.0, **changes: object) -> HostSample:
    return a_host(host, paid_until_s=NOW_S + in_s, **changes)


@pytest.mark.parametrize(
    ("btu_s", "left_s", "considered"),
    [
        (600.0, 60.0, True),  # 5 % are 30 s; the window is never shorter than 60 s
        (600.0, 61.0, False),
        (1800.0, 90.0, True),
        (1800.0, 91.0, False),
        (3600.0, 180.0, True),
        (3600.0, 181.0, False),
    ],
)
def test_a_host_is_considered_in_the_last_5_percent_of_its_btu(
    btu_s: float, left_s: float, considered: bool
) -> None:
    observation = an_observation(hosts=[a_host("h1"), ending("h2", left_s)])
    decision = decide(observation, setting=a_setting(btu_s=btu_s))
    assert decision.actions == ((ReleaseHost("h2"),) if considered else ())


def test_phase_1_marks_instances_of_operators_with_a_positive_utility() -> None:
    observation = cluster(idle, [a_host("h1"), ending("h2")], {"h1": "O1 O2 O3", "h2": "O1 O2"})
    assert decide(observation).actions == (
        StopInstance("i5"),
        StopInstance("i4"),
        ReleaseHost("h2"),
    )


@pytest.mark.parametrize(
    ("total", "on_h2", "stopped"),
    [(2, 1, 1), (5, 2, 1), (6, 3, 2), (6, 2, 2), (10, 4, 2), (11, 4, 3)],
)
def test_phase_1_marks_at_most_20_percent_of_an_operators_instances(
    total: int, on_h2: int, stopped: int
) -> None:
    others = {f"x{number}": "O1 O1 O1 O1" for number in range((total - on_h2) // 4)}
    rest = " ".join(["O1"] * ((total - on_h2) % 4))
    placed = {**others, "y1": rest, "y2": "", "h2": " ".join(["O1"] * on_h2)}
    hosts = [*(a_host(name) for name in placed if name != "h2"), ending("h2")]
    observation = cluster(idle, hosts, placed)
    actions = decide(observation).actions
    assert len([action for action in actions if isinstance(action, StopInstance)]) == stopped
    assert len([a for a in actions if isinstance(a, MigrateInstance)]) == on_h2 - stopped
    assert actions[-1] == ReleaseHost("h2")


def test_phase_1_leaves_at_least_one_instance() -> None:
    observation = cluster(idle, [a_host("h1"), ending("h2")], {"h2": "O1 O1 O1"})
    decision = decide(observation, release_limit_share=1.0)
    assert [type(action) for action in decision.actions] == [
        StopInstance,
        StopInstance,
        MigrateInstance,
        ReleaseHost,
    ]


def test_phase_3_migrates_what_is_needed_by_algorithm_2_without_this_host() -> None:
    observation = cluster(
        needed,
        [a_host("h1"), ending("h2"), a_host("h3", images=frozenset({"O1"}))],
        {"h1": "O2", "h2": "O1", "h3": "O3 O3"},
    )
    assert decide(observation).actions == (MigrateInstance("i2", "h3"), ReleaseHost("h2"))


def test_the_plan_is_feasible_as_a_whole_or_nothing_happens() -> None:
    on = {"h1": "O2 O2 O3", "h2": "O1 O3 O3"}
    observation = cluster_of(on, *CROWDED, hosts=[ending("h2")])
    # one O3 may stop, the other O3 takes the last place on h1, O1 finds none
    decision = decide(observation)
    assert decision.actions == (ProlongLease("h2"),)
    assert "no other host has room for i4" in decision.steps[0].because


def test_phase_1_may_make_room_as_the_upscaling_procedure_does() -> None:
    """ "This simulation uses the upscaling procedure", which scales other operators down."""
    on = {"h1": "O2 O3 O3 O3", "h2": "O1"}
    observation = cluster_of(on, *CROWDED, hosts=[ending("h2")])
    assert decide(observation).actions == (ProlongLease("h2"),)
    assert decide(observation, reclaim_for_migrations=True).actions == (
        StopInstance("i4"),
        MigrateInstance("i5", "h1"),
        ReleaseHost("h2"),
    )


def test_room_that_was_made_in_vain_is_not_made() -> None:
    on = {"h1": "O2 O2 O2 O3", "h2": "O1 O3 O2"}
    observation = cluster_of(on, *CROWDED, hosts=[ending("h2")])
    # O3 may give one instance; its place takes O2, and then O1 finds none
    assert decide(observation, reclaim_for_migrations=True).actions == (ProlongLease("h2"),)


def test_no_room_is_made_on_the_host_itself_nor_on_one_that_boots() -> None:
    hosts = [a_host("h1", up=False), ending("h2")]
    on = {"h1": "O3 O3 O3 O3", "h2": "O1 O3"}
    observation = cluster_of(on, needed("O1"), idle("O3"), hosts=hosts)
    assert decide(observation, reclaim_for_migrations=True).actions == (ProlongLease("h2"),)


def test_an_instance_is_not_moved_to_a_host_that_still_boots() -> None:
    observation = cluster(needed, [a_host("h1", up=False), ending("h2")], {"h2": "O1"})
    assert decide(observation).actions == (ProlongLease("h2"),)


def test_the_last_host_is_never_released_but_prolonged() -> None:
    observation = an_observation(hosts=[ending("h1")])
    assert decide(observation).actions == (ProlongLease("h1"),)
    leaving = an_observation(hosts=[a_host("h0", releasing=True), ending("h1")])
    assert decide(leaving).actions == (ProlongLease("h1"),)


def test_hosts_that_end_together_are_handled_one_after_the_other() -> None:
    observation = cluster(
        needed,
        [a_host("h1"), ending("h2", 50.0), ending("h3", 40.0)],
        {"h1": "O2 O2 O2", "h2": "O1 O1 O1 O1", "h3": "O3"},
    )
    # h3 ends first and takes the only free place on h1; h2 is then the last to hold O1
    assert decide(observation).actions == (
        MigrateInstance("i8", "h1"),
        ReleaseHost("h3"),
        ProlongLease("h2"),
    )


def test_two_idle_hosts_that_end_together_are_both_released_but_not_the_third() -> None:
    hosts = [ending("h1", 60.0), ending("h2", 50.0), ending("h3", 40.0)]
    decision = decide(an_observation(hosts=hosts))
    assert decision.actions == (ReleaseHost("h3"), ReleaseHost("h2"), ProlongLease("h1"))


@pytest.mark.parametrize(("left_s", "actions"), [(180.0, ()), (60.0, (ProlongLease("h2"),))])
def test_no_host_is_released_within_three_minutes_of_an_order(
    left_s: float, actions: tuple[ProlongLease, ...]
) -> None:
    # guarded: prolonged at the last tick before its BTU ends, and only then
    hosts = [a_host("h1", ordered_s=NOW_S - 179.0), ending("h2", left_s)]
    setting = a_setting(btu_s=3600.0)
    observation = an_observation(hosts=hosts)
    assert decide(observation, setting=setting).actions == actions
    free = decide(observation, setting=setting, release_guard_s=179.0)
    assert free.actions == (ReleaseHost("h2"),)


def test_an_operator_scaled_up_less_than_three_minutes_ago_is_moved_and_not_stopped() -> None:
    observation = cluster(idle, [a_host("h1"), ending("h2")], {"h1": "O1 O1", "h2": "O1"})
    recent = BtuMemory({}, {"O1": NOW_S - 179.0})
    assert decide(observation, recent).actions == (MigrateInstance("i3", "h1"), ReleaseHost("h2"))
    past = BtuMemory({}, {"O1": NOW_S - 180.0})
    assert decide(observation, past).actions == (StopInstance("i3"), ReleaseHost("h2"))


def test_a_host_is_kept_while_the_monitor_cannot_read_one_of_its_operators() -> None:
    on = {"h1": "O1 O2", "h2": "O2"}
    observation = cluster_of(on, idle("O1"), hosts=[ending("h2", 150.0)])
    assert decide(observation, setting=a_setting(btu_s=3600.0)).actions == ()


def test_an_infeasible_plan_prolongs_at_once_and_not_at_the_last_tick() -> None:
    hosts = [a_host("h1"), ending("h2", 180.0)]
    observation = cluster(needed, hosts, {"h1": "O2 O2 O3 O3", "h2": "O1"})
    assert decide(observation, setting=a_setting(btu_s=3600.0)).actions == (ProlongLease("h2"),)


def test_upscaling_first_keeps_a_host_that_it_has_just_used() -> None:
    samples = [late("O1"), a_sample("O2"), a_sample("O3")]
    on = {"h1": "O1 O2 O3", "h2": ""}
    observation = cluster_of(on, *samples, hosts=[ending("h2", images=frozenset({"O1"}))])
    # h2 has the image of O1 and is empty, so Algorithm 2 prefers it
    assert decide(observation).actions == (StartInstance("O1", "h2"), ProlongLease("h2"))
    hosts_first = decide(observation, upscale_first=False)
    assert hosts_first.actions == (ReleaseHost("h2"), StartInstance("O1", "h1"))


def test_a_stopping_instance_does_not_hold_the_release_up() -> None:
    running = [an_instance("i1", "O1"), an_instance("i2", "O1", "h2", stopping=True)]
    hosts = [a_host("h1"), ending("h2")]
    observation = an_observation(operators=[idle("O1")], hosts=hosts, running=running)
    assert decide(observation).actions == (ReleaseHost("h2"),)
