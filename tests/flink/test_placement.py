"""Which instance each subtask is, what is to run, and where."""

from __future__ import annotations

from pydantic import TypeAdapter

from include.testbeds.flink.calibration import FlinkCalibration
from include.testbeds.flink.fleet import FlinkFleet, by_operator, wanted
from include.testbeds.flink.instances import Starts
from include.testbeds.flink.placement import placed, plan_lines, slots_of
from tests.flink.flink_run import configured
from tests.flink.world import a_host, an_instance, subtask_of


def a_fleet(up=(1, 2), booked=()):
    fleet = FlinkFleet()
    for number in (1, 2, 3):
        fleet.hosts[number] = a_host(number, up_s=0.0 if number in up else None)
    for number, (operator, host) in enumerate(booked, start=1):
        fleet.instances[number] = an_instance(number, operator, host, runs=True)
    return fleet


def a_start(folder, *subtasks):
    of = {operator: [o for o, _ in subtasks].count(operator) for operator, _ in subtasks}
    numbers = dict.fromkeys(of, 0)
    for operator, host in subtasks:
        subtask_of(folder, operator, number=numbers[operator], of=of[operator], host=host)
        numbers[operator] += 1
    (start,) = Starts(folder, tuple(of)).look()
    return start


def test_subtasks_are_first_those_that_are_booked_on_their_host(tmp_path):
    fleet = a_fleet(booked=[("a", 1), ("a", 2), ("b", 1)])
    start = a_start(tmp_path, ("a", "host-2"), ("a", "host-1"), ("b", "host-1"))
    named = placed(fleet.instances.values(), start, fleet)
    assert named.names == {"a": ["a-2", "a-1"], "b": ["b-3"]}
    assert named.hosts == {1: 1, 2: 2, 3: 1}
    assert named.moved == ()


def test_others_run_where_flink_has_put_them(tmp_path):
    fleet = a_fleet(booked=[("a", 1), ("a", 1)])
    start = a_start(tmp_path, ("a", "host-2"), ("a", "provider"))
    named = placed(fleet.instances.values(), start, fleet)
    assert named.hosts == {1: 2, 2: 0}
    assert named.moved == ("a-1 on host-2", "a-2 on provider")


def test_a_subtask_too_many_is_nobodys_and_an_instance_too_many_has_none(tmp_path):
    fleet = a_fleet(booked=[("a", 1)])
    start = a_start(tmp_path, ("a", "host-1"), ("a", "host-2"))
    assert placed(fleet.instances.values(), start, fleet).names == {"a": ["a-1", "a-0"]}
    fleet = a_fleet(booked=[("b", 1), ("b", 1)])
    start = a_start(tmp_path / "other", ("b", "host-1"))
    assert placed(fleet.instances.values(), start, fleet).hosts == {1: 1}


def test_what_is_to_run_is_on_hosts_that_are_up_and_has_started():
    fleet = a_fleet(up=(1,), booked=[("a", 1), ("a", 2), ("b", 1)])
    fleet.instances[3].started_s = 9.0
    assert [one.number for one in wanted(fleet, 5.0)] == [1]
    assert by_operator(wanted(fleet, 5.0), ("a", "b")) == {"a": 1, "b": 1}
    assert [one.number for one in wanted(fleet, 9.0)] == [1, 3]
    fleet.instances[2].ready_s = 3.0  # Flink has put it elsewhere; the boot of its host goes on
    assert [one.number for one in wanted(fleet, 9.0)] == [1, 2, 3]


def test_one_that_migrates_runs_until_its_copy_can():
    fleet = a_fleet(up=(1,), booked=[("a", 1), ("a", 2)])
    fleet.instances[1].stopped_s, fleet.instances[1].successor = 1.0, 2
    assert [one.number for one in wanted(fleet, 5.0)] == [1]
    fleet.hosts[2].up_s = 4.0
    assert [one.number for one in wanted(fleet, 5.0)] == [2]
    # And where the copy is gone it has nothing to wait for.
    del fleet.instances[2]
    assert wanted(fleet, 5.0) == []


def test_a_fleet_is_the_same_after_a_file():
    fleet = a_fleet(booked=[("a", 1)])
    stored = TypeAdapter(FlinkFleet)
    assert stored.validate_json(stored.dump_json(fleet)) == fleet


def test_the_plan_has_a_line_per_operator_and_host():
    fleet = a_fleet(booked=[("a", 1), ("a", 1), ("b", 2)])
    ids = {"a": "aa", "b": "bb", "S": "cc"}
    lines = plan_lines(fleet.instances.values(), ids, ["S"], "provider")
    assert set(lines.splitlines()) == {"aa host-1 2", "bb host-2 1", "cc provider 1"}


def test_a_host_has_slots_for_what_fits():
    assert slots_of(configured(), FlinkCalibration()) == 4
    assert slots_of(configured(), FlinkCalibration(slots_per_host=6)) == 6
