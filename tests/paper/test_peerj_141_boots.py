"""What a boot holds up in the authors' runtime; lines are of visp-streaming/runtime c3f9999."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import pytest

from include.controllers.peerj141.btu_runtime import BtuRuntime
from include.controllers.peerj141.threshold import Threshold
from include.model.decision import (
    Action,
    LeaseHost,
    MigrateInstance,
    ProlongLease,
    ReleaseHost,
    StartInstance,
)
from include.model.observation import HostSample, Observation
from include.testing import ControllerContract
from include.testing.builders import (
    a_host,
    a_setting,
    an_observation,
    instances,
    late,
)

THRESHOLD = partial(Threshold, scale_up_above_items=50, boot_blocks=True, interval_s=3.0)
RUNTIME = partial(BtuRuntime, boot_blocks=True, interval_s=3.0)
BOTH = pytest.mark.parametrize("build", [THRESHOLD, RUNTIME], ids=["threshold", "btu-runtime"])
FULL = {"h1": "O1 O2 O3 O3"}


class TestBlocked(ControllerContract):
    """Whoever waits for a boot keeps what every controller keeps, except what waiting excludes."""

    controllers: ClassVar = {"threshold": THRESHOLD, "btu-runtime": RUNTIME}
    restless: ClassVar = {"btu-runtime": {MigrateInstance, LeaseHost, ReleaseHost}}
    # A lease that runs out meanwhile waits, too, and a flood starts one operator after the other.
    test_a_lease_that_has_run_out_is_decided_on = None  # type: ignore[assignment]
    test_unusual_but_possible_observations = None  # type: ignore[assignment]


def world(
    *more: HostSample, now_s: float = 0.0, waiting_items: int = 100, **first: Any
) -> Observation:
    """A full host, one with an instance if it is up, and operators that grow by one each."""
    taken = {host.host: "O1" for host in more if host is TAKEN}
    return an_observation(
        operators=[late(name, waiting_items) for name in ("O1", "O2", "O3")],
        hosts=[a_host("h1", **first), *more],
        running=instances(FULL | taken),
        now_s=now_s,
    )


class Play:
    """A controller with its memory, asked again and again."""

    def __init__(self, build: Callable[..., Any]) -> None:
        self._controller = build(setting=a_setting())
        self._memory = self._controller.initial_memory()

    def __call__(self, observation: Observation) -> tuple[Action, ...]:
        self._memory, decision = self._controller.decide(self._memory, observation)
        actions: tuple[Action, ...] = decision.actions
        return actions


def starts(actions: tuple[Action, ...]) -> list[str]:
    return [action.operator for action in actions if isinstance(action, StartInstance)]


def leases(actions: tuple[Action, ...]) -> int:
    return sum(isinstance(action, LeaseHost) for action in actions)


BOOTING = a_host("h2", up=False)
TAKEN = a_host("h2")


@BOTH
def test_a_lease_ends_the_look_and_others_follow_once_the_host_is_up(
    build: Callable[..., Any],
) -> None:
    """``startVM`` returns when the daemon answers (OpenstackConnector, lines 110 and 169)."""
    ask = Play(build)
    first = ask(world())
    assert (leases(first), len(starts(first))) == (1, 1)
    assert ask(world(BOOTING, now_s=3.0)) == ()
    assert ask(world(BOOTING, now_s=57.0)) == ()
    rest = starts(ask(world(TAKEN, now_s=60.0)))
    assert sorted([*starts(first), *rest]) == ["O1", "O2", "O3"]


@BOTH
def test_an_operator_is_judged_by_what_waits_when_its_turn_comes(
    build: Callable[..., Any],
) -> None:
    """``Monitor.getQueueCount`` asks the broker at the call (line 276)."""
    ask = Play(build)
    ask(world())
    assert starts(ask(world(TAKEN, now_s=45.0, waiting_items=30))) == []


@BOTH
def test_hosts_boot_one_after_the_other(build: Callable[..., Any]) -> None:
    full = {"h1": FULL["h1"], "h2": "O1 O1 O1 O1"}
    ask = Play(build)
    assert leases(ask(world())) == 1
    crowded = replace(
        world(TAKEN, now_s=45.0), instances={each.instance: each for each in instances(full)}
    )
    assert leases(ask(crowded)) == 1


@BOTH
def test_a_round_that_ends_late_makes_the_next_late_and_none_is_left_out(
    build: Callable[..., Any],
) -> None:
    """``@Scheduled(fixedRateString)``: Java runs what it missed at once, one after the other."""
    ask = Play(build)
    ask(world())
    for now_s in (60.0, 120.0):
        assert ask(world(BOOTING, now_s=now_s)) == ()
    crowded = [starts(ask(world(TAKEN, now_s=now_s))) for now_s in (150.0, 153.0, 156.0, 159.0)]
    assert [len(each) for each in crowded] == [2, 3, 3, 0]
    assert len(starts(ask(world(TAKEN, now_s=180.0)))) == 3


def test_the_threshold_releases_and_prolongs_before_it_scales() -> None:
    """``ReasonerBasic``, lines 85 to 100 and 104: not again when the round goes on."""
    ask = Play(THRESHOLD)
    empty = a_host("h3")
    over = world(empty, now_s=600.0, paid_until_s=590.0, waiting_items=30)
    assert [type(action) for action in ask(over)] == [ReleaseHost, ProlongLease]
    assert ask(replace(over, now_s=603.0))  # the first round was due at 0 s, this one at 60 s


def test_btu_runtime_retires_hosts_after_its_last_operator_only() -> None:
    """``ReasonerBTU``, lines 114 to 127, then 138 to 249."""
    ends = {"paid_until_s": 640.0, "now_s": 600.0}
    ask = Play(RUNTIME)
    first = ask(world(**ends))
    assert leases(first) == 1
    assert not any(isinstance(action, ProlongLease) for action in first)
    after = ask(world(TAKEN, **{**ends, "now_s": 630.0}))
    assert any(isinstance(action, ProlongLease | ReleaseHost) for action in after)
