"""The data provider without a broker: when it sends what, and what it may forget."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.testbeds.live.operators.readings import DEFECT, Status, Temperature, decode
from include.testbeds.live.provider.payloads import payload_for
from include.testbeds.live.provider.plan import ProviderPlan, Schedule, Stream
from include.testbeds.live.provider.position import Position
from include.testbeds.simulated.publications import Publications
from include.workloads.pattern import Levels


def a_stream(*targets: str, rate: float = 10.0, duration_s: float = 10.0, **changes) -> Stream:
    values = {
        "source": "S1",
        "targets": targets or ("front",),
        "size_bytes": 100,
        "per_level_s": 1.0,
        "one_in": 50,
        "levels": Levels((0.0,), (rate,)),
        "duration_s": duration_s,
    }
    return Stream(**(values | changes))


@given(
    levels=st.lists(st.floats(0, 12), min_size=1, max_size=8),
    hold_s=st.sampled_from([1.0, 7.5, 60.0]),
    per_level_s=st.sampled_from([1 / 0.48, 5 / 0.48, 0.01, 1.0]),
)
def test_items_are_emitted_when_the_simulator_emits_them(levels, hold_s, per_level_s):
    duration_s = hold_s * len(levels) - hold_s / 3
    steps = Levels(tuple(i * hold_s for i in range(len(levels))), tuple(levels))
    schedule = Schedule(steps, per_level_s, duration_s)
    publications = Publications.from_levels(steps, per_level_s, duration_s)
    assert schedule.items == publications.first[-1]
    expected_us = publications.times_us(0, schedule.items)
    times_us = [schedule.due_s(number) * 1e6 for number in range(schedule.items)]
    np.testing.assert_allclose(times_us, expected_us, atol=1)
    for t_s in np.linspace(0, duration_s, 7)[1:]:
        late = int((expected_us <= t_s * 1e6 - 1).sum())
        assert late <= schedule.due_by(t_s) <= int((expected_us <= t_s * 1e6 + 1).sum())


def test_nothing_is_due_without_a_level():
    schedule = Schedule(Levels((0.0, 10.0), (0.0, 2.0)), 1.0, 20.0)
    assert (schedule.items, schedule.due_by(9.9), schedule.due_by(30)) == (20, 0, 20)
    assert schedule.due_s(0) == 10.0


def test_what_is_not_confirmed_is_sent_again_after_a_loss():
    position = Position(a_stream(), confirmed=5)
    position.following = 9
    position.confirmed = 7
    position.lose()
    assert (position.following, position.next_due_s) == (7, 0.7)


def test_a_source_ends():
    position = Position(a_stream(rate=1.0, duration_s=2.0), confirmed=1)
    assert position.next_due_s == 1.0
    position.following = position.confirmed = 2
    assert position.done
    assert position.next_due_s == float("inf")


@pytest.mark.parametrize(("target", "size"), [("O1", 12_500), ("O2", 95), ("O6", 90), ("x", 100)])
def test_payloads_have_their_size_and_can_be_made_again(target, size):
    make = payload_for((target,))
    bodies = {number: make(number, 3, size, 50) for number in (0, 1, 49, 50, 51)}
    assert {len(body) for body in bodies.values()} == {size}
    assert len(set(bodies.values())) == len(bodies)
    assert make(49, 3, size, 50) == bodies[49]


def test_warnings_are_as_frequent_as_asked_for():
    status, temperature = payload_for(("O2",)), payload_for(("O6",))
    states = [decode(Status, status(n, 1, 95, 50)).status for n in range(200)]
    degrees = [decode(Temperature, temperature(n, 1, 90, 102)).celsius for n in range(204)]
    assert states.count(DEFECT) == 4
    assert sum(celsius > 80 for celsius in degrees) == 2


def test_a_plan_survives_its_file_and_holds_no_secret(tmp_path):
    plan = ProviderPlan("run-1", 5, 2.0, (a_stream("O1", rate=2.5),))
    path = tmp_path / "plan.json"
    path.write_text(plan.to_json())
    assert ProviderPlan.read(path) == plan
    assert set(json.loads(plan.to_json())) == {"run", "started_us", "time_scale", "streams"}
