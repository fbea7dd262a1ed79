"""The testbed `flink` on a real Flink: contract, windows, faults; everything is counted."""

from __future__ import annotations

import math
import os
import signal
import subprocess
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from include.model.decision import (
    LeaseHost,
    MigrateInstance,
    ProlongLease,
    ReleaseHost,
    StartInstance,
    StopInstance,
)
from include.model.errors import StoreError
from include.runs.measurements.store import to_arrow
from include.testbeds.base import Leasing
from include.testbeds.flink.monitor import cpu_s
from include.testbeds.flink.reap import find
from include.testbeds.flink.state import run_folder
from include.testing.builders import decision
from tests.flink.flink_run import FLAVOR, a_join, a_line, an_operator, configured, flink_run

pytestmark = pytest.mark.flink

TWO_HOSTS = (("front", "back", "end"), ("back", "front"))


def test_rescales_a_kill_and_a_release_lose_nothing_and_double_nothing():
    """Time passes twice as fast; windows hand the run to each other on the way."""
    config = configured(queue="heap", time_scale=2, emits_s=100, duration_s=150)
    with flink_run(config, TWO_HOSTS) as run:
        testbed = run.testbed
        assert isinstance(testbed, Leasing)
        first = testbed.snapshot()
        with pytest.raises(ValueError, match="cannot go back"):
            testbed.advance_to(-1)
        testbed.advance_to(10)
        seen = testbed.observe()
        sent = seen.published_in_all["S"]  # more than in ten seconds, where the reading was late
        assert sent >= 201
        assert seen.operators["front"].arrived_items == pytest.approx(sent, abs=20)
        assert len(seen.operators["back"].durations_ms) == 5
        assert testbed.observe().operators["front"].arrived_items == 0
        (refused,) = testbed.apply(decision(StartInstance("front", "host-9")))
        assert not refused.accepted

        _, leased, _ = run.apply(
            StartInstance("front", "host-2"),
            LeaseHost(FLAVOR.name, "new"),
            StartInstance("back", "new"),
        )
        assert not testbed.look().hosts[leased.subject].up
        run.settle()
        run.apply(ProlongLease("host-1"))
        assert testbed.look().hosts["host-1"].paid_until_s == 1200
        assert testbed.look().hosts[leased.subject].up

        run.state.fleet.hosts[2].process.end(first=signal.SIGKILL)
        run.until(lambda: run.state.fleet.hosts[2].ended)
        run.settle()
        assert "host-2" not in testbed.look().hosts

        front = [one for one in testbed.fleet.instances.values() if one.operator == "front"]
        run.apply(StopInstance(front[0].name))
        run.settle()
        there = [one for one in testbed.fleet.instances.values() if one.host == 1]
        moved = [MigrateInstance(one.name, "host-3") for one in there]
        run.apply(*moved, ReleaseHost("host-1"))
        run.until(lambda: run.state.fleet.hosts[1].ended)
        run.settle()
        rows = testbed.take_measurements()
        second = testbed.snapshot()
        testbed.close()

        # The next window, in another process; and the first one again, which was killed.
        run.testbed = run.again()
        run.testbed.restore(second)
        tables = run.finish()
        run.assert_exactly_once()
        durations = _rows(rows) + _rows(tables)
        assert durations == sum(run.assert_exactly_once().values())
        for table, columns in {**rows, **tables}.items():
            to_arrow(table, columns)
        causes = [row["cause"] for row in run.rescales()]
        assert causes.count("crash") == 1
        assert causes.count("controller") >= 3
        gaps_s = [row["gap_s"] for row in run.rescales() if row["cause"] == "controller"]
        known_s = [gap_s for gap_s in gaps_s if not math.isnan(gap_s)]
        looked = run.testbed.look()
        assert looked.job_changes == len(known_s)
        assert looked.job_paused_in_all_s == pytest.approx(sum(known_s))
        for row in run.rescales():
            assert row["asked_s"] <= row["down_s"] <= row["up_s"]
        repeated = run.again()
        repeated.restore(first)
        assert _rows(repeated.take_measurements()) == durations
        assert run.testbed.leases()["released"] == [True, True, False]
        (held,) = [each for each in find() if each.run == config.run]
        assert {"process job-manager", "process provider", "process host-3"} == {*held.holds[1:]}
        assert not held.dead(60)
        run.testbed.give_back()
        run.testbed.give_back()
        assert config.run not in {each.run for each in find()}
        assert not run_folder(config.run).exists()
        with pytest.raises(StoreError, match="given back"):
            run.again().restore(second)


def test_a_job_manager_that_dies_and_a_host_that_hangs_lose_nothing():
    config = configured(queue="engine", time_scale=2, emits_s=80, duration_s=130, silent_for_s=3)
    with flink_run(config, TWO_HOSTS) as run:
        run.testbed.advance_to(12)
        run.state.job_manager.end(first=signal.SIGKILL)
        run.until(lambda: "job_manager_restarted" in [each[0] for each in run.events()])
        graph = run.state.graph
        run.until(lambda: run.state.graph != graph)
        run.settle()
        os.kill(run.state.fleet.hosts[2].process.pid, signal.SIGSTOP)
        run.until(lambda: run.state.fleet.hosts[2].ended, within_s=90)
        run.settle()
        run.finish()
        run.assert_exactly_once()
        assert {row["cause"] for row in run.rescales()} >= {"crash"}


def test_a_disk_that_is_full_holds_up_a_rescale_and_loses_nothing():
    """No checkpoint can be stored, so none lets the rescale begin; then there is room again."""
    config = configured(queue="heap", time_scale=2, emits_s=80, duration_s=130, rescale_within_s=10)
    with flink_run(config, TWO_HOSTS) as run:
        run.testbed.advance_to(8)
        with no_room_in(run.state.folder / "checkpoints" / run.state.job):
            run.apply(StartInstance("front", "host-1"))
            run.until(lambda: "checkpoint_failed" in [each[0] for each in run.events()])
            assert not run.testbed._reconciler.settled
            run.until(lambda: "rescale_late" in [each[0] for each in run.events()])
        run.settle()
        assert sum(one.operator == "front" for one in run.testbed.fleet.instances.values()) == 3
        run.finish()
        run.assert_exactly_once()
        (failure,) = {each[2] for each in run.events() if each[0] == "rescale_late"}
        assert "10 s" in failure


def test_a_fraction_after_a_join_is_right_while_one_of_its_inputs_lags():
    """Each path has its own count, so what came by the quick one waits for nothing."""
    config = configured(topology=a_join(), queue="heap", emits_s=40, duration_s=100,
                        sample_every_items=3)  # fmt: skip
    with flink_run(config, (("quick", "slow"), ("both", "half"))) as run:
        run.testbed.advance_to(30)
        seen = run.testbed.observe().operators
        assert seen["slow"].waiting_items > 50
        assert seen["half"].arrived_items == pytest.approx(seen["both"].arrived_items / 2, abs=20)
        run.finish()
        run.assert_exactly_once()


def test_thousands_of_items_that_wait_slow_nothing_down():
    """An instance with a queue of its own has one timer, however many items have come meanwhile.
    They take as long as in the simulator: a gamma distribution of this variation."""
    operators = (an_operator("front", 4), an_operator("back", 2), an_operator("end", 1))
    line = replace(a_line(), operators=operators)
    config = configured(topology=line, queue="heap", rate=2000, emits_s=5, duration_s=70,
                        service_cv=1.5)  # fmt: skip
    with flink_run(config, (("front", "back", "end"),)) as run:
        pid = run.state.fleet.hosts[1].process.pid
        began_s = cpu_s(pid)
        run.testbed.advance_to(30)
        assert cpu_s(pid) - began_s < 12  # 3 s; with a timer for each item 28 s
        run.finish()
        run.assert_exactly_once()
        rows = run.state.journal.read(0)[0]["processing_duration"]
    of_front = np.array(rows["operator"]) == "front"
    took_ms = (np.array(rows["duration_ms"]) - np.array(rows["wait_ms"]))[of_front]
    assert took_ms.mean() == pytest.approx(4, rel=0.1)
    assert took_ms.std() / took_ms.mean() == pytest.approx(1.5, rel=0.1)


def test_what_a_start_took_over_holds_the_next_rescale_up_and_is_not_lost():
    """An instance runs, for Flink, once it has worked off what its buffers had: no checkpoint and
    no rescale before. This is no fault of the machine, so the event is not `rescale_late`."""
    line = a_line()
    slow = replace(line, operators=(an_operator("front", 2000), *line.operators[1:]))
    config = configured(topology=slow, queue="engine", rate=20, emits_s=6, duration_s=240,
                        time_scale=2, rescale_within_s=6)  # fmt: skip
    with flink_run(config, TWO_HOSTS) as run:
        run.testbed.advance_to(10)
        for name, host in (("end", "host-2"), ("back", "host-2"), ("end", "host-1")):
            run.apply(StartInstance(name, host))
            run.settle()
        run.until(lambda: "rescale_held_up" in [each[0] for each in run.events()])
        run.settle()
        run.finish()
        run.assert_exactly_once()
        details = [each[2] for each in run.events() if each[0] == "rescale_held_up"]
        assert all("front" in detail for detail in details), details
        assert "rescale_late" not in [each[0] for each in run.events()]


@contextmanager
def no_room_in(folder):
    """A disk of one page over a folder, and something that fills it; as root only."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a disk here: {mounted.stderr.decode().strip()}")
    try:
        (folder / "full").write_bytes(bytes(4096))
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_of_more_instances_than_slots_some_are_lost_and_no_item_is():
    """Six slots for eight instances; the next host brings some more."""
    config = configured(time_scale=2, slots_per_host=3, emits_s=100, duration_s=150)
    with flink_run(config, TWO_HOSTS) as run:
        run.testbed.advance_to(8)
        more = [("front", "host-1"), ("front", "host-2"), ("back", "host-2")]
        run.apply(*(StartInstance(name, host) for name, host in more))
        run.until(lambda: "slots_missing" in [each[0] for each in run.events()])
        run.settle()
        (missing,) = [detail for event, _, detail in run.events() if event == "slots_missing"]
        assert missing == "asked for 8 instances, runs 6"
        lost = {subject for event, subject, _ in run.events() if event == "instance_lost"}
        seen = run.testbed.look().instances
        assert len(lost) == 2
        assert not lost & seen.keys()
        assert Counter(one.operator for one in seen.values()) == {"front": 3, "back": 2, "end": 1}
        assert all(one.ready for one in seen.values())

        run.apply(LeaseHost(FLAVOR.name, "new"), StartInstance("front", "new"))
        run.settle()
        assert run.state.starts.look()[-1].parallelism()["front"] == 4
        run.finish()
        run.assert_exactly_once()
        assert "rescale_late" not in [each[0] for each in run.events()]


def test_instances_run_where_they_are_planned_when_they_are_steered():
    config = configured(placement="steered", time_scale=2, emits_s=50, duration_s=70)
    with flink_run(config, TWO_HOSTS) as run:
        assert _hosts(run) == _booked(run)
        run.testbed.advance_to(8)
        one = next(one for one in run.testbed.fleet.instances.values() if one.host == 2)
        run.apply(MigrateInstance(one.name, "host-1"))
        run.settle()
        assert _hosts(run) == _booked(run)
        run.apply(StartInstance("end", "host-2"))
        run.settle()
        assert _hosts(run) == _booked(run)
        run.finish()
        run.assert_exactly_once()
        names = [each[0] for each in run.events()]
        assert "placement_refused" not in names
        assert "sources_placed" not in names


def _rows(tables):
    return len(tables.get("processing_duration", {}).get("time_s", ()))


def _booked(run):
    fleet = run.testbed.fleet
    return sorted((one.operator, f"host-{one.host}") for one in fleet.instances.values())


def _hosts(run):
    start = run.state.starts.look()[-1]
    return sorted((each.operator, each.host) for each in start.subtasks)
