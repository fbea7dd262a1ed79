"""PeerJ CS 141: rules of the authors' runtime that ``btu-source`` adds to ``btu-runtime``."""

from __future__ import annotations

import numpy as np
import pytest

from include.controllers.peerj141.btu_source import (
    BtuSource,
    SourceMemory,
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

SOURCE = BtuSource(setting=a_setting())


def source_actions(observation: Observation, source: BtuSource = SOURCE) -> tuple[object, ...]:
    return source.decide(SourceMemory(), observation)[1].actions


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
    assert source_actions(observation) == (StartInstance("O1", "h1"),) * starts


def test_memory_is_divided_as_whole_numbers() -> None:
    """A host of 4 cores and 2 GB with 2 cores and 1.4 GB left, for half a core and 500 MB."""
    numbers = np.array([[4.0, 4.0], [2000.0, 2000.0], [2.0, 0.4], [1400.0, 1400.0]])
    ranked = by_free_cpu(numbers, an_operator("O1", cpu_cores=0.5, memory_mb=500.0))
    assert ranked.tolist() == [1.5 / 4 / 2, np.inf]


def test_an_operator_that_needs_an_instance_may_give_one() -> None:
    """O2 will be late, and has the most instances: 1 + 1 - 0.7 * 1.01 is above 0."""
    soon_late = a_sample("O2", 51, (700.0,) * 5)
    observation = cluster_of({"h1": "O1 O2 O2 O2"}, late("O1"), soon_late)
    assert StopInstance("i2", serves_s=60.0) in source_actions(observation)


def test_the_first_two_of_the_first_operators_by_name_give_until_there_is_room() -> None:
    """O4 needs three places; X gives two, Y one, and a host is leased all the same."""
    large = an_operator("O4", memory_mb=3000.0)
    source = BtuSource(setting=a_setting(a_topology("X", "Y", large)))
    observation = cluster_of(
        {"h1": "X X X Y", "h2": "X Y Y Y", "h3": "O4"}, idle("X"), idle("Y"), late("O4")
    )
    assert source_actions(observation, source) == (
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
    assert SOURCE.counted(utilities) == {"O5": 3.0, "O9": 2.0}
    assert list(SOURCE.counted(utilities)) == ["O5", "O9"]
    assert sorted("abz", key=bucket) == ["a", "b", "z"]
    assert [bucket(in_source(f"O{i}")) for i in range(1, 10)] == [10, 11, 4, 4, 11, 8, 9, 9, 0]


def test_hosts_come_by_lease_and_two_at_first_suffice() -> None:
    """h1 is leased first and ends last; once it has gone, h2 is looked at all the same: O1 finds
    no other host, so one is leased for it."""
    observation = cluster_of(
        {"h1": "O1", "h2": "O1"}, idle("O1"), hosts=[ending("h1"), ending("h2", 30.0)]
    )
    assert source_actions(observation) == (
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
    assert source_actions(observation) == (
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
    assert source_actions(observation) == (
        StopInstance("i1", serves_s=60.0),
        MigrateInstance("i2", "h2", serves_s=60.0),
        LeaseHost("small", "new-1"),
        ProlongLease("h1"),
    )


def test_what_made_room_for_another_host_wants_a_place_in_the_simulation() -> None:
    """i2 made room for O3 of h1. It takes the place there that O4 of h2 would need to move."""
    large = an_operator("O4", memory_mb=3000.0)
    source = BtuSource(setting=a_setting(a_topology("O1", "O3", large)))
    observation = cluster_of(
        {"h1": "O3", "h2": "O1 O4", "h3": "O1 O1 O1 O1"},
        a_sample("O1"),
        needed("O3"),
        needed("O4"),
        hosts=[ending("h1"), ending("h2")],
    )
    assert source_actions(observation, source) == (
        StopInstance("i2", serves_s=60.0),
        ProlongLease("h1"),
        ProlongLease("h2"),
    )


def test_rows_of_this_decision_count_at_once() -> None:
    """O1 has one of three rows, then one of four, then of seven."""
    observation = cluster_of({"h1": "O1 O1 O2", "h2": ""}, a_sample("O1"), needed("O2"))
    memory = SourceMemory({"O1": 1, "O2": 2}, of_hosts=0)
    plan = Plan(SOURCE.setting, observation)
    standings = SOURCE.standings(observation, memory, {})
    without = 1 + 1 - 0.5 * 1.01
    assert SOURCE.utilities(plan, standings)["O1"] == pytest.approx(without - 1 / 3)
    plan.lease(why())
    assert SOURCE.utilities(plan, standings)["O1"] == pytest.approx(without - 1 / 4)
    plan.migrate(plan.on_host("h1")[2], "h2", why())
    assert SOURCE.utilities(plan, standings)["O1"] == pytest.approx(without - 1 / 7)


def test_nothing_moves_where_the_simulation_finds_no_place() -> None:
    """i4 was stopped, but is simulated and takes the only place; O1 cannot give another."""
    observation = cluster_of(
        {"h1": "O1 O2 O3", "h2": "O1 O2 O3"},
        idle("O1"),
        needed("O2"),
        needed("O3"),
        hosts=[ending("h2")],
    )
    assert source_actions(observation) == (StopInstance("i4", serves_s=60.0), ProlongLease("h2"))


def test_what_finds_a_place_moves_where_an_operator_has_no_load_left() -> None:
    """The utility of O1 is above 5, so O2 moves; O3 finds no place and O1 gives one for it."""
    observation = cluster_of(
        {"h1": "O1 O1 O2", "h2": "O2 O3", "h3": "O3 O3 O3 O3"},
        idle("O1"),
        needed("O2"),
        needed("O3"),
        hosts=[ending("h2")],
    )
    assert source_actions(observation) == (
        MigrateInstance("i4", "h1", serves_s=60.0),
        StopInstance("i1", serves_s=60.0),
        ProlongLease("h2"),
    )


def test_a_host_is_leased_for_an_instance_that_was_to_leave_its_own() -> None:
    """No place is free, and no operator may give one."""
    observation = cluster_of(
        {"h1": "O2 O2 O3 O3", "h2": "O2"}, needed("O2"), needed("O3"), hosts=[ending("h2")]
    )
    assert source_actions(observation) == (LeaseHost("small", "new-1"), ProlongLease("h2"))


def test_rows_of_moves_and_hosts_count_as_scalings() -> None:
    """A move is a start, a stop and a migration, and nobody shrinks its operator for 180 s.

    Both first hosts have a row, and the one that is given back another."""
    observation = cluster_of({"h1": "O1", "h2": "O2"}, needed("O1"), needed("O2"))
    moving = cluster_of({"h1": "O1", "h2": "O2"}, needed("O1"), needed("O2"), hosts=[ending("h2")])
    memory, decision = SOURCE.decide(SOURCE.initial_memory(), moving)
    assert decision.actions == (MigrateInstance("i2", "h1", serves_s=60.0), ReleaseHost("h2"))
    assert memory == SourceMemory(
        scalings={"O1": 1, "O2": 4, "O3": 1},
        upscaled_s={"O1": 0.0, "O2": NOW_S, "O3": 0.0},
        of_hosts=3,
    )
    assert SOURCE.standings(observation, memory, {}).names == ("O1",)
