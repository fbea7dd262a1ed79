"""From numbers to a plan: where instances start, which stop, and when a host is given back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from pydantic import TypeAdapter

from include.controllers import CONTROLLERS
from include.controllers.autoscalers.base import HOLD_TO_BTU_END, WHEN_EMPTY, Autoscaler, target_of
from include.controllers.base import Group
from include.model.decision import (
    LeaseHost,
    ProlongLease,
    Reason,
    ReleaseHost,
    StartInstance,
    StopInstance,
)
from include.testing import ControllerContract
from include.testing.builders import a_host, a_sample, a_setting, an_observation, instances
from include.testing.clusters import NAMES, SETTING, observations
from include.testing.replay import Replay

TODAY = {
    name: registration.build
    for name, registration in CONTROLLERS.items()
    if isinstance(registration.build, type) and issubclass(registration.build, Autoscaler)
}


class TestHoldingToTheEndOfABtu(ControllerContract):
    """The contract of every controller holds for the other way to release, too."""

    controllers: ClassVar = {
        name: partial(build, release=HOLD_TO_BTU_END) for name, build in TODAY.items()
    }


def test_what_is_in_use_today_has_this_adapter():
    group = {name for name, one in CONTROLLERS.items() if one.group is Group.IN_USE_TODAY}
    assert set(TODAY) == group


@dataclass(frozen=True, kw_only=True)
class Asked(Autoscaler):
    """Asks for what it was told to: so many of O1 and of O2."""

    o1: int = 1
    o2: int = 1

    def initial_memory(self):
        return None

    def targets(self, memory, observation):
        asked = {"O1": self.o1, "O2": self.o2}
        return None, {
            name: target_of(len(observation.serving(name)), count, "as asked")
            for name, count in asked.items()
            if name in observation.operators
        }

    def watched(self, memory, observation, operator):
        return None


def actions(running, hosts=None, read=("O1", "O2"), **options: Any):
    """What is done about ``running`` (host to operators) at second 3600."""
    observation = an_observation(
        operators=[a_sample(name) for name in read],
        hosts=hosts or [a_host(name) for name in running],
        running=instances(running),
    )
    return Asked(setting=a_setting(), **options).decide(None, observation)[1].actions


def test_instances_start_on_the_first_host_with_room():
    """Four fit a host; h1 has room for one, h2 for two."""
    taken = actions({"h1": "O1 O2 O2", "h2": "O2 O2"}, o1=3, o2=4)
    assert taken == (StartInstance("O1", "h1"), StartInstance("O1", "h2"))


def test_the_instance_that_shares_its_host_with_the_fewest_stops():
    """i1 has three beside it, i5 one and i7 none."""
    taken = actions({"h1": "O1 O2 O2 O2", "h2": "O1 O2", "h3": "O1"}, o1=2, o2=4)
    assert taken == (StopInstance("i7"),)


def test_the_last_instance_stays_whatever_is_asked_for():
    assert actions({"h1": "O1 O1 O2"}, o1=0, o2=0) == (StopInstance("i1"),)


BTU_S = 600.0


@pytest.mark.parametrize(
    ("release", "left_s", "does"),
    [
        (WHEN_EMPTY, 400.0, [ReleaseHost("h2")]),
        (HOLD_TO_BTU_END, 400.0, []),
        (HOLD_TO_BTU_END, 60.0, []),  # there is one more look before it is paid again
        (HOLD_TO_BTU_END, 59.0, [ReleaseHost("h2")]),
        (HOLD_TO_BTU_END, 0.0, [ReleaseHost("h2")]),
    ],
)
def test_an_empty_host_goes_at_once_or_before_it_is_paid_again(release, left_s, does):
    hosts = [a_host("h1"), a_host("h2", paid_until_s=3600 + left_s)]
    assert [*actions({"h1": "O1 O2"}, hosts, release=release)] == does


@pytest.mark.parametrize("release", [WHEN_EMPTY, HOLD_TO_BTU_END])
def test_a_host_with_instances_is_kept_and_so_is_the_last_one(release):
    ended = a_host("h1", paid_until_s=3600.0)
    assert actions({"h1": "O1 O2"}, [ended], release=release) == (ProlongLease("h1"),)
    empty = a_host("h2", paid_until_s=3600.0)
    assert actions({}, [empty], read=(), release=release) == (ProlongLease("h2"),)


def test_an_empty_host_that_is_held_takes_what_starts():
    """And then it is paid for once more."""
    hosts = [a_host("h1"), a_host("h2", paid_until_s=3600.0)]
    full = {"h1": "O1 O2 O2 O2"}
    held = actions(full, hosts, o1=2, o2=3, release=HOLD_TO_BTU_END)
    assert held == (StartInstance("O1", "h2"), ProlongLease("h2"))
    at_once = actions(full, hosts, o1=2, o2=3, release=WHEN_EMPTY)
    assert at_once[0] == ReleaseHost("h2")
    assert isinstance(at_once[1], LeaseHost)


def test_the_reason_says_which_way():
    assert target_of(1, 2, "").why.reason is Reason.UTILISATION_HIGH
    assert target_of(2, 1, "").why.reason is Reason.UTILISATION_LOW


readings = st.fixed_dictionaries(
    {
        name: st.tuples(
            st.integers(0, 20_000), st.integers(0, 20_000), *[st.integers(0, 10_000)] * 2
        )
        for name in NAMES
    }
)


@settings(max_examples=30, derandomize=True, deadline=None, database=None)
@given(observations(), readings, readings)
def test_what_was_measured_leads_to_nothing_impossible(observation, first, second):
    """Counts that grow as they like, in three looks a while apart, and memory stored between."""
    for name, build in TODAY.items():
        autoscaler = build(setting=SETTING)
        memory = autoscaler.initial_memory()
        for turn, readings_of in enumerate(((first,), (first, second), (first, second, first))):
            now = _with(observation, readings_of, observation.now_s + 1500.0 * turn)
            stored = TypeAdapter(type(memory))
            assert stored.validate_json(stored.dump_json(memory)) == memory, name
            memory, decision = autoscaler.decide(memory, now)
            Replay(now).run(decision)


def _with(observation, since_the_beginning, now_s):
    operators = {}
    for name, sample in observation.operators.items():
        *_, (_, _, busy, more) = (reading[name] for reading in since_the_beginning)
        operators[name] = structs.replace(
            sample,
            arrived_in_all=sum(reading[name][0] for reading in since_the_beginning),
            completed_in_all=sum(reading[name][1] for reading in since_the_beginning),
            busy_share=busy / 10_000,
            busiest_share=max(busy, more) / 10_000,
        )
    return replace(observation, operators=operators, now_s=now_s)
