"""What we demand of every controller, on random clusters."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, TypeVar

import pytest
from hypothesis import HealthCheck, given, note, settings

from include.controllers.base import Controller
from include.controllers.building import memory_adapter
from include.model.decision import (
    LeaseHost,
    MigrateInstance,
    ProlongLease,
    Reason,
    ReleaseHost,
    StartInstance,
    StopInstance,
)
from include.model.observation import Observation
from include.testing.builders import a_host, a_sample, an_observation, instances, late
from include.testing.clusters import NAMES, SETTING, observations
from include.testing.replay import Replay

_T = TypeVar("_T")

any_cluster = settings(
    max_examples=int(os.environ.get("TIDEBENCH_EXAMPLES", "100")),
    derandomize="TIDEBENCH_EXAMPLES" not in os.environ,
    deadline=None,
    suppress_health_check=[HealthCheck.differing_executors],  # one test class per author
)
"""The same examples in every run; ``TIDEBENCH_EXAMPLES=3000`` searches for new ones."""


class ControllerContract:
    """Subclass it with ``controllers``, and pytest runs every test on each of them."""

    controllers: ClassVar[Mapping[str, Callable[..., Controller]]]
    """By name, what makes a controller from ``setting=`` with every option at its default."""
    restless: ClassVar[Mapping[str, set[type]]] = {}
    """Steps that a quiet cluster never makes an end to, by name."""

    def every(self) -> Iterator[Controller]:
        """One after the other on the same cluster, so that a cluster is drawn only once."""
        for name, make in self.controllers.items():
            note(f"controller {name}")  # the last one noted is the one that failed
            yield make(setting=SETTING)

    @any_cluster
    @given(observations())
    def test_every_decision_can_be_carried_out(self, observation: Observation) -> None:
        """Twice in a row, with the memory of the first time."""
        for controller in self.every():
            memory = controller.initial_memory()
            for later_s in (0.0, controller.interval_s):
                now = dataclasses.replace(observation, now_s=observation.now_s + later_s)
                memory, decision = controller.decide(memory, now)
                Replay(now).run(decision)

    @any_cluster
    @given(observations())
    def test_deciding_is_a_function_whatever_the_order_of_its_mappings(
        self, observation: Observation
    ) -> None:
        """The same memory and observation give the same decision, and change neither."""
        for controller in self.every():
            memory = controller.initial_memory()
            shuffled = Observation(
                now_s=observation.now_s,
                operators=_reversed(observation.operators),
                hosts=_reversed(observation.hosts),
                instances=_reversed(observation.instances),
                published_in_all=_reversed(observation.published_in_all),
            )
            once = controller.decide(memory, observation)
            assert controller.decide(memory, observation) == once
            assert controller.decide(memory, shuffled) == once
            assert memory == controller.initial_memory()

    @any_cluster
    @given(observations())
    def test_every_decision_and_every_step_says_why(self, observation: Observation) -> None:
        """A sentence for people and a reason for programs each."""
        for controller in self.every():
            _, decision = controller.decide(controller.initial_memory(), observation)
            assert decision.because
            assert all(step.because for step in decision.steps)
            reasons = [decision.reason, *(step.reason for step in decision.steps)]
            assert all(isinstance(reason, Reason) for reason in reasons)
            assert not decision.steps or decision.reason is decision.steps[0].reason

    @any_cluster
    @given(observations())
    def test_a_lease_that_has_run_out_is_decided_on(self, observation: Observation) -> None:
        """Prolonged or released; nobody pays for a host by oversight."""
        for controller in self.every():
            _, decision = controller.decide(controller.initial_memory(), observation)
            leases = (a for a in decision.actions if isinstance(a, ProlongLease | ReleaseHost))
            decided = {action.host for action in leases}
            for host in observation.hosts.values():
                if not host.releasing and host.paid_until_s <= observation.now_s:
                    assert host.host in decided

    @any_cluster
    @given(observations(), observations())
    def test_memory_survives_json(self, observation: Observation, later: Observation) -> None:
        """A window stores it, the next one goes on from it."""
        for controller in self.every():
            first = controller.initial_memory()
            memory, _ = controller.decide(first, observation)
            assert memory.__class__ is first.__class__
            later = dataclasses.replace(later, now_s=observation.now_s + controller.interval_s)
            stored = memory_adapter(memory.__class__)
            revived = stored.validate_json(stored.dump_json(memory))
            assert revived == memory
            assert controller.decide(revived, later) == controller.decide(memory, later)

    @any_cluster
    @given(observations())
    def test_a_controller_that_sees_nothing_does_nothing(self, observation: Observation) -> None:
        """Absent readings are no reason to act."""
        for controller in self.every():
            blind = dataclasses.replace(observation, operators={}, hosts={})
            assert controller.decide(controller.initial_memory(), blind)[1].actions == ()

    def test_operators_that_were_not_read_are_left_alone(self, subtests: pytest.Subtests) -> None:
        """Of three operators the monitor read one."""
        observation = an_observation(
            operators=[late("O1", 5000)],
            hosts=[a_host("h1"), a_host("h2")],
            running=instances({"h1": "O1 O2 O3", "h2": "O2 O3 O3"}),
        )
        for name, make in self.controllers.items():
            controller = make(setting=SETTING)
            with subtests.test(controller=name):
                touched = {
                    action.operator
                    if isinstance(action, StartInstance)
                    else observation.instances[action.instance].operator
                    for action in controller.decide(controller.initial_memory(), observation)[
                        1
                    ].actions
                    if isinstance(action, StartInstance | StopInstance | MigrateInstance)
                }
                assert touched <= {"O1"}

    def test_every_operator_starts_with_at_least_one_instance(
        self, subtests: pytest.Subtests
    ) -> None:
        """Nothing flows through an operator without instances."""
        for name, make in self.controllers.items():
            with subtests.test(controller=name):
                first = make(setting=SETTING).initial_instances()
                assert set(first) == set(NAMES)
                assert min(first.values()) >= 1

    @pytest.mark.parametrize("waiting_items", [0, 10])
    def test_a_quiet_cluster_comes_to_rest(
        self, waiting_items: int, subtests: pytest.Subtests
    ) -> None:
        """After half an hour of an hour nothing is started, leased or moved any more."""
        for name, make in self.controllers.items():
            with subtests.test(controller=name):
                restless = self.restless.get(name, set())
                self._comes_to_rest(make(setting=SETTING), waiting_items, restless)

    def _comes_to_rest(
        self, controller: Controller, waiting_items: int, restless: set[type]
    ) -> None:
        observation = an_observation(
            operators=[a_sample(name, waiting_items) for name in NAMES],
            hosts=[a_host(f"h{n}", paid_until_s=3600.0 + 130.0 * n) for n in range(1, 5)],
            running=instances({"h1": "O1 O2 O3", "h2": "O1 O4", "h3": "O1 O2 O3", "h4": "O2 O2"}),
        )
        memory, history = controller.initial_memory(), []
        for _ in range(int(3600 / controller.interval_s)):
            memory, decision = controller.decide(memory, observation)
            replay = Replay(observation)
            replay.run(decision)
            history.append(decision)
            observation = replay.after(controller.interval_s)
        actions = [action for decision in history for action in decision.actions]
        assert not ({StartInstance, LeaseHost} - restless) & {type(action) for action in actions}
        last_half = {type(a) for decision in history[len(history) // 2 :] for a in decision.actions}
        assert last_half <= {ProlongLease} | restless

    def test_options_are_plain_so_that_a_yaml_file_can_set_them(
        self, subtests: pytest.Subtests
    ) -> None:
        """Numbers, texts, yes and no, and mappings of them, annotated by name."""
        for name, make in self.controllers.items():
            with subtests.test(controller=name):
                controller = make(setting=SETTING)
                assert dataclasses.is_dataclass(controller)
                fields = dataclasses.fields(controller)
                options = {
                    field.name: getattr(field.type, "__name__", field.type)
                    for field in fields
                    if field.name != "setting"
                }
                plain = {"int", "float", "bool", "str", "Mapping[str, Any] | None"}
                assert set(options.values()) <= plain, options
                assert "interval_s" in options

    def test_unusual_but_possible_observations(self, subtests: pytest.Subtests) -> None:
        """Shapes that random search finds rarely: nothing runs, nothing is leased, a flood."""
        empty = an_observation()
        lost = an_observation(operators=[a_sample(name) for name in NAMES])
        flooded = an_observation(operators=[late(name, 5000) for name in NAMES])
        for name, make in self.controllers.items():
            with subtests.test(controller=name):
                controller = make(setting=SETTING)
                for observation in (empty, lost, flooded):
                    _, decision = controller.decide(controller.initial_memory(), observation)
                    Replay(observation).run(decision)
                    starts = (a for a in decision.actions if isinstance(a, StartInstance))
                    assert {start.operator for start in starts} == set(observation.operators)


def _reversed(mapping: Mapping[str, _T]) -> dict[str, _T]:
    return dict(reversed(list(mapping.items())))
