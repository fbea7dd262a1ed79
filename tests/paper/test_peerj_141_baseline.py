"""PeerJ CS 141, "Baseline": threshold-based provisioning, with its three sets of thresholds."""

from __future__ import annotations

import pytest
from msgspec import structs

from include.controllers import CONTROLLERS
from include.controllers.peerj141.threshold import READINGS
from include.model.decision import (
    Decision,
    LeaseHost,
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
    an_instance,
    an_observation,
    cluster_of,
    instances,
)

SETS = [  # name, upper, second upper, lower
    ("threshold", 250, 1250, 20),
    ("threshold-peerj", 50, 250, 1),
    ("threshold-preprint", 250, 1000, 1),
]


def decide(observation: Observation, name: str = "threshold", **options: str) -> Decision:
    controller = CONTROLLERS[name].build(setting=a_setting(), **options)
    return controller.decide(controller.initial_memory(), observation)[1]


@pytest.mark.parametrize(("name", "upper", "twice", "lower"), SETS)
def test_thresholds(name: str, upper: int, twice: int, lower: int) -> None:
    def changes(waiting_items: int) -> int:
        observation = cluster_of({"h1": "O1 O1"}, a_sample("O1", waiting_items))
        actions = decide(observation, name).actions
        starts = sum(isinstance(action, StartInstance) for action in actions)
        return starts - sum(isinstance(action, StopInstance) for action in actions)

    waiting = (lower - 1, lower, upper, upper + 1, twice, twice + 1)
    assert [changes(items) for items in waiting] == [-1, 0, 0, 1, 1, 2]


def test_the_preprint_decides_every_20_s_and_the_paper_every_60_s() -> None:
    intervals = {name: CONTROLLERS[name].build(setting=a_setting()).interval_s for name, *_ in SETS}
    assert intervals == {
        "threshold": 60.0,
        "threshold-peerj": 60.0,
        "threshold-preprint": 20.0,
    }


def test_processing_durations_play_no_part() -> None:
    def with_durations(*durations_ms: float) -> Decision:
        observation = cluster_of({"h1": "O1"}, a_sample("O1", 251, durations_ms))
        return decide(observation)

    assert with_durations() == with_durations(9000.0)
    assert with_durations().actions


def test_the_first_host_with_room_takes_the_instance() -> None:
    hosts = [a_host("h1"), a_host("h2", ordered_s=2.0), a_host("h10", ordered_s=2.0)]
    running = instances({"h1": "O1 O2 O2 O2", "h2": "O2 O2", "h10": "O2"})
    operators = [a_sample("O1", 251), a_sample("O2", 100)]
    observation = an_observation(operators=operators, hosts=reversed(hosts), running=running)
    assert decide(observation).actions == (StartInstance("O1", "h2"),)


def test_a_host_is_leased_as_soon_as_all_are_fully_utilised() -> None:
    observation = cluster_of({"h1": "O1 O1 O1"}, a_sample("O1", 1251))
    assert decide(observation).actions == (
        StartInstance("O1", "h1"),
        LeaseHost("small", "new-1"),
        StartInstance("O1", "new-1"),
    )


def test_the_last_instance_of_an_operator_stays() -> None:
    observation = cluster_of({"h1": "O1"}, a_sample("O1", 0))
    assert decide(observation).actions == ()


def test_one_instance_per_tick_is_stopped_where_the_fewest_others_run() -> None:
    observation = cluster_of(
        {"h1": "O1 O2", "h2": "O1", "h3": "O1 O2 O2"}, a_sample("O1", 0), a_sample("O2", 10)
    )
    assert decide(observation, "threshold-peerj").actions == (StopInstance("i3"),)


def test_the_host_leased_last_empties_first_when_hosts_are_used_alike() -> None:
    observation = cluster_of({"h1": "O1", "h2": "O1"}, a_sample("O1", 0))
    assert decide(observation, "threshold-peerj").actions == (StopInstance("i2"),)


def test_the_runtime_may_have_stopped_the_newest_instance() -> None:
    running = [
        an_instance("i1", "O1", "h2", started_s=60.0),
        an_instance("i2", "O1", "h1", started_s=120.0),
        an_instance("i3", "O1", "h2", started_s=30.0),
    ]
    observation = an_observation(
        operators=[a_sample("O1", 0)], hosts=[a_host("h1"), a_host("h2")], running=running
    )
    assert decide(observation, reading="runtime-newest").actions == (
        StopInstance("i2", serves_s=60.0),
    )


@pytest.mark.parametrize(
    ("on_h2", "victim"),
    [("O1 O2", "i1"), ("O1 O2 O2", "i1"), ("O1", "i4"), ("O1 O2 stopping", "i1")],
)
def test_the_first_stops_unless_another_host_has_more_memory_and_more_cpu_free(
    on_h2: str, victim: str
) -> None:
    running = instances({"h1": "O1 O2 O2", "h2": on_h2.removesuffix(" stopping")})
    if "stopping" in on_h2:  # i1 is on the emptier host once what stops is left out
        running[1:3] = [structs.replace(instance, stopping=True) for instance in running[1:3]]
    else:
        running[2] = structs.replace(running[2], stopping=on_h2 == "O1 O2")  # both hosts are alike
    observation = an_observation(
        operators=[a_sample("O1", 0), a_sample("O2", 100)],
        hosts=[a_host("h1"), a_host("h2")],
        running=running,
    )
    chosen = decide(observation).actions
    assert chosen == (StopInstance(victim, serves_s=60.0),)


@pytest.mark.parametrize(("reading", "stops"), [("runtime", 0), ("paper", 1)])
def test_the_runtime_compares_the_longest_queue_with_what_instances_hold(
    reading: str, stops: int
) -> None:
    held = structs.replace(a_sample("O1", waiting_items=15), longest_queue_items=20)
    observation = cluster_of({"h1": "O1 O1"}, held)
    assert len(decide(observation, reading=reading).actions) == stops
    many = structs.replace(a_sample("O1", waiting_items=600), longest_queue_items=250)
    observation = cluster_of({"h1": "O1"}, many)
    assert len(decide(observation, reading=reading).actions) == stops


@pytest.mark.parametrize("reading", READINGS)
def test_a_place_is_given_away_at_once_or_when_its_instance_has_ended(reading: str) -> None:
    observation = cluster_of({"h1": "O1 O1 O2 O2"}, a_sample("O1", 0), a_sample("O2", 251))
    leased = (LeaseHost("small", "new-1"), StartInstance("O2", "new-1"))
    actions = decide(observation, reading=reading).actions
    if reading == "paper":
        assert actions == (StopInstance("i1"), StartInstance("O2", "h1"))
    else:
        assert actions[1:] == leased


def test_a_host_is_released_as_soon_as_its_last_instance_has_ended() -> None:
    hosts = [a_host("h1"), a_host("h2")]
    draining = [an_instance("i1", "O1"), an_instance("i2", "O1", "h2", stopping=True)]
    operators = [a_sample("O1")]
    observation = an_observation(operators=operators, hosts=hosts, running=draining)
    assert decide(observation).actions == ()
    observation = an_observation(operators=operators, hosts=hosts, running=draining[:1])
    assert decide(observation).actions == (ReleaseHost("h2"),)


def test_a_release_pays_no_attention_to_the_btu() -> None:
    hosts = [a_host("h2", paid_until_s=3600.0 + 599.0)]
    observation = cluster_of({"h1": "O1", "h2": ""}, a_sample("O1"), hosts=hosts)
    assert decide(observation).actions == (ReleaseHost("h2"),)


def test_the_last_host_is_never_released() -> None:
    assert decide(an_observation(hosts=[a_host("h1")])).actions == ()
    two = an_observation(hosts=[a_host("h1"), a_host("h2")])
    assert decide(two).actions == (ReleaseHost("h1"),)


@pytest.mark.parametrize(("left_s", "prolonged"), [(1.0, False), (0.0, True), (-1.0, True)])
def test_a_lease_whose_btu_has_ended_is_prolonged(left_s: float, prolonged: bool) -> None:
    observation = cluster_of(
        {"h1": "O1"}, a_sample("O1"), hosts=[a_host("h1", paid_until_s=3600.0 + left_s)]
    )
    assert decide(observation).actions == ((ProlongLease("h1"),) if prolonged else ())
