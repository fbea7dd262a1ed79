"""What a run leaves whose processes were all killed, and that the reaper finds and removes it."""

from __future__ import annotations

import os
import time

import pytest

from include.testbeds.live.broker import vhosts
from include.testbeds.live.files import HEARTBEAT, run_folder
from include.testbeds.live.hosts.local.hosts import leases_of
from include.testbeds.live.hosts.local.reap import find
from include.testbeds.live.replay import ReplayProcess
from include.testbeds.live.services import Services
from include.testbeds.reap import DEAD_AFTER_S, reap
from tests.live.live_run import live_run

pytestmark = pytest.mark.live


def test_the_reaper_lists_dead_runs_and_removes_them_when_told(images):
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
