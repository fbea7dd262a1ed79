"""What a controller is told of a host that fails; test_faults.py has everything that can fail."""

from __future__ import annotations

import pytest

from tests.live.live_run import live_run
from tests.live.world import HOSTS, crowding, script

pytestmark = pytest.mark.live

SILENT_FOR_S = 10.0
"""Of the default calibration."""


@pytest.fixture(autouse=True)
def _images(images):
    """They have to be there."""


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
