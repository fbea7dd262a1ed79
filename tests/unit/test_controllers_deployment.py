"""The deployment before the first item."""

from __future__ import annotations

from collections import Counter

from include.controllers.deployment import first_deployment
from include.model.decision import LeaseHost, StartInstance
from include.testing.builders import a_setting, a_topology, an_operator
from tests.builders import PAPER, manufacturing


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
