"""A run on a live testbed, for tests: two generic operators in a row, and ways to harm it."""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from include.model.decision import Action, LeaseHost, Outcome, StartInstance
from include.model.host import HostFlavor
from include.testbeds import TESTBEDS
from include.testbeds.base import TestbedConfig
from include.testbeds.live.hosts.local.hosts import leases_of
from include.testbeds.live.replay import ReplayProcess
from include.testbeds.live.services import Services
from include.testbeds.live.shared_state import SharedState
from include.testbeds.live.testbed import LiveTestbed
from include.testing.builders import a_topology, an_operator, decision
from tests.builders import a_config
from tests.live.unprocessed import unprocessed, unprocessed_of_source
from tests.live.world import crowding, wait_until

FLAVOR = HostFlavor(name="one-core", vcpus=1, memory_mb=1024, usable_memory_share=0.9)
FRONT, BACK = "front", "back"
MONITOR_S = 5.0


@dataclass
class LiveRun:
    """A testbed of this kind (``docker`` or ``openstack``) and its run."""

    config: TestbedConfig
    testbed: Any
    kind: str = "docker"

    @property
    def run(self) -> str:
        return self.config.run

    def again(self) -> Any:
        """Another process's testbed of the same run."""
        return TESTBEDS[self.kind].build(self.config)

    def deploy(self, hosts_wanted: int = 1) -> None:
        """Every operator on every host."""
        names = [f"h{i}" for i in range(hosts_wanted)]
        leases = [LeaseHost(FLAVOR.name, name) for name in names]
        starts = [StartInstance(op, name) for name in names for op in (FRONT, BACK)]
        self.testbed.deploy(decision(*leases, *starts))
        self.testbed.take_measurements()

    def apply(self, *actions: Action) -> tuple[Outcome, ...]:
        outcomes = self.testbed.apply(decision(*actions))
        assert all(outcome.accepted for outcome in outcomes), outcomes
        return outcomes

    def host_ids(self) -> dict[str, int]:
        """Numbers of the machine's hosts by name in the run."""
        return {host.name: int(host.id) for host in self.testbed._state.fleet.leased()}

    def events(self) -> dict[str, list[str]]:
        """Subjects by event, of everything that has happened so far."""
        rows, _ = self.testbed._state.journal.read(0)
        subjects: dict[str, list[str]] = {}
        columns = rows.get("event", {"event": [], "subject": []})
        for event, subject in zip(columns["event"], columns["subject"], strict=True):
            subjects.setdefault(event, []).append(subject)
        return subjects

    def advance_until(self, condition: Callable[[], Any], give_up_s: float) -> float:
        """Go on until a condition holds; returns how long it took on the wall."""
        began_s = time.monotonic()
        while not condition():
            assert time.monotonic() - began_s < give_up_s * crowding(), self.events()
            self.testbed.advance_to(self.testbed.now_s + 1)
        return time.monotonic() - began_s

    def advance_until_event(self, event: str, give_up_s: float) -> float:
        """Go on until an event stands in the rows; returns how long it took on the wall."""
        return self.advance_until(lambda: event in self.events(), give_up_s)

    def assert_nothing_lost(self) -> None:
        """Stop the sources; then both operators have processed every item that was ever sent."""
        shared = SharedState(Services.find(), self.run).redis
        provider = ReplayProcess(self.run).process
        assert provider is not None
        os.kill(provider.pid, signal.SIGTERM)
        wait_until(lambda: not provider.alive, "the data provider ends")
        items = int(shared.hget(f"{self.run}:sent:S1", "count"))
        assert items > 100

        def lost() -> list[Any]:
            of_source = unprocessed_of_source(shared, self.run, "S1", FRONT)
            return [of_source, unprocessed(shared, self.run)]

        wait_until(lambda: lost() == [[], []], "every item processed", 60 * crowding())
        paths = (f"{FRONT}:S1", f"{BACK}:S1>{FRONT}")
        # What was sent and not noted when the data provider was killed was sent again.
        assert [shared.bitcount(f"{self.run}:done:{path}") for path in paths] == [items, items]


def config_of(
    run: str, rate: float, flavor: HostFlavor = FLAVOR, cpu_cores: float = 0.15, **calibration: Any
) -> TestbedConfig:
    """A run of two small operators, longer than a test needs."""
    operators = (
        an_operator(name, service_ms=5.0, cpu_cores=cpu_cores, memory_mb=64.0)
        for name in (FRONT, BACK)
    )
    return a_config(
        a_topology(*operators),
        rate,
        flavor=flavor,
        max_hosts=3,
        btu_s=60.0,
        seed=1,
        monitor_every_s=MONITOR_S,
        calibration=calibration,
        run=run,
        experiment="tests",
    )


@contextmanager
def live_run(rate: float, kind: str = "docker", **options: Any) -> Iterator[LiveRun]:
    """A run of its own with the options of :func:`config_of`, given back afterwards."""
    config = config_of(f"test-{uuid.uuid4().hex[:8]}", rate, **options)
    testbed = TESTBEDS[kind].build(config)
    assert isinstance(testbed, LiveTestbed)
    try:
        yield LiveRun(config, testbed, kind)
    finally:
        testbed.give_back()
        assert leases_of(config.run) == []
