"""Jobs that a change deploys again, and records that come in whole parts."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from include.advise.candidates import REDEPLOY_S, policy, under
from include.advise.cluster import OPERATOR
from include.advise.job import JobModel, with_times
from include.advise.outcomes import scalings_of
from include.advise.replay import ReplayConditions, Replayed, replay
from include.controllers.base import Setting
from include.model.decision import Decision, LeaseHost, StartInstance
from include.model.observation import Observation
from include.testing.builders import decision
from tests.advise.synthetic import QUIET_LATENCY_S, STEP_S, job
from tests.advise.test_replay import watched

LOAD_PER_S = 20_000.0


@dataclass(frozen=True, kw_only=True)
class OneMore:
    """Asks for one more instance at ``at_s`` and keeps what it was shown."""

    setting: Setting
    at_s: float
    interval_s: float = STEP_S
    seen: list[Observation] = field(default_factory=list)

    def initial_memory(self) -> None:
        """Nothing to remember."""

    def decide(self, memory: None, seen: Observation) -> tuple[None, Decision]:
        self.seen.append(seen)
        if seen.now_s != self.at_s:
            return memory, decision()
        more = (LeaseHost(flavor="host", handle="new"), StartInstance(OPERATOR, "new"))
        return memory, decision(*more)


def one_more(of: JobModel, redeploy_s: float) -> tuple[Replayed, list[Observation]]:
    """Three instances, of which each does 10,000/s, and a fourth that is asked for at 150 s."""
    start = ReplayConditions(instances_at_start=3, max_instances=4, redeploy_s=redeploy_s)
    made: list[OneMore] = []

    def build(setting: Setting) -> OneMore:
        made.append(OneMore(setting=setting, at_s=150.0))
        return made[0]

    return replay(of, np.full(60, LOAD_PER_S), start, build), made[0].seen


def test_a_job_that_is_deployed_again_is_away_and_then_works_off_what_came() -> None:
    found, _ = one_more(job(), 60.0)
    # For 15 s nothing is there, then four that do not work before 60 s are over.
    assert found.instances[9:15].tolist() == [3, 0, 4, 4, 4, 4]
    assert set(found.cpu_share[10:14].tolist()) == {0.0}
    came = LOAD_PER_S * STEP_S * np.arange(1, 5)
    np.testing.assert_allclose(found.lag_items[10:14] - found.lag_items[9], came)
    # 40,000/s are done and 20,000/s come: 60 s of them are worked off within another 60 s.
    behind = found.lag_items - found.lag_items[9] > 0
    assert np.flatnonzero(behind).tolist() == list(range(10, 17))
    first = 60 + LOAD_PER_S * STEP_S / 40_000
    assert found.latency_s[10] == pytest.approx(QUIET_LATENCY_S + first)
    assert np.all(np.diff(found.latency_s[10:18]) < 0)


def test_a_deployment_is_one_scaling_however_long_it_takes() -> None:
    """Instances take three minutes to start, and none is there meanwhile."""
    counts = np.array([3.0] * 20 + [0.0] * 12 + [4.0] * 20)
    assert scalings_of(counts, STEP_S) == 1


def test_a_change_in_place_takes_nothing_away() -> None:
    found, _ = one_more(job(), 0.0)
    assert found.instances[9:13].tolist() == [3, 3, 4, 4]
    assert set(found.latency_s.tolist()) == {QUIET_LATENCY_S}


def test_nobody_is_asked_while_the_job_is_deployed_and_its_start_is_known_after() -> None:
    _, seen = one_more(job(incidents_s=(165.0, 600.0)), 60.0)
    started = {one.now_s: one.job_started_s for one in seen}
    assert not [at for at in started if 150 < at < 210]
    assert (started[150], started[210], started[600], started[615]) == (0, 210, 210, 600)


def test_whole_parts_leave_the_busiest_with_more() -> None:
    """Of 24 parts, the busiest of 16 instances has two, as each of 12 has."""
    behind = {}
    for count in (12, 16, 23, 24):
        start = ReplayConditions(instances_at_start=count, max_instances=24, parts=24)
        build = policy("fixed", {"instances_each": count}, start).build
        behind[count] = replay(job(), np.full(20, 1e6), start, build).lag_items[-1]
    assert behind[12] == pytest.approx(behind[16]) == pytest.approx(behind[23])
    assert behind[24] < behind[23]


def test_the_busiest_share_is_that_of_the_instance_with_the_most_parts() -> None:
    start = ReplayConditions(instances_at_start=3, max_instances=4, parts=4)
    _, seen = watched(np.full(20, 9_000.0), start, job(), "fixed", instances_each=3)

    read = seen[-1].operators[OPERATOR]
    assert read.busy_share == pytest.approx(0.3)
    assert read.busiest_share == pytest.approx(0.3 * 2 * 3 / 4)


def test_what_a_deployment_takes_is_asked_then_told_then_assumed() -> None:
    start = ReplayConditions(instances_at_start=3, max_instances=4)
    plain = policy("flink-autoscaler", {}, start)
    told = policy("flink-autoscaler", {"restart_s": 90.0, "key_groups": 24}, start)
    assert under(plain, start, None).redeploy_s == REDEPLOY_S
    assert under(told, start, None).redeploy_s == 90.0
    assert under(told, start, None).parts == 24
    asked = with_times(job(), None, 20.0)
    assert under(told, start, asked.times.asked_restart_s).redeploy_s == 20.0
    assert under(policy("hpa", {}, start), start, 20.0) == start
