"""The over-provisioned deployment that never scales."""

from __future__ import annotations

from include.controllers.fixed import Fixed
from include.controllers.plan import NoMemory
from include.model.decision import Action, LeaseHost, StartInstance
from include.model.observation import Observation
from include.testing.builders import (
    a_host,
    a_sample,
    a_setting,
    an_instance,
    an_observation,
    instances,
)

SETTING = a_setting(instances_at_peak={"O1": 3, "O2": 0})


def actions(observation: Observation) -> tuple[Action, ...]:
    return Fixed(setting=SETTING).decide(NoMemory(), observation)[1].actions


def test_it_starts_with_the_instances_of_the_peak_and_at_least_one_of_each_operator() -> None:
    assert Fixed(setting=SETTING).initial_instances() == {"O1": 3, "O2": 1, "O3": 1}


def test_instances_each_overrides_the_peak() -> None:
    fixed = Fixed(setting=SETTING, instances_each=4)
    assert fixed.initial_instances() == {"O1": 4, "O2": 4, "O3": 4}


def test_it_replaces_what_was_lost() -> None:
    observation = an_observation(
        operators=[a_sample("O1"), a_sample("O2")],
        hosts=[a_host("h1")],
        running=[*instances({"h1": "O1 O2 O3"}), an_instance("i9", "O1", stopping=True)],
    )
    assert actions(observation) == (
        LeaseHost("small", "new-1"),
        StartInstance("O1", "new-1"),
        StartInstance("O1", "new-1"),
    )
