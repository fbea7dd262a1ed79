"""Deployments that nobody adapts: before the first item, over-provisioned, and by hand."""

from __future__ import annotations

from collections import Counter

import pytest

from include.controllers import CONTROLLERS
from include.controllers.deployment import first_deployment
from include.controllers.fixed import Fixed, manual_instances, manual_problems
from include.controllers.plan import NoMemory
from include.model.decision import LeaseHost, StartInstance
from include.testing.builders import (
    a_host,
    a_sample,
    a_setting,
    a_topology,
    an_instance,
    an_observation,
    an_operator,
    instances,
)
from tests.builders import PAPER, manufacturing
from tests.henge_world import a_cluster

SETTING = a_setting(instances_at_peak={"O1": 3, "O2": 0})
CLUSTER = a_cluster({"A": 10, "B": 20}, instances=3)


def test_it_starts_with_the_instances_of_the_peak_and_at_least_one_of_each_operator() -> None:
    assert Fixed(setting=SETTING).initial_instances() == {"O1": 3, "O2": 1, "O3": 1}


def test_it_replaces_what_was_lost() -> None:
    observation = an_observation(
        operators=[a_sample("O1"), a_sample("O2")],
        hosts=[a_host("h1")],
        running=[*instances({"h1": "O1 O2 O3"}), an_instance("i9", "O1", stopping=True)],
    )
    _, decided = Fixed(setting=SETTING).decide(NoMemory(), observation)
    assert decided.actions == (
        LeaseHost("small", "new-1"),
        StartInstance("O1", "new-1"),
        StartInstance("O1", "new-1"),
    )


def test_one_instance_of_each_operator_of_the_paper_needs_two_hosts() -> None:
    setting = a_setting(manufacturing(), flavor=PAPER)
    decision = first_deployment(setting, dict.fromkeys(setting.topology.operator_names, 1))
    starts = [action for action in decision.actions if isinstance(action, StartInstance)]
    assert [action.operator for action in starts] == list(setting.topology.operator_names)
    assert Counter(type(action) for action in decision.actions)[LeaseHost] == 2


def test_first_instances_come_before_second_ones() -> None:
    decision = first_deployment(a_setting(), {"O1": 2, "O2": 1, "O3": 1})
    order = [action.operator for action in decision.actions if isinstance(action, StartInstance)]
    assert order == ["O1", "O2", "O3", "O1"]


def test_an_operator_that_fits_no_host_is_left_out() -> None:
    setting = a_setting(a_topology("O1", an_operator("O2", memory_mb=4001.0)))
    assert len(first_deployment(setting, {"O1": 1, "O2": 1}).actions) == 2
    assert first_deployment(setting, {}).because == "nothing to deploy"


def test_a_name_stands_for_the_operators_of_every_tenant() -> None:
    assert manual_instances("first=7", CLUSTER) == {
        "A.first": 7,
        "A.second": 3,
        "B.first": 7,
        "B.second": 3,
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("first=0", "a number of at least 1, got 'first=0'"),
        ("first", "write name=number"),
        ("first=²", "a number of at least 1, got 'first=²'"),
        ("frist=2", "unknown operator 'frist'. Did you mean 'first'?"),
    ],
)
def test_what_cannot_be_meant_is_said(text: str, problem: str) -> None:
    (message,) = manual_problems(text, CLUSTER)
    assert problem in message
    for name in ("henge", "manual"):
        controller = CONTROLLERS[name].build(setting=a_setting(CLUSTER), instances=text)
        (complaint,) = controller.problems()
        assert complaint == message


def test_default_storm_never_adapts_and_manual_is_told_how_many() -> None:
    setting = a_setting(CLUSTER)
    submitted = CONTROLLERS["default-storm"].build(setting=setting).initial_instances()
    assert submitted == dict.fromkeys(CLUSTER.operator_names, 3), "what the topology says"
    manual = CONTROLLERS["manual"].build(setting=setting, instances="first=5 second=2")
    assert set(manual.initial_instances().values()) == {5, 2}
    assert CONTROLLERS["henge"].build(setting=setting).initial_instances() == submitted
