"""What becomes of orders that Flink does not carry out, without a Flink."""

from __future__ import annotations

import subprocess
from unittest import mock

import pytest

from include.model.decision import StartInstance, StopInstance
from include.model.errors import TestbedError
from include.testbeds.actions import carry_out
from include.testbeds.flink import reconciler
from include.testbeds.flink.calibration import FlinkCalibration
from include.testbeds.flink.reconciler import FlinkReconciler
from include.testbeds.flink.rest import NOT_YET, NoAnswerError
from include.testbeds.flink.state import FlinkState
from include.testbeds.flink.testbed import FlinkTestbed
from include.testbeds.live.processes import DetachedProcess
from include.testbeds.live.real_time import SNAPSHOT_VERSION
from include.testbeds.snapshots import packed
from include.testbeds.virtual.key_groups import KEY_GROUPS
from include.testing.builders import decision
from tests.flink.flink_run import configured
from tests.flink.world import a_host, an_instance, subtask_of

OPERATORS = ("front", "back", "end")


class DeafFlink:
    """Takes every request and stays as it is; of the rest it has no answer."""

    def __getattr__(self, name):
        raise NoAnswerError(name)

    def __init__(self):
        self.asked = []

    def ask_for(self, instances):
        self.asked.append(dict(instances))

    def trigger_checkpoint(self):
        return "trigger"

    def checkpoint_failure(self, trigger):
        return ""

    def task_managers(self):
        return {"host-1"}


@pytest.fixture
def flink(monkeypatch, tmp_path):
    flink = DeafFlink()
    monkeypatch.setenv("TIDEBENCH_FLINK_STATE", str(tmp_path))
    monkeypatch.setattr(FlinkState, "rest", property(lambda state: flink))
    monkeypatch.setattr(reconciler, "AGAIN_AFTER_S", 0.0)
    return flink


@pytest.fixture
def process():
    """What stands in for a TaskManager."""
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    yield DetachedProcess.running(process.pid)
    process.kill()
    process.wait()


@pytest.fixture
def state(flink, process):
    """Three slots, an instance of each operator in them, and time passes."""
    state = FlinkState(configured(), FlinkCalibration(slots_per_host=3))
    state.fleet.hosts[1] = a_host(process=process, up_s=0.0)
    for number, operator in enumerate(OPERATORS, start=1):
        order(state, number, operator, runs=True)
        subtask_of(state.folder, operator)
    state.begin(0)
    state.graph, state.asked = "g1", dict.fromkeys(OPERATORS, 1)
    return state


def order(state, number, operator, *, runs=False):
    state.fleet.instances[number] = an_instance(number, operator, runs=runs)


def reconcile(state, times=20):
    """Until everything is settled, and once more."""
    settler = FlinkReconciler(state)
    for _ in range(times):
        settler.reconcile()
        if settler.settled:
            settler.reconcile()
            return
    raise AssertionError("not settled")


@pytest.mark.parametrize("placement", ["flink", "steered"])
def test_an_instance_without_a_slot_is_lost_and_nothing_more_is_awaited(flink, state, placement):
    state.calibration = FlinkCalibration(slots_per_host=3, placement=placement)
    order(state, 4, "front")
    reconcile(state)
    events = state.journal.read(0)[0]["event"]
    assert events["event"] == ["slots_missing", "instance_lost"]
    assert events["subject"] == ["job", "front-4"]
    assert events["detail"][0] == "asked for 4 instances, runs 3"
    assert flink.asked[0] == {"front": 2, "back": 1, "end": 1}
    assert flink.asked[-1] == state.asked == dict.fromkeys(OPERATORS, 1)
    assert state.rescale is None


@pytest.mark.parametrize("asked", [1, 2])
def test_an_order_for_as_many_as_run_is_settled_without_a_start_of_the_job(flink, state, asked):
    """One stops and another has its place, which was ordered now or is one that Flink never ran."""
    state.asked["front"] = asked
    order(state, 4, "front", runs=asked == 2)
    state.fleet.instances[1].stopped_s = 0.0
    reconcile(state)
    assert flink.asked == [dict.fromkeys(OPERATORS, 1)]
    assert {one.name for one in state.fleet.instances.values()} == {"back-2", "end-3", "front-4"}
    assert state.names["g1"]["front"] == ["front-4"]
    assert state.rescale is None
    assert "event" not in state.journal.read(0)[0]


@pytest.mark.parametrize(("until_s", "expected"), [(40, "rescale_held_up"), (20, "rescale_late")])
def test_a_rescale_is_held_up_whose_checkpoint_could_not_begin_most_of_the_time(
    flink, state, monkeypatch, until_s, expected
):
    """Of its sixty seconds; then a checkpoint begins that is not complete when they are over."""
    passed_s = 0.0
    monkeypatch.setattr(FlinkState, "now_s", lambda state: passed_s)
    monkeypatch.setattr(reconciler, "TRIGGER_EVERY_S", -1.0)
    flink.initializing = lambda: ["S", "front"] if passed_s < until_s else []
    flink.checkpoint_failure = lambda trigger: NOT_YET[0] if passed_s < until_s else None
    order(state, 4, "front")
    settler = FlinkReconciler(state)
    while not state.journal.read(0)[0]:
        settler.reconcile()
        passed_s += 1
    (event,) = state.journal.read(0)[0]["event"]["event"]
    assert event == expected
    detail = state.journal.read(0)[0]["event"]["detail"][0]
    assert ("S, front" in detail) == (expected == "rescale_held_up")


def test_what_already_runs_elsewhere_stays_ready_when_its_host_is_lost(flink, state):
    """Flink started the job without host-2 before it was missed, so no other start is to come."""
    state.fleet.hosts[2] = a_host(2, process=DetachedProcess(2**30, 1), up_s=0.0)
    for one in state.fleet.instances.values():
        one.ready_s = 0.0
    state.fleet.instances[2].host = 2
    reconcile(state)
    assert state.journal.read(0)[0]["event"]["event"] == ["host_lost"]
    assert [one.host for one in state.fleet.instances.values()] == [1, 1, 1]
    assert not state.crashed


def test_a_host_that_is_released_and_empty_ends_before_the_job_starts_again(flink, state, process):
    """Else Flink may fill it, and nobody moves what runs there."""
    state.fleet.hosts[2] = a_host(2, releasing=True, process=process, up_s=0.0)
    order(state, 4, "front")
    ends = []
    settler = FlinkReconciler(state)
    end = mock.Mock(side_effect=lambda host, **_: ends.append((host.name, list(flink.asked))))
    with mock.patch.object(settler, "_end", end):
        settler.reconcile()
    assert ends[0] == ("host-2", [])


def test_a_task_manager_that_outlived_its_lease_ends_with_the_next_process(flink, state, process):
    """The one before died as it ended the lease; Flink would go on to use what nobody pays for."""
    state.fleet.hosts[2] = a_host(2, process=process, up_s=0.0, ended_s=1.0)
    state.save()
    plain = {"started_us": state.clock.started_us, "now_s": 1.0, "handed_over": 0, "observed": {}}
    testbed = FlinkTestbed(state.config)
    testbed.restore({"plain": packed(plain, SNAPSHOT_VERSION)})
    testbed.close()
    assert not process.alive


@pytest.mark.parametrize(("lost", "told"), [(True, "host-1"), (False, "provider")])
def test_why_a_deployment_failed_is_told(flink, process, lost, told):
    """Its events go with the run's folder."""
    testbed = FlinkTestbed(configured())
    state = testbed._state
    dead = DetachedProcess(2**30, 1)
    state.provider = process if lost else dead
    state.fleet.hosts[1] = a_host(process=dead if lost else process)
    with pytest.raises(TestbedError, match=f"failed: {told}: its process ended.*; see .*logs"):
        testbed._wait_until_up()
    testbed.close()


def test_what_runs_on_a_host_that_is_released_is_booked_where_it_can_stay(flink, state):
    subtask_of(state.folder, "front", host="host-2", graph="g2")
    for name in ("back", "end"):
        subtask_of(state.folder, name, graph="g2")
    state.fleet.hosts[2] = a_host(2, releasing=True, up_s=0.0)
    settler = FlinkReconciler(state)
    settler._settle_start()
    assert state.graph == "g2"
    assert state.fleet.instances[1].host == 1
    (going,) = settler._leaving(settler._start(), settler._want())
    assert going.name == "host-2"


@pytest.mark.parametrize("hangs", [False, True])
@pytest.mark.parametrize("part", ["provider", "job_manager"])
def test_what_died_or_hangs_is_started_again(flink, state, process, monkeypatch, part, hangs):
    """Flink does not hear of a provider that hangs, nobody of a JobManager; what was just started
    has time to register, or to answer."""
    setattr(state, part, process if hangs else DetachedProcess(2**30, 1))
    state.calibration = state.calibration.complete(state.config.topology)
    if part == "job_manager" and hangs:
        monkeypatch.setattr(DeafFlink, "task_managers", lambda flink: flink.answer)
    start = mock.Mock(return_value=process)
    cluster = mock.Mock(start_task_manager=start, start_job_manager=start)
    cluster.newest_checkpoint.return_value = None
    monkeypatch.setattr(FlinkState, "cluster", cluster)
    passed = iter(range(0, 1000, 2))
    monkeypatch.setattr(reconciler, "time", mock.Mock(monotonic=lambda: 1e6 + next(passed)))
    settler = FlinkReconciler(state)
    while not start.called:
        settler.reconcile()
    assert (next(passed) > reconciler.FIND_AGAIN_S) == hangs
    settler.reconcile()
    assert getattr(state, part) == process
    events = state.journal.read(0)[0]["event"]
    assert events["event"] == [f"{part}_restarted"]
    assert ("its process had ended" in events["detail"][0]) == (not hangs)


def test_an_instance_more_than_flink_has_key_groups_is_refused(flink):
    """Flink would refuse the request, and with it every other change."""
    testbed = FlinkTestbed(configured())
    testbed.fleet.hosts[1], testbed.fleet.instances_started = a_host(), KEY_GROUPS
    for number in range(1, KEY_GROUPS + 1):
        testbed.fleet.instances[number] = an_instance(number, "front")
    one_more, another = (StartInstance(name, "host-1") for name in ("front", "end"))
    steps = decision(one_more, another, StopInstance("front-1"), one_more)
    refused, *others = carry_out(steps, testbed)
    assert refused.detail == "front has 128 instances, one for each key group of Flink"
    assert [each.accepted for each in others] == [True, True, True]
