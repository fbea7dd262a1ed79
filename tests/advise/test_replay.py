"""A load over the model of a job: what controllers do, what it costs, and that nothing is lost."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from include.advise.candidates import policy
from include.advise.cluster import OPERATOR
from include.advise.job import JobModel
from include.advise.outcomes import scalings_of
from include.advise.replay import ReplayConditions, Replayed, replay
from include.advise.restarts import PLANNED_SHARE, Restart
from include.controllers import CONTROLLERS
from include.controllers.base import Controller, Setting
from include.controllers.fixed import Fixed
from include.model.decision import Decision
from include.model.observation import Observation
from include.workloads.recordings.recording import FloatArray
from tests.advise.synthetic import QUIET_LATENCY_S, STEP_S, daily, job

RESTART = Restart(
    cpu_excess=(0.0, 0.1, 0.1), lag_s=(5.0, 9.0, 2.0), latency_excess_s=(0.0, 8.0, 4.0), seen=1
)


def replayed(
    load: FloatArray,
    given_: ReplayConditions,
    controller: str = "hpa",
    of: JobModel | None = None,
    **to: Any,
) -> Replayed:
    return replay(of or job(), load, given_, policy(controller, to, given_).build)


def same(one: Replayed, other: Replayed) -> bool:
    return all(
        np.array_equal(getattr(one, each.name), getattr(other, each.name), equal_nan=True)
        if isinstance(getattr(one, each.name), np.ndarray)
        else getattr(one, each.name) == getattr(other, each.name)
        for each in fields(one)
    )


def step_of(before: float, after: float, at: int = 101, steps: int = 400) -> FloatArray:
    """A load that changes once, where a reading of a minute begins."""
    load = np.full(steps, before)
    load[at:] = after
    return load


def test_the_same_seed_gives_the_same_replay_and_another_one_does_not() -> None:
    noisy, load = job(restart=RESTART, noise=0.05), daily(hours=3)
    start = ReplayConditions(instances_at_start=8, max_instances=20, seed=1)
    first = replayed(load, start, of=noisy, target_cpu=0.5)
    assert same(first, replayed(load, start, of=noisy, target_cpu=0.5))
    other = replayed(load, replace(start, seed=2), of=noisy, target_cpu=0.5)
    assert not same(first, other)
    assert not np.array_equal(first.cpu_share, other.cpu_share)


@pytest.mark.parametrize("instances", [1, 7])
def test_fixed_keeps_its_count_and_its_hosts(instances: int) -> None:
    start = ReplayConditions(instances_at_start=instances, max_instances=10)
    load = daily(hours=6, mean=3000)
    found = replayed(load, start, "fixed", instances_each=instances)
    assert set(found.instances.tolist()) == {instances}
    assert scalings_of(found.instances, STEP_S) == 0
    end_s = load.size * STEP_S
    assert [(one.ordered_s, one.ends_s) for one in found.leases] == [(0, end_s)] * instances
    np.testing.assert_allclose(found.cpu_share, load / instances / 10_000)


@pytest.mark.parametrize("seed", [16, 19])
def test_what_waited_and_is_done_leaves_nothing_behind(seed: int) -> None:
    """Not even the rounding of its sum, for which a job would count as behind until its end."""
    start = ReplayConditions(instances_at_start=2, max_instances=2)
    load = np.full(60, 19_000.0)
    load[:30] = np.random.default_rng(seed).uniform(15_000, 17_400, 30)
    load[:7] += 4_000
    found = replayed(load, start, "fixed", instances_each=2)
    assert found.lag_items.max() > 1
    assert set(found.lag_items[np.abs(found.lag_items) < 1].tolist()) == {0}


def test_less_than_a_record_a_second_waits_as_long_as_it_takes() -> None:
    """And what comes in a step is no whole number of records, but in all it is."""
    start = ReplayConditions(instances_at_start=4, max_instances=4)
    slow, load = job(most_per_s=0.02), np.full(40, 0.1)
    found, seen = watched(load, start, slow, "fixed", instances_each=4)
    np.testing.assert_allclose(found.latency_s, QUIET_LATENCY_S + found.lag_items / 0.08)
    assert found.lag_items[-1] == pytest.approx(40 * STEP_S * (0.1 - 0.08))
    assert sum(one.operators[OPERATOR].arrived_items for one in seen) == 60


def test_the_hpa_goes_to_what_usage_over_target_asks_for() -> None:
    start = ReplayConditions(instances_at_start=4, max_instances=20)
    found = replayed(step_of(20_000, 35_000), start, target_cpu=0.5)
    # Four instances use 87 % at the look of 1,575 s: ceil(4 * 0.87 / 0.5) = 7, and 15 s later
    # they work.
    assert set(found.instances[:106].tolist()) == {4}
    assert set(found.instances[106:].tolist()) == {7}
    assert scalings_of(found.instances, STEP_S) == 1
    assert found.instances[-1] == math.ceil(4 * 0.87 / 0.5)


def test_the_hpa_goes_down_after_the_stabilisation() -> None:
    load = step_of(35_000, 10_000)
    start = ReplayConditions(instances_at_start=7, max_instances=20)
    found = replayed(load, start, target_cpu=0.5)
    changed = int(np.flatnonzero(np.diff(found.instances))[0]) + 1
    assert (changed - 101) * STEP_S >= 300
    assert found.instances[-1] == 2
    sooner = replayed(load, start, target_cpu=0.5, stabilise_s=60)
    assert 0 < int(np.flatnonzero(np.diff(sooner.instances))[0]) + 1 < changed


def test_a_scaling_costs_a_restart() -> None:
    start = ReplayConditions(instances_at_start=4, max_instances=20)
    found = replayed(step_of(20_000, 35_000), start, of=job(restart=RESTART), target_cpu=0.5)
    assert scalings_of(found.instances, STEP_S) == 1
    during = slice(106, 109)
    excess = PLANNED_SHARE * np.array(RESTART.latency_excess_s)
    np.testing.assert_allclose(found.latency_s[during], QUIET_LATENCY_S + excess)
    lag = PLANNED_SHARE * np.array(RESTART.lag_s) * 35_000
    np.testing.assert_allclose(found.lag_items[during], lag)
    np.testing.assert_allclose(
        found.cpu_share[during], 0.5 + PLANNED_SHARE * np.array([0, 0.1, 0.1])
    )
    assert set(found.latency_s[109:].tolist()) == {QUIET_LATENCY_S}
    free = replayed(step_of(20_000, 35_000), start, target_cpu=0.5)
    assert set(free.latency_s.tolist()) == {QUIET_LATENCY_S}


def test_an_incident_does_all_that_was_recorded_and_is_no_scaling() -> None:
    broken = job(restart=RESTART, incidents_s=(600.0,))
    start = ReplayConditions(instances_at_start=4, max_instances=4)
    found = replayed(np.full(100, 20_000.0), start, "fixed", of=broken, instances_each=4)
    expected = np.full(100, QUIET_LATENCY_S)
    expected[40:43] += RESTART.latency_excess_s
    np.testing.assert_allclose(found.latency_s, expected)
    assert scalings_of(found.instances, STEP_S) == 0


@dataclass(frozen=True, kw_only=True)
class Watches:
    """Keeps what it is shown, and decides as another one does."""

    of: Controller
    setting: Setting
    interval_s: float = STEP_S
    seen: list[Observation] = field(default_factory=list)

    def initial_memory(self) -> Any:
        return self.of.initial_memory()

    def decide(self, memory: Any, seen: Observation) -> tuple[Any, Decision]:
        self.seen.append(seen)
        return self.of.decide(memory, seen)


def watched(
    load: FloatArray, given_: ReplayConditions, of: JobModel, controller: str = "hpa", **to: Any
) -> tuple[Replayed, list[Observation]]:
    made: list[Watches] = []
    build = policy(controller, to, given_).build

    def watching(setting: Setting) -> Any:
        made.append(Watches(of=build(setting), setting=setting))
        return made[0]

    return replay(of, load, given_, watching), made[0].seen


LOADS = st.lists(st.integers(0, 120_000), min_size=4, max_size=12)


@settings(max_examples=40, deadline=None)
@given(levels=LOADS, start=st.integers(1, 5), most=st.integers(1, 8), target=st.floats(0.2, 0.9))
def test_nothing_is_lost_and_limits_hold(
    levels: list[int], start: int, most: int, target: float
) -> None:
    load = np.repeat(np.array(levels, dtype=np.float64), 30)
    given_ = ReplayConditions(instances_at_start=min(start, most), max_instances=most)
    found, seen = watched(load, given_, job(), target_cpu=target)
    assert found.instances.min() >= 1
    assert found.instances.max() <= most
    # In this model nothing waits but what an instance could not do yet.
    samples = [one.operators[OPERATOR] for one in seen]
    for step, one in enumerate(samples):
        arrived = load[: step + 1].sum() * STEP_S
        assert one.arrived_in_all == pytest.approx(arrived, abs=1)
        assert one.completed_in_all is not None
        assert one.completed_in_all + found.lag_items[step] == pytest.approx(arrived, abs=1)
        assert one.waiting_items == round(found.lag_items[step])
    assert sum(one.arrived_items for one in samples) == samples[-1].arrived_in_all
    assert sum(one.completed_items for one in samples) == samples[-1].completed_in_all
    done = np.diff([0, *(one.completed_in_all or 0 for one in samples)])
    assert (done <= found.instances * 10_000 * STEP_S + 1).all()
    assert ((found.cpu_share >= 0) & (found.cpu_share <= 1)).all()


@settings(max_examples=40, deadline=None)
@given(levels=LOADS, most=st.integers(1, 8), takes_s=st.sampled_from([0.0, 15.0, 60.0]))
def test_the_log_of_leases_fits_the_instances(levels: list[int], most: int, takes_s: float) -> None:
    load = np.repeat(np.array(levels, dtype=np.float64), 30)
    given_ = ReplayConditions(instances_at_start=1, max_instances=most, takes_s=takes_s, btu_s=900)
    found = replayed(load, given_, target_cpu=0.5, stabilise_s=60)
    end_s = load.size * STEP_S
    begins = np.array([one.ordered_s for one in found.leases])
    ends = np.array([one.ends_s for one in found.leases])
    assert ((begins >= 0) & (begins <= ends) & (ends <= end_s)).all()
    now_s = np.arange(load.size)[:, None] * STEP_S
    held = ((begins <= now_s) & (now_s < ends)).sum(axis=1)
    assert (found.instances <= held).all()
    assert held.max() <= most
    for one in found.leases:
        paid_s = one.paid_until_s - one.ordered_s
        assert paid_s % 900 == 0
        assert paid_s >= one.ends_s - one.ordered_s


@pytest.mark.parametrize("name", sorted(CONTROLLERS))
@pytest.mark.parametrize("per_host", [1, 2])
def test_no_controller_gets_more_than_there_may_be(name: str, per_host: int) -> None:
    given_ = ReplayConditions(instances_at_start=2, max_instances=3, instances_per_host=per_host)
    more = {"instances_each": 4} if name == "fixed" else {}
    found = replayed(daily(hours=2, mean=60_000), given_, name, **more)
    assert 1 <= found.instances.min() <= found.instances.max() <= 3


def test_a_latency_that_nobody_recorded_is_absent() -> None:
    given_ = ReplayConditions(instances_at_start=2, max_instances=2)
    silent = job(latency_s=float("nan"))
    found, seen = watched(np.full(20, 1000.0), given_, silent, "fixed", instances_each=2)
    assert np.isnan(found.latency_s).all()
    assert {one.operators[OPERATOR].durations_ms for one in seen} == {()}


def test_what_a_controller_begins_with_is_not_what_the_job_begins_with() -> None:
    given_ = ReplayConditions(instances_at_start=5, max_instances=9)
    found = replay(job(), np.full(8, 1e4), given_, lambda setting: Fixed(setting=setting))
    assert found.instances.tolist() == [5] * 8
