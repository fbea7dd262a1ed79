"""What we demand of every registered controller, on random clusters."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from include.controllers import CONTROLLERS
from include.controllers.base import Controller
from include.controllers.btu_runtime import BtuRuntime
from include.model.decision import (
    Decision,
    LeaseHost,
    MigrateInstance,
    ProlongLease,
    ReleaseHost,
    StartInstance,
    StopInstance,
)
from include.model.host import Capacity
from include.model.observation import HostSample, InstanceSample, Observation, OperatorSample
from tests.builders import (
    a_host,
    a_sample,
    a_setting,
    a_topology,
    an_instance,
    an_observation,
    an_operator,
    idle,
    instances,
    late,
)

TOPOLOGY = a_topology(
    an_operator("O1", cpu_cores=1.5, memory_mb=900.0),
    an_operator("O2", cpu_cores=0.25, memory_mb=1100.0),
    an_operator("O3", cpu_cores=0.5, memory_mb=700.0),
    an_operator("O4", cpu_cores=0.1, memory_mb=2000.0),
)
SETTING = a_setting(TOPOLOGY, instances_at_peak={"O1": 3, "O2": 2, "O3": 2})
NAMES = TOPOLOGY.operator_names
ROUNDING = 1e-6


@pytest.fixture(params=sorted(CONTROLLERS))
def controller(request: pytest.FixtureRequest) -> Controller:
    return CONTROLLERS[request.param](setting=SETTING)


# --- random clusters -------------------------------------------------------------------------

HOSTS = tuple(f"h{number}" for number in range(1, 6))
ANYWHERE = (*HOSTS, "h9")  # h9 is a host that the monitor never reads


def mostly(usual: Any, *rare: Any) -> st.SearchStrategy[Any]:
    """The usual value in three of four draws or more."""
    return st.sampled_from([usual] * 3 * len(rare) + list(rare))


def samples(name: str) -> st.SearchStrategy[OperatorSample | None]:
    """Absent, idle, late with a short or long queue, or anything."""
    anything = st.builds(
        a_sample,
        st.just(name),
        st.integers(0, 3000),
        st.lists(st.floats(0.0, 20_000.0), max_size=5),
    )
    usual = [idle(name), a_sample(name), late(name), late(name, 300), late(name, 5), None]
    return st.one_of(st.sampled_from(usual), anything)


def seen_hosts(name: str) -> st.SearchStrategy[HostSample]:
    """Up and paid for long, or about to end; some boot, leave or were ordered just now."""
    return st.builds(
        a_host,
        st.just(name),
        ordered_s=mostly(0.0, 3500.0),
        paid_until_s=st.sampled_from([3590.0, 3610.0, 3650.0, 3660.0, 4000.0, 4100.0]),
        up=mostly(True, False),
        releasing=mostly(False, True),
        images=st.frozensets(st.sampled_from(NAMES)),
    )


running = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.sampled_from(ANYWHERE),
        st.sampled_from([0.0, 60.0, 3500.0]),
        mostly(True, False),
        mostly(False, True),
    ),
    min_size=4,
    max_size=20,
)


@st.composite
def observations(draw: st.DrawFn) -> Observation:
    """What a monitor might report: gaps, overfull and lost hosts, orphaned instances."""
    names = draw(st.lists(st.sampled_from(HOSTS), unique=True, min_size=1))
    sampled = [draw(samples(name)) for name in NAMES]
    return an_observation(
        operators=[sample for sample in sampled if sample is not None],
        hosts=[draw(seen_hosts(name)) for name in names],
        running=[
            an_instance(f"i{n}", op, host, started_s=started, ready=ready, stopping=stopping)
            for n, (op, host, started, ready, stopping) in enumerate(draw(running), start=1)
        ],
    )


def every_controller() -> Iterator[Controller]:
    """One after the other on the same cluster, so that a cluster is drawn only once."""
    for name in sorted(CONTROLLERS):
        note(f"controller {name}")  # the last one noted is the one that failed
        yield CONTROLLERS[name](setting=SETTING)


any_cluster = settings(
    max_examples=int(os.environ.get("TIDEBENCH_EXAMPLES", "100")),
    derandomize="TIDEBENCH_EXAMPLES" not in os.environ,
    deadline=None,
)
"""The same examples in every run; ``TIDEBENCH_EXAMPLES=3000`` searches for new ones."""


# --- replaying a decision on capacities ------------------------------------------------------


class Replay:
    """Carries a decision out step by step and complains about what no testbed could do."""

    def __init__(self, seen: Observation) -> None:
        self.seen = seen
        self.free = {
            host.host: self._left(host) for host in seen.hosts.values() if not host.releasing
        }
        self.serving = {one.instance: one for one in seen.instances.values() if not one.stopping}
        self.count = Counter(one.operator for one in self.serving.values())
        self.decided: set[str] = set()

    def _left(self, host: HostSample) -> Capacity:
        left = SETTING.flavor.capacity
        for one in self.seen.instances.values():
            left = left.less(TOPOLOGY.operator[one.operator]) if one.host == host.host else left
        return left

    def run(self, decision: Decision) -> None:
        handlers: dict[type, Callable[[Any], None]] = {
            StartInstance: lambda action: self.start(action.operator, action.host),
            StopInstance: lambda action: self.stop(action.instance),
            MigrateInstance: self.migrate,
            LeaseHost: self.lease,
            ProlongLease: lambda action: self.decide_on(action.host),
            ReleaseHost: self.release,
        }
        for action in decision.actions:
            handlers[type(action)](action)

    def start(self, operator: str, host: str) -> None:
        assert operator in self.seen.operators, f"{operator} was not read"
        op = TOPOLOGY.operator[operator]
        left = self.free[host].less(op)  # KeyError: not a host that takes instances
        assert min(left.cpu_cores, left.memory_mb) >= -ROUNDING, f"no room on {host}"
        self.free[host] = left
        self.count[operator] += 1

    def stop(self, instance: str) -> InstanceSample:
        one = self.serving.pop(instance)  # KeyError: unknown, stopping or acted on twice
        assert one.operator in self.seen.operators, f"{one.operator} was not read"
        self.count[one.operator] -= 1
        assert self.count[one.operator] > 0, f"the last {one.operator} was stopped"
        if one.ready:
            others = [o for o in self.serving.values() if o.operator == one.operator]
            assert any(other.ready for other in others), f"the last ready {one.operator}"
        self.free[one.host] = self.free[one.host].more(TOPOLOGY.operator[one.operator])
        return one

    def migrate(self, action: MigrateInstance) -> None:
        one = self.serving.pop(action.instance)
        assert one.host != action.host
        assert self.seen.hosts[action.host].up
        self.start(one.operator, action.host)
        self.count[one.operator] -= 1

    def lease(self, action: LeaseHost) -> None:
        assert action.flavor == SETTING.flavor.name
        assert action.handle not in self.free
        assert action.handle not in self.seen.hosts
        self.free[action.handle] = SETTING.flavor.capacity

    def decide_on(self, host: str) -> None:
        assert host in self.seen.hosts
        assert not self.seen.hosts[host].releasing
        assert host not in self.decided, f"two decisions on the lease of {host}"
        self.decided.add(host)

    def release(self, action: ReleaseHost) -> None:
        self.decide_on(action.host)
        assert not any(one.host == action.host for one in self.serving.values())
        del self.free[action.host]
        assert self.free, "the last host was released"


# --- the contract ----------------------------------------------------------------------------


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
        if name == "fixed":
            assert kinds == {StartInstance, LeaseHost, ProlongLease}
        elif name.startswith("threshold"):
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
def test_a_lease_that_runs_out_before_the_next_tick_is_decided_on(seen: Observation) -> None:
    for controller in every_controller():
        _, decision = controller.decide(controller.initial_memory(), seen)
        decided = {a.host for a in decision.actions if isinstance(a, ProlongLease | ReleaseHost)}
        for host in seen.hosts.values():
            if not host.releasing and host.paid_until_s <= seen.now_s + controller.interval_s:
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


def carried_out(seen: Observation, decision: Decision, later_s: float) -> Observation:
    """A world without delays: what was decided has happened when the next tick comes."""
    hosts, running = dict(seen.hosts), dict(seen.instances)
    names: dict[str, str] = {}
    for number, action in enumerate(decision.actions):
        new = f"{seen.now_s:.0f}-{number}"
        match action:
            case LeaseHost(handle=handle):
                names[handle] = f"h{new}"
                until_s = seen.now_s + SETTING.btu_s
                hosts[f"h{new}"] = a_host(f"h{new}", ordered_s=seen.now_s, paid_until_s=until_s)
            case ProlongLease(host=host):
                until_s = hosts[host].paid_until_s + SETTING.btu_s
                hosts[host] = dataclasses.replace(hosts[host], paid_until_s=until_s)
            case ReleaseHost(host=host):
                del hosts[host]
            case StartInstance(operator=operator, host=host):
                where = names.get(host, host)
                running[f"i{new}"] = an_instance(f"i{new}", operator, where, started_s=seen.now_s)
            case StopInstance(instance=instance):
                del running[instance]
            case MigrateInstance(instance=instance, host=host):
                one = running.pop(instance)
                running[f"i{new}"] = an_instance(f"i{new}", one.operator, host)
    return Observation(
        now_s=seen.now_s + later_s, operators=seen.operators, hosts=hosts, instances=running
    )


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
