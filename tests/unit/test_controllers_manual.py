"""Configurations by hand: default Storm, manual, and where Henge begins."""

from __future__ import annotations

import pytest

from include.controllers import CONTROLLERS
from include.controllers.fixed import manual_instances, manual_problems
from include.testing.builders import a_setting
from tests.henge_world import a_cluster

CLUSTER = a_cluster({"A": 10, "B": 20}, instances=3)


def test_as_submitted_is_what_the_topology_says() -> None:
    assert manual_instances("topology", CLUSTER) == dict.fromkeys(CLUSTER.operator_names, 3)


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
        ("frist=2", "unknown operator 'frist'. Did you mean 'first'?"),
    ],
)
def test_what_cannot_be_meant_is_said(text: str, problem: str) -> None:
    (message,) = manual_problems(text, CLUSTER)
    assert problem in message
    for name in ("henge", "manual"):
        (complaint,) = (
            CONTROLLERS[name].build(setting=a_setting(CLUSTER), instances=text).problems()
        )
        assert complaint == message


def test_default_storm_never_adapts_and_manual_is_told_how_many() -> None:
    setting = a_setting(CLUSTER)
    submitted = CONTROLLERS["default-storm"].build(setting=setting).initial_instances()
    assert submitted == manual_instances("topology", CLUSTER)
    manual = CONTROLLERS["manual"].build(setting=setting, instances="first=5 second=2")
    assert set(manual.initial_instances().values()) == {5, 2}
    assert CONTROLLERS["henge"].build(setting=setting).initial_instances() == submitted
