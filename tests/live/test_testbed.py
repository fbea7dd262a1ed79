"""The testbed `docker` with real hosts, containers, broker and Redis.

What a controller is told of a host that fails; test_faults.py has everything that can fail. And
what a run leaves whose processes were all killed: the reaper finds and removes it.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest

from include.model.decision import (
    LeaseHost,
    MigrateInstance,
    ReleaseHost,
    StartInstance,
    StopInstance,
)
from include.model.errors import StoreError
from include.runs.measurements.store import to_arrow
from include.testbeds.base import Leasing
from include.testbeds.live.broker import vhosts
from include.testbeds.live.files import HEARTBEAT, run_folder
from include.testbeds.live.hosts.local.hosts import leases, leases_of
from include.testbeds.live.hosts.local.reap import find
from include.testbeds.live.replay import ReplayProcess
from include.testbeds.live.services import Services
from include.testbeds.live.shared_state import SharedState, users
from include.testbeds.reap import DEAD_AFTER_S, reap
from tests.live.live_run import FLAVOR, FRONT, live_run
from tests.live.world import HOSTS, crowding, kill_container, script, wait_until

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("images")]

CACHED_START_S = 2.0


def test_windows_hand_a_run_to_each_other_and_leave_nothing():
    with live_run(rate=20) as live:
        assert isinstance(live.testbed, Leasing)
        live.deploy()
        first = live.testbed.snapshot()
        live.testbed.advance_to(10)
        observation = live.testbed.observe()
        assert set(observation.operators) == {"front", "back"}
        assert observation.operators["front"].arrived_items == pytest.approx(200, abs=20)
        assert len(observation.operators["back"].durations_ms) == 5
        assert {held.run for held in find() if not held.dead(60)} >= {live.run}
        rows = live.testbed.take_measurements()
        for table, columns in rows.items():
            to_arrow(table, columns)
        second = live.testbed.snapshot()
        live.testbed.close()

        # The next window, in another process.
        other = live.again()
        other.restore(second)
        other.advance_to(20)
        theirs = other.take_measurements()
        assert theirs["queue"]["time_s"] == [15.0, 15.0, 20.0, 20.0]
        assert min(theirs["processing_duration"]["time_s"]) > 5
        other.close()

        # The first one was killed before its commit: what it has measured is not lost.
        repeated = live.again()
        repeated.restore(first)
        repeated.advance_to(5)
        assert repeated.observe().operators == {}, "nobody saw them at second 5"
        again = repeated.take_measurements()
        assert again["queue"]["time_s"][:4] == rows["queue"]["time_s"]
        durations = len(again["processing_duration"]["time_s"])
        assert durations == sum(len(r["processing_duration"]["time_s"]) for r in (rows, theirs))

        provider = ReplayProcess(live.run).process
        repeated.give_back()
        repeated.give_back()
        services = Services.find()
        assert live.run not in {*vhosts(services), *users(services)}
        assert list(SharedState(services, live.run).redis.scan_iter(match=f"{live.run}:*")) == []
        assert not run_folder(live.run).exists()
        assert not provider.alive
        with pytest.raises(StoreError, match="given back"):
            live.again().restore(second)


def test_a_new_instance_works_soon_and_a_released_host_drains():
    with live_run(rate=20) as live:
        live.deploy()
        live.testbed.advance_to(5)
        cached, leased, cold = live.apply(
            StartInstance(FRONT, "host-1"),
            LeaseHost(FLAVOR.name, "new"),
            StartInstance(FRONT, "new"),
        )
        fleet = live.testbed._state.fleet
        instance = fleet.instance(cached.subject)
        live.advance_until(lambda: instance.first_item_s is not None, 20)
        assert instance.first_item_s - instance.started_s < CACHED_START_S * crowding()
        assert not instance.pull_s
        live.advance_until(lambda: fleet.instance(cold.subject).first_item_s is not None, 60)
        assert FRONT in live.testbed.observe().hosts[leased.subject].images
        assert fleet.instance(cold.subject).pull_s

        # Back to the first host: it works there before it ends here, and the host goes then.
        number = live.host_ids()[leased.subject]
        (moved,) = live.apply(MigrateInstance(cold.subject, "host-1"))
        assert live.testbed.observe().instances[cold.subject].stopping
        live.apply(ReleaseHost(leased.subject))
        live.advance_until(lambda: leased.subject not in live.testbed.observe().hosts, 30)
        observation = live.testbed.observe()
        assert observation.instances[moved.subject].ready
        assert cold.subject not in observation.instances
        wait_until(lambda: number not in {lease.id for lease in leases()}, "the host is gone")
        assert "instance_crash" not in live.events()
        live.assert_nothing_lost()


def test_while_a_migration_overlaps_the_old_instance_serves_and_goes_on_without_its_copy():
    with live_run(rate=20) as live:
        live.deploy()
        live.testbed.advance_to(5)
        (leased,) = live.apply(LeaseHost(FLAVOR.name, "new"))
        live.advance_until(lambda: live.testbed.observe().hosts[leased.subject].up, 60)
        move = MigrateInstance("front-1", leased.subject, overlaps=True)
        (copy,) = live.apply(move)
        live.apply(StopInstance(copy.subject))
        live.advance_until_event("migration_undone", 60)
        observation = live.testbed.observe()
        assert not observation.instances["front-1"].stopping

        (copy,) = live.apply(move)
        assert live.testbed.observe().instances["front-1"].stopping
        live.advance_until(lambda: "front-1" not in live.testbed.observe().instances, 60)
        assert live.testbed.observe().instances[copy.subject].ready
        rows, _ = live.testbed._state.journal.read(0)
        ready = zip(rows["queue"]["operator"], rows["queue"]["ready_instances"], strict=True)
        assert {count for name, count in ready if name == FRONT} == {1}
        assert "instance_crash" not in live.events()
        live.assert_nothing_lost()


def test_a_run_may_be_faster_than_the_wall():
    with live_run(rate=10, time_scale=4) as live:
        live.deploy()
        began_s = time.monotonic()
        live.testbed.advance_to(40)
        took_s = time.monotonic() - began_s
        assert 10 <= took_s < 10 + 5 * crowding(), "forty seconds of the run"
        rows = live.testbed.take_measurements()
        assert set(rows["queue"]["time_s"]) <= {5.0 * turn for turn in range(1, 9)}
        assert sum(rows["arrival"]["published_items"]) == pytest.approx(400, abs=20)
        last_s = max(rows["processing_duration"]["time_s"])
        assert 30 < last_s < 40 + 4 * crowding(), "a reading takes its time, which counts fourfold"
        # What an item takes is not scaled: containers know nothing of it.
        assert min(rows["processing_duration"]["duration_ms"]) >= 5
        kill_container(live.run, "front-1", live.testbed._state.fleet.host("host-1").endpoint)
        live.advance_until_event("instance_crash", 15)
        live.apply(StartInstance(FRONT, "host-1"))
        live.assert_nothing_lost()


def test_who_works_all_the_time_is_busy_all_the_time_on_a_host_of_a_third_of_a_core():
    with live_run(rate=200, flavor=replace(FLAVOR, vcpus=0.35)) as live:
        live.deploy()
        live.testbed.advance_to(10)
        live.testbed.observe()
        live.testbed.advance_to(25)
        seen = live.testbed.observe()
        front = seen.operators[FRONT]
        (instance,) = seen.serving(FRONT)
        assert front.waiting_items > 500
        assert min(front.busy_share, front.busiest_share, instance.cpu_share) > 0.8
        assert 15 < front.busy_in_all_s <= seen.now_s
        time.sleep(2 * live.config.monitor_every_s + 1)
        live.testbed.advance_to(25 + live.config.monitor_every_s)
        assert live.testbed.observe().operators == {}, "nobody was there to read it"


def test_the_reaper_lists_dead_runs_and_removes_them_when_told():
    with live_run(rate=20) as live:
        live.deploy()
        provider = ReplayProcess(live.run).process
        lines: list[str] = []
        reap(remove=False, testbeds=["docker"], say=lines.append)
        assert f"docker: {live.run}: alive" in "\n".join(lines)

        heartbeat = run_folder(live.run) / HEARTBEAT
        long_ago_s = time.time() - DEAD_AFTER_S - 1
        os.utime(heartbeat, (long_ago_s, long_ago_s))
        (held,) = [resources for resources in find() if resources.run == live.run]
        assert set(held.holds) >= {"folder", "data provider", "vhost", "Redis user"}
        assert any(held.startswith("host ") for held in held.holds)
        assert reap(remove=False, testbeds=["docker"], say=lines.append) >= 1
        assert f"docker: {live.run}: dead" in "\n".join(lines)
        assert provider.alive, "without --remove it only lists"

        reap(remove=True, testbeds=["docker"], say=lines.append)
        assert not provider.alive
        assert leases_of(live.run) == []
        assert live.run not in vhosts(Services.find())
        assert live.run not in {resources.run for resources in find()}


SILENT_FOR_S = 10.0
"""Of the default calibration."""


def test_a_host_that_loses_power_ends_its_lease_and_loses_nothing():
    with live_run(rate=50) as live:
        live.deploy(hosts_wanted=2)
        live.testbed.advance_to(5)
        script(HOSTS, "crash", str(live.host_ids()["host-2"]))
        took_s = live.advance_until_event("host_lost", 30)
        assert took_s < SILENT_FOR_S + 8 * crowding()
        assert set(live.testbed.observe().hosts) == {"host-1"}
        assert {instance.host for instance in live.testbed.observe().instances.values()} == {
            "host-1"
        }
        live.testbed.advance_to(live.testbed.now_s + 5)
        leases = live.testbed.leases()
        assert leases["released"] == [False, True]
        assert 5 < leases["ended_s"][1] < leases["ended_s"][0]
        live.assert_nothing_lost()


def test_a_frozen_host_that_wakes_up_in_time_stays():
    with live_run(rate=50) as live:
        live.deploy(hosts_wanted=2)
        live.testbed.advance_to(5)
        number = str(live.host_ids()["host-2"])
        script(HOSTS, "freeze", number)
        live.advance_until_event("host_silent", 10)
        assert not live.testbed.observe().hosts["host-2"].up
        script(HOSTS, "thaw", number)
        live.advance_until_event("host_back", 10)
        live.testbed.advance_to(live.testbed.now_s + 5)
        assert set(live.testbed.observe().hosts) == {"host-1", "host-2"}
        live.assert_nothing_lost()
