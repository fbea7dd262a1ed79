"""What we demand of every registered controller, on random clusters."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator

import pytest
from hypothesis import given, note, settings
from pydantic import TypeAdapter

from include.controllers import CONTROLLERS
from include.controllers.base import Controller
from include.controllers.btu_runtime import BtuRuntime
from include.model.decision import (
    LeaseHost,
    MigrateInstance,
    ProlongLease,
    ReleaseHost,
    StartInstance,
    StopInstance,
)
from include.model.observation import InstanceSample, Observation, OperatorSample
from tests.builders import a_host, a_sample, an_observation, instances, late
from tests.random_clusters import NAMES, SETTING, observations
from tests.replay import Replay, carried_out

any_cluster = settings(
    max_examples=int(os.environ.get("TIDEBENCH_EXAMPLES", "100")),
    derandomize="TIDEBENCH_EXAMPLES" not in os.environ,
    deadline=None,
)
"""The same examples in every run; ``TIDEBENCH_EXAMPLES=3000`` searches for new ones."""


@pytest.fixture(params=sorted(CONTROLLERS))
def controller(request: pytest.FixtureRequest) -> Controller:
    return CONTROLLERS[request.param](setting=SETTING)


def every_controller() -> Iterator[Controller]:
    """One after the other on the same cluster, so that a cluster is drawn only once."""
    for name in sorted(CONTROLLERS):
        note(f"controller {name}")  # the last one noted is the one that failed
        yield CONTROLLERS[name](setting=SETTING)


@any_cluster
@given(observations())
def test_every_decision_can_be_carried_out(seen: Observation) -> None:
    for controller in every_controller():
        memory = controller.initial_memory()
        for later_s in (0.0, controller.interval_s):
            now = dataclasses.replace(seen, now_s=seen.now_s + later_s)
            memory, decision = controller.decide(memory, now)
            Replay(now).run(decision)


def test_the_random_clusters_reach_every_kind_of_step() -> None:
    """Guards the tests of this file: an invariant that is never tried proves nothing."""
    reached: dict[str, set[type]] = {name: set() for name in CONTROLLERS}

    @settings(max_examples=200, derandomize=True, deadline=None, database=None)
    @given(observations())
    def search(seen: Observation) -> None:
        for name, make in CONTROLLERS.items():
            one = make(setting=SETTING)
            _, decision = one.decide(one.initial_memory(), seen)
            reached[name] |= {type(action) for action in decision.actions}
            if any("in the place of" in step.because for step in decision.steps):
                reached[name].add(InstanceSample)

    search()
    scaling = {StartInstance, StopInstance, LeaseHost, ProlongLease, ReleaseHost}
    for name, kinds in reached.items():
        if name in ("fixed", "default-storm", "manual"):
            assert kinds == {StartInstance, LeaseHost, ProlongLease}
        elif name == "henge":  # stops are tried in test_henge_state_machine.py
            assert kinds == {StartInstance, LeaseHost, ProlongLease, ReleaseHost}
        elif name.startswith("fugu"):  # moves are tried in test_controllers_fugu.py
            assert kinds == {StartInstance, LeaseHost, ProlongLease}
        elif name == "kalman-ekf":  # one measurement is no estimate; test_pvldb_12_7_scaling.py
            assert kinds == scaling - {StopInstance}
        elif name.startswith(("threshold", "kalman")):
            assert kinds == scaling
        else:
            reclaimed = set() if name == "btu-runtime" else {InstanceSample}
            assert kinds == scaling | {MigrateInstance} | reclaimed, name


@any_cluster
@given(observations())
def test_the_same_input_gives_the_same_decision_in_any_order_of_its_mappings(
    seen: Observation,
) -> None:
    for controller in every_controller():
        memory = controller.initial_memory()
        shuffled = Observation(
            now_s=seen.now_s,
            operators=dict(reversed(seen.operators.items())),
            hosts=dict(reversed(seen.hosts.items())),
            instances=dict(reversed(seen.instances.items())),
        )
        once = controller.decide(memory, seen)
        assert controller.decide(memory, seen) == once
        assert controller.decide(memory, shuffled) == once
        assert memory == controller.initial_memory()


@any_cluster
@given(observations())
def test_every_decision_and_every_step_says_why(seen: Observation) -> None:
    for controller in every_controller():
        _, decision = controller.decide(controller.initial_memory(), seen)
        assert decision.because
        assert all(step.because for step in decision.steps)


@any_cluster
@given(observations())
def test_a_lease_that_has_run_out_is_decided_on(seen: Observation) -> None:
    for controller in every_controller():
        _, decision = controller.decide(controller.initial_memory(), seen)
        decided = {a.host for a in decision.actions if isinstance(a, ProlongLease | ReleaseHost)}
        for host in seen.hosts.values():
            if not host.releasing and host.paid_until_s <= seen.now_s:
                assert host.host in decided


@any_cluster
@given(observations(), observations())
def test_memory_survives_json(seen: Observation, later: Observation) -> None:
    for controller in every_controller():
        memory, _ = controller.decide(controller.initial_memory(), seen)
        later = dataclasses.replace(later, now_s=seen.now_s + controller.interval_s)
        stored = TypeAdapter(type(memory))
        revived = stored.validate_json(stored.dump_json(memory))
        assert revived == memory
        assert controller.decide(revived, later) == controller.decide(memory, later)


@any_cluster
@given(observations())
def test_a_controller_that_sees_nothing_does_nothing(seen: Observation) -> None:
    for controller in every_controller():
        blind = dataclasses.replace(seen, operators={}, hosts={})
        assert controller.decide(controller.initial_memory(), blind)[1].actions == ()


def test_operators_that_were_not_read_are_left_alone(controller: Controller) -> None:
    seen = an_observation(
        operators=[late("O1", 5000)],
        hosts=[a_host("h1"), a_host("h2")],
        running=instances({"h1": "O1 O2 O3", "h2": "O2 O3 O3"}),
    )
    touched = {
        action.operator
        if isinstance(action, StartInstance)
        else seen.instances[action.instance].operator
        for action in controller.decide(controller.initial_memory(), seen)[1].actions
        if isinstance(action, StartInstance | StopInstance | MigrateInstance)
    }
    assert touched <= {"O1"}


def test_every_operator_starts_with_at_least_one_instance(controller: Controller) -> None:
    first = controller.initial_instances()
    assert set(first) == set(NAMES)
    assert min(first.values()) >= 1


@pytest.mark.parametrize("waiting_items", [0, 10])
def test_a_quiet_cluster_comes_to_rest(controller: Controller, waiting_items: int) -> None:
    seen = an_observation(
        operators=[a_sample(name, waiting_items) for name in NAMES],
        hosts=[a_host(f"h{n}", paid_until_s=3600.0 + 130.0 * n) for n in range(1, 5)],
        running=instances({"h1": "O1 O2 O3", "h2": "O1 O4", "h3": "O1 O2 O3", "h4": "O2 O2"}),
    )
    memory, history = controller.initial_memory(), []
    for _ in range(int(3600 / controller.interval_s)):
        memory, decision = controller.decide(memory, seen)
        Replay(seen).run(decision)
        history.append(decision)
        seen = carried_out(seen, decision, controller.interval_s)
    actions = [action for decision in history for action in decision.actions]
    assert not any(isinstance(action, StartInstance | LeaseHost) for action in actions)
    last_half = {type(a) for decision in history[len(history) // 2 :] for a in decision.actions}
    # The original runtime moves what it can off a host before it finds that the host must stay
    # (docs/deviations.md, BTU-RUNTIME-RELEASE), and so on with every BTU.
    restless = {MigrateInstance} if isinstance(controller, BtuRuntime) else set()
    assert last_half <= {ProlongLease} | restless


def test_options_are_plain_so_that_a_yaml_file_can_set_them(controller: Controller) -> None:
    assert dataclasses.is_dataclass(controller)
    options = {f.name: f.type for f in dataclasses.fields(controller) if f.name != "setting"}
    assert set(options.values()) <= {"int", "float", "bool", "str"}, options
    assert "interval_s" in options


def test_unusual_but_possible_observations() -> None:
    """Shapes that random search finds rarely, for every controller."""
    empty = an_observation()
    lost = an_observation(operators=[a_sample(name) for name in NAMES])
    samples_only: list[OperatorSample] = [late(name, 5000) for name in NAMES]
    flooded = an_observation(operators=samples_only)
    for name in CONTROLLERS:
        one = CONTROLLERS[name](setting=SETTING)
        for seen in (empty, lost, flooded):
            _, decision = one.decide(one.initial_memory(), seen)
            Replay(seen).run(decision)
            started = {a.operator for a in decision.actions if isinstance(a, StartInstance)}
            assert started == set(seen.operators), (name, seen)
