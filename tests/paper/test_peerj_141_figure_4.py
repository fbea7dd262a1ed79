"""PeerJ CS 141, Fig. 4 (upscaling procedure) and its simulation phase (preprint, section 4.1)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from include.controllers.peerj141.btu import Btu, BtuMemory
from include.controllers.peerj141.procedures import simulate_reclaim
from include.controllers.plan import Plan
from include.model.decision import Decision, LeaseHost, StartInstance, StopInstance
from include.model.observation import Observation
from include.testing.builders import (
    SMALL,
    a_host,
    a_sample,
    a_setting,
    a_topology,
    an_instance,
    an_observation,
    an_operator,
    cluster_of,
    idle,
    instances,
    late,
    why,
)

LEASED = (LeaseHost("small", "new-1"), StartInstance("O1", "new-1"))
LARGE = {"memory_mb": 2000.0}
"""Half a host; the other operators take 1000 MB each."""
LARGE_O1 = a_setting(a_topology(an_operator("O1", **LARGE), "O2", "O3"))
LARGE_O1_O3 = a_setting(a_topology(an_operator("O1", **LARGE), "O2", an_operator("O3", **LARGE)))


def decide(
    observation: Observation, memory: BtuMemory | None = None, **options: object
) -> Decision:
    setting = options.pop("setting", None) or a_setting()
    controller = Btu(setting=setting, **options)
    return controller.decide(memory or BtuMemory(), observation)[1]


def test_first_the_most_suitable_running_host_takes_the_instance() -> None:
    observation = cluster_of(
        {"h1": "O1 O2 O2", "h2": "O2", "h3": "O2 O2"},
        late("O1"),
        a_sample("O2"),
        hosts=[a_host("h3", images=frozenset({"O1"}))],
    )
    assert decide(observation).actions == (StartInstance("O1", "h3"),)


def test_a_host_that_is_being_released_takes_nothing() -> None:
    observation = cluster_of(
        {"h1": "O1", "h2": ""},
        late("O1"),
        hosts=[a_host("h2", releasing=True, images=frozenset({"O1"}))],
    )
    assert decide(observation).actions == (StartInstance("O1", "h1"),)


def test_a_host_that_still_boots_takes_the_instance_before_another_one_is_leased() -> None:
    observation = cluster_of(
        {"h1": "O1 O1 O1 O1", "h2": ""}, late("O1"), hosts=[a_host("h2", up=False)]
    )
    assert decide(observation).actions == (StartInstance("O1", "h2"),)


def test_a_stopping_instance_still_holds_its_place() -> None:
    running = [*instances({"h1": "O1 O2 O3"}), an_instance("i9", "O2", "h1", stopping=True)]
    observation = an_observation(operators=[late("O1")], hosts=[a_host("h1")], running=running)
    assert decide(observation).actions == LEASED


def test_without_room_the_operator_with_the_best_utility_gives_an_instance() -> None:
    on = {"h1": "O1 O2 O2 O3", "h2": "O2 O3 O3 O3"}
    # utilities: none, about 1.5, 101.5
    observation = cluster_of(on, late("O1"), a_sample("O2"), idle("O3"))
    decision = decide(observation)
    assert decision.actions == (StopInstance("i4"), StartInstance("O1", "h1"))
    assert decision.steps[0].because == "O1 needs its place; O3 has utility 101.50"


def test_the_instance_that_was_started_last_on_the_host_gives_way() -> None:
    old = an_instance("i1", "O2", started_s=5.0)
    new = an_instance("i2", "O2", started_s=60.0)
    older = an_instance("i3", "O2", started_s=1.0)
    observation = an_observation(
        operators=[late("O1"), idle("O2")],
        hosts=[a_host("h1")],
        running=[old, new, older, an_instance("i4", "O1")],
    )
    assert decide(observation).actions == (StopInstance("i2"), StartInstance("O1", "h1"))


def test_the_simulation_finds_as_many_instances_as_are_needed_on_one_host() -> None:
    observation = cluster_of(
        {"h1": "O1 O2 O3", "h2": "O1 O2 O3"}, late("O1"), idle("O2"), idle("O3")
    )
    # A host has 4000 MB, O1 needs 2000: one stop frees 1000 and does not suffice.
    stops = StopInstance("i2"), StopInstance("i3")
    assert decide(observation, setting=LARGE_O1).actions == (*stops, StartInstance("O1", "h1"))


def test_when_no_single_host_can_be_cleared_nothing_is_stopped_and_a_host_is_leased() -> None:
    observation = cluster_of(
        {"h1": "O1 O2 O3", "h2": "O1 O2 O1"}, late("O1"), idle("O2"), a_sample("O3")
    )
    # each host could give one O2, which frees 1000 of the 2000 MB; the only O3 is protected
    assert decide(observation, setting=LARGE_O1).actions == LEASED


def test_the_host_with_the_fewest_stops_is_cleared() -> None:
    observation = cluster_of(
        {"h1": "O1 O2 O2", "h2": "O3 O3"}, late("O1"), idle("O2"), a_sample("O3")
    )
    # h1 would need both O2 (one must stay), h2 one O3.
    cleared = StopInstance("i5"), StartInstance("O1", "h2")
    assert decide(observation, setting=LARGE_O1_O3).actions == cleared


def test_one_stop_of_a_lower_utility_is_better_than_two_of_the_best() -> None:
    observation = cluster_of(
        {"h1": "O2 O2 O1", "h2": "O3 O3", "h3": "O2 O2 O1"}, late("O1"), idle("O2"), a_sample("O3")
    )
    cleared = StopInstance("i5"), StartInstance("O1", "h2")
    assert decide(observation, setting=LARGE_O1_O3).actions == cleared


def test_among_single_stops_the_best_utility_wins_over_the_earlier_host() -> None:
    observation = cluster_of(
        {"h1": "O1 O2 O2 O2", "h2": "O1 O3 O3 O3"}, late("O1"), a_sample("O2"), idle("O3")
    )
    assert decide(observation).actions == (StopInstance("i8"), StartInstance("O1", "h2"))


def test_an_operator_does_not_make_room_for_itself() -> None:
    observation = cluster_of({"h1": "O1 O1 O1 O2"}, late("O1"))
    plan = Plan(a_setting(), observation)
    assert simulate_reclaim(plan, plan.operator("O1"), {"O1": 5.0}, plan.free) == ()
    assert simulate_reclaim(plan, plan.operator("O2"), {"O1": 5.0}, plan.free) == (
        observation.instances["i3"],
    )


def test_places_are_those_of_operators_that_have_instances() -> None:
    """One that runs in another has none, wherever it stands in the topology."""
    topology = a_setting().topology
    first, *others = topology.operators
    guest = replace(first, name="guest", runs_in=first.name)
    setting = replace(a_setting(), topology=replace(topology, operators=(first, guest, *others)))
    observation = cluster_of({"h1": "O1 O2 O2"}, a_sample("O1"), idle("O2"), a_sample("O3"))
    standings = Btu(setting=setting).standings(observation, BtuMemory({}, {}), {})
    assert standings.names == ("O1", "O2", "O3")
    assert standings.places.tolist() == [0, 1, 2]


def test_utilities_count_the_scalings_that_the_same_decision_has_made() -> None:
    observation = cluster_of({"h1": "O1 O2 O2"}, a_sample("O1"), idle("O2"))
    controller, plan = Btu(setting=a_setting()), Plan(a_setting(), observation)
    memory = BtuMemory({"O2": 1}, {})
    standings = controller.standings(observation, memory, {})
    before = controller.utilities(plan, standings)["O2"]  # o_s / sum = 1 / 1
    plan.start("O1", "h1", why("needed"))  # 1 / 2; max(o_#) stays 2, min(o_#) of O3 stays 0
    assert controller.utilities(plan, standings)["O2"] - before == pytest.approx(0.5)


def test_an_operator_keeps_its_last_instance_and_its_last_ready_one() -> None:
    waiting = [an_instance("i4", "O2", "h1", ready=False, started_s=9.0)]
    observation = an_observation(
        operators=[late("O1"), idle("O2")],
        hosts=[a_host("h1")],
        running=[*instances({"h1": "O1 O1 O2"}), *waiting],
    )
    assert decide(observation).actions == (StopInstance("i4"), StartInstance("O1", "h1"))
    observation = cluster_of({"h1": "O1 O1 O1 O2"}, late("O1"), idle("O2"))
    assert decide(observation).actions == LEASED


def test_an_operator_that_is_late_itself_gives_nothing() -> None:
    observation = cluster_of({"h1": "O1 O1 O2 O2"}, late("O1"), late("O2"))
    actions = decide(observation).actions
    assert not any(isinstance(action, StopInstance) for action in actions)


def test_an_operator_scaled_up_less_than_three_minutes_ago_gives_nothing() -> None:
    observation = cluster_of({"h1": "O1 O2 O2 O2"}, late("O1"), idle("O2"))
    recent, past = BtuMemory({}, {"O2": 3421.0}), BtuMemory({}, {"O2": 3420.0})
    assert isinstance(decide(observation, recent).actions[0], LeaseHost)
    assert isinstance(decide(observation, past).actions[0], StopInstance)
    assert isinstance(decide(observation, recent, scale_down_guard_s=0.0).actions[0], StopInstance)


def test_scalings_of_the_past_spare_an_operator() -> None:
    observation = cluster_of({"h1": "O2 O2 O3 O3"}, late("O1"), idle("O2"), idle("O3"))
    often_o2 = BtuMemory({"O2": 9, "O3": 1}, {})
    often_o3 = BtuMemory({"O2": 1, "O3": 9}, {})
    assert decide(observation, often_o2).actions[0] == StopInstance("i4")
    assert decide(observation, often_o3).actions[0] == StopInstance("i2")


def test_two_instances_when_more_than_250_items_wait() -> None:
    for waiting_items, starts in ((51, 1), (250, 1), (251, 2)):
        observation = cluster_of({"h1": "O1"}, late("O1", waiting_items))
        assert decide(observation).actions == (StartInstance("O1", "h1"),) * starts


def test_starts_of_one_decision_share_the_host_it_leases() -> None:
    observation = cluster_of(
        {"h1": "O1 O2 O3 O3"}, late("O1", 300), late("O2", 300), late("O3", 300)
    )
    actions = decide(observation).actions
    assert [a.handle for a in actions if isinstance(a, LeaseHost)] == ["new-1", "new-2"]
    starts = [action.host for action in actions if isinstance(action, StartInstance)]
    assert sorted(starts) == ["new-1"] * 4 + ["new-2"] * 2


def test_an_operator_without_any_instance_gets_one_back_even_when_nothing_waits() -> None:
    observation = cluster_of({"h1": ""}, idle("O1"))
    decision = decide(observation)
    assert decision.actions == (StartInstance("O1", "h1"),)
    assert "O1 has no instance left" in decision.steps[0].because


def test_an_operator_that_fits_no_host_is_not_leased_for() -> None:
    giant = a_topology(an_operator("O1", memory_mb=SMALL.memory_mb + 1))
    observation = cluster_of({"h1": ""}, late("O1"))
    assert decide(observation, setting=a_setting(giant)).actions == ()


def test_upscaling_is_remembered_with_its_time_and_scalings_are_counted() -> None:
    observation = cluster_of({"h1": "O1 O2 O2 O2"}, late("O1"), idle("O2"), now_s=600.0)
    memory, _ = Btu(setting=a_setting()).decide(BtuMemory({"O2": 3}, {"O2": 60.0}), observation)
    assert memory == BtuMemory({"O1": 1, "O2": 4}, {"O1": 600.0, "O2": 60.0})
