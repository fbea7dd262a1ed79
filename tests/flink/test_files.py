"""What the job is told, and what its instances say of themselves."""

from __future__ import annotations

import json
import os
import struct

import pytest

from include.testbeds.flink.calibration import PARAMETERS, FlinkCalibration
from include.testbeds.flink.instances import Starts, counted, newest_whole, whole_line
from include.testbeds.flink.job import schedule_file, write_job, write_schedules
from include.testbeds.flink.reap import RUNS_WITH_LOGS, find, give_back_run
from include.testbeds.flink.state import kept_logs, run_folder
from include.testing.builders import a_topology, an_operator
from tests.flink.flink_run import a_join, a_line, configured, expected_items
from tests.flink.world import subtask_of, write_counts
from tests.problems import problems_told


def test_a_schedule_is_microseconds_of_the_wall(tmp_path):
    write_schedules(tmp_path, configured(rate=4, emits_s=1.0), scale=2)
    content = schedule_file(tmp_path, "S").read_bytes()
    assert struct.unpack(">4q", content) == (0, 125_000, 250_000, 375_000)


def test_the_job_has_operators_in_the_order_of_flow_and_time_as_it_passes(tmp_path):
    limits = FlinkCalibration(time_scale=4, work="burn").complete(a_line(state_mb=2))
    write_job(tmp_path, configured(topology=a_line(state_mb=2)), limits, {"front": 3})
    job = json.loads((tmp_path / "job.json").read_text())
    front, back, end = job["operators"]
    assert [each["name"] for each in (front, back, end)] == ["front", "back", "end"]
    assert (front["service_us"], front["parallelism"], front["burns"]) == (10_000, 3, True)
    assert (back["state_kb"], back["parallelism"]) == (2048, 1)
    assert {"from": "front", "to": "back", "out": 2, "in": 3} in job["edges"]


def test_expected_items_are_counted_by_hand():
    # 20 a second for half a second: ten items; two of three go on: 6; the end gets both.
    items = expected_items(configured(rate=20, emits_s=0.5))
    assert items == {"front": 10, "back": 6, "end": 16}
    # Half of each ten and six: 5 by one path, by the other, which begins within a pair, 3.
    items = expected_items(configured(topology=a_join(), rate=20, emits_s=0.5))
    assert items == {"quick": 10, "slow": 6, "both": 16, "half": 8}
    items = expected_items(configured(topology=a_join(), rate=22, emits_s=0.5))
    assert items == {"quick": 11, "slow": 7, "both": 18, "half": 9}


def test_a_start_is_complete_when_all_subtasks_of_all_operators_have_opened(tmp_path):
    starts = Starts(tmp_path, ("a", "b"))
    assert starts.look() == []
    subtask_of(tmp_path, "a", of=2, begun_us=5)
    subtask_of(tmp_path, "b", of=1, begun_us=7, host="host-2")
    (start,) = starts.look()
    assert not start.complete(("a", "b"))
    subtask_of(tmp_path, "a", number=1, of=2, begun_us=9)
    (start,) = starts.look()
    assert start.complete(("a", "b"))
    assert (start.begun_us, start.up_us) == (5, 9)
    assert start.parallelism() == {"a": 2, "b": 1}


def test_a_line_that_is_being_written_is_none(tmp_path):
    path = subtask_of(tmp_path, "a")
    (start,) = Starts(tmp_path, ("a",)).look()
    assert counted(start.subtasks[0]) is None
    write_counts(path, 50, 0, 12, 10, 3_000, 1, 99, sent=(7, 8))
    line = counted(start.subtasks[0])
    assert (line.us, line.received, line.done, line.busy_us) == (50, 12, 10, 3_000)
    assert (line.waiting, line.oldest_us, line.sent, line.closed) == (1, 99, (7, 8), False)
    path.write_text("60,1,2,50\n")
    assert whole_line(path) is None


def test_what_flink_cannot_run_is_said_at_once():
    topology = a_topology(
        an_operator("a/b", service_ms=1.0), an_operator("guest", service_ms=1.0, runs_in="a/b")
    )
    assert len(problems_told(FlinkCalibration().complete, topology)) == 2


def test_a_boot_takes_exactly_as_long_as_it_is_said_to():
    with pytest.raises(ValueError, match="the same number of seconds twice"):
        FlinkCalibration(host_boot_s=(10, 20))
    assert PARAMETERS.load_calibration("manufacturing").host_boot_s == (45, 45)


def test_of_a_run_that_has_given_back_its_logs_stay(tmp_path, monkeypatch):
    """Also where another process gives back the same run, or removes the oldest logs meanwhile."""
    monkeypatch.setenv("TIDEBENCH_FLINK_STATE", str(tmp_path))
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "removed").symlink_to("nowhere")
    for number in range(RUNS_WITH_LOGS + 1):
        log, processes = (run_folder(f"run-{number}") / name for name in ("log", "processes"))
        log.mkdir(parents=True)
        (log / "job-manager.log").write_text("why")
        os.utime(log, (number, number))
        processes.mkdir()
        (processes / "host-1.json").symlink_to("nowhere")
        assert [held.holds for held in find()] == [("folder",)]
        give_back_run(f"run-{number}")
        assert not run_folder(f"run-{number}").exists()
        give_back_run(f"run-{number}")
    assert not kept_logs("run-0").exists()
    assert (kept_logs("run-1") / "job-manager.log").read_text() == "why"


def test_a_job_that_is_starting_is_read_from_what_ran_before(tmp_path):
    """Else an operator that has not opened yet would seem to have received nothing ever."""
    names = ("front", "back")
    starts = Starts(tmp_path, names)
    subtask_of(tmp_path, "front", graph="g1", begun_us=10)
    assert newest_whole(starts.look(), names).graph == "g1", "nothing ran before"
    subtask_of(tmp_path, "back", graph="g1", begun_us=10)
    subtask_of(tmp_path, "front", graph="g2", begun_us=20, restored=1)
    found = starts.look()
    assert [each.graph for each in found] == ["g1", "g2"]
    assert newest_whole(found, names).graph == "g1"
    subtask_of(tmp_path, "back", graph="g2", begun_us=21, restored=1)
    assert newest_whole(starts.look(), names).graph == "g2"
