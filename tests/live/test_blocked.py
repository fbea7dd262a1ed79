"""A broker that blocks publishers, as its disk is nearly full or its memory used up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from include.model.errors import TestbedError, TestbedNotReady
from include.testbeds.live import monitor
from include.testbeds.live.broker import why_blocked
from include.testbeds.live.hosts.local.hosts import leases_of
from include.testbeds.live.services import Services
from tests.live.live_run import live_run
from tests.live.world import SERVICES, script, wait_until

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("images")]

DISK = ("set_disk_free_limit", "9000GB"), ("set_disk_free_limit", "1GB")
MEMORY = (
    ("set_vm_memory_high_watermark", "absolute", "1MB"),
    ("set_vm_memory_high_watermark", "absolute", "1GB"),
)


@contextmanager
def alarm(limits: tuple[tuple[str, ...], tuple[str, ...]]) -> Iterator[None]:
    """The broker's alarm, by a limit that it has passed; then its own limit."""
    raised, usual = limits
    script(SERVICES, "ctl", *raised)
    try:
        yield
    finally:
        script(SERVICES, "ctl", *usual)
        wait_until(lambda: not why_blocked(Services.find()), "the alarm ends")


@pytest.mark.parametrize(
    ("limits", "cause"),
    [(DISK, "disk has less than 9000000 MB free: free some"), (MEMORY, "more than 1 MB of memory")],
)
def test_a_run_on_a_broker_that_blocks_publishers_leases_nothing(limits, cause):
    with alarm(limits), live_run(rate=20) as live:
        wait_until(lambda: why_blocked(Services.find()), "the alarm is told")
        with pytest.raises(TestbedNotReady, match=f"RabbitMQ blocks publishers.*{cause}"):
            live.deploy()
        assert leases_of(live.run) == []


def test_a_broker_that_blocks_publishers_for_long_ends_the_run(monkeypatch):
    with live_run(rate=20) as live:
        live.deploy()
        with alarm(DISK):
            live.advance_until_event("publishers_blocked", 30)
            live.testbed.advance_to(live.testbed.now_s + 5)  # not yet
            monkeypatch.setattr(monitor, "BLOCKED_FOR_S", 5.0)
            waited = "waited for .* s: RabbitMQ blocks publishers, because its disk"
            with pytest.raises(TestbedError, match=waited):
                live.testbed.advance_to(live.testbed.now_s + 30)
        live.advance_until_event("publishers_back", 30)
        assert live.events()["publishers_blocked"] == ["broker"]
        live.assert_nothing_lost()
