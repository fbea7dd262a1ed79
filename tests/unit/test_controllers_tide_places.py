"""tide's places: who gets one, who gives one, alone or together with others."""

from __future__ import annotations

import pytest

from include.model.decision import StartInstance, StopInstance
from include.testing.builders import (
    a_host,
    a_setting,
    a_topology,
    an_operator,
    instances,
)
from tests.tide_world import actions_of, decide, long_known, remembered


def test_free_room_goes_where_it_saves_most() -> None:
    decided = decide(remembered(), [a_host()], instances({"h1": "O1 O2 O3"}), {"O2": 90})
    assert actions_of(decided, StartInstance) == [StartInstance("O2", "h1")]
    assert "O2 has 1 instances; one more saves" in decided.because


@pytest.mark.parametrize(("least_gain", "starts"), [(2.0, True), (20.0, False)])
def test_an_instance_starts_only_if_it_saves_the_least_gain(
    least_gain: float, starts: bool
) -> None:
    """Of O2 a second one saves 14.5 late items per second; O3 has none."""
    running = instances({"h1": "O1 O2"})
    decided = decide(remembered(), [a_host()], running, {"O2": 90}, least_gain=least_gain)
    started = actions_of(decided, StartInstance)
    assert StartInstance("O3", "h1") in started
    assert (StartInstance("O2", "h1") in started) == starts


def test_an_operator_gives_way_to_one_that_saves_more() -> None:
    decided = decide(remembered(), [a_host()], instances({"h1": "O1 O1 O2 O3"}), {"O3": 400})
    assert actions_of(decided, StopInstance, StartInstance) == [
        StopInstance("i2"),
        StartInstance("O3", "h1"),
    ]
    assert "i2 gives its place, costing" in decided.because


@pytest.mark.parametrize(
    ("memory_mb", "on", "gives"),
    [
        ((1000, 1000), {"h1": "O1 O1 O1 O2", "h2": "O3 O3"}, ["i3", "i2"]),
        ((1000, 1000), {"h1": "O1 O1 O2 O2", "h2": "O3 O3"}, ["i2", "i4"]),
        ((1000, 1000), {"h1": "O1 O2 O3", "h2": "O3 O3"}, []),
        ((500, 1000), {"h1": "O1 O1 O2 O2 O2", "h2": "O3 O3"}, ["i5", "i4"]),
        ((1000, 2000), {"h1": "O1 O1 O1 O1", "h2": "O2 O3"}, ["i4", "i3"]),
        (
            (1000, 1000),
            {"h1": "O2 O2 O2 O2", "h2": "O1 O1 O1 O1", "h3": "O3 O3"},
            ["i8", "i7"],
        ),
    ],
    ids=["of one operator", "of two", "no last ones", "no needless ones",
         "though a last one has such a place", "where they are missed least"],
)  # fmt: skip
def test_several_on_a_host_give_their_places_to_a_large_one(
    memory_mb: tuple[float, float], on: dict[str, str], gives: list[str]
) -> None:
    """Items of O3, of 2,000 MB, keep all of its instances busy for ``work_off_s``, and an
    eighth of another."""
    sizes = {"O1": memory_mb[0], "O2": memory_mb[1], "O3": 2000.0}
    topology = a_topology(*[an_operator(name, memory_mb=mb) for name, mb in sizes.items()])
    waiting = {"O2": 10, "O3": 80 * " ".join(on.values()).count("O3") - 30}
    decided = decide(
        long_known(), map(a_host, on), instances(on), waiting, setting=a_setting(topology)
    )
    to = "h2" if "i8" in gives else "h1"
    assert actions_of(decided, StopInstance, StartInstance) == [
        *map(StopInstance, gives),
        *[StartInstance("O3", to)] * bool(gives),
    ]


def test_an_operator_without_instances_comes_first() -> None:
    decided = decide(remembered(), [a_host()], instances({"h1": "O1 O1 O1 O3"}))
    assert actions_of(decided, StartInstance) == [StartInstance("O2", "h1")]
    assert "O2 has no instance" in decided.because
