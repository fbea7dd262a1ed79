"""What can happen to a live run: instances, hosts, daemons and services die while it goes on.

Each fault is inflicted on a run that is calm, must be noticed (its events stand in the rows), and
the run must become calm again before the next one.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle

from pydantic import TypeAdapter

from include.testbeds.live.files import read_json, run_folder
from include.testbeds.live.fleet import LiveFleet, LiveHost, LiveInstance
from include.testbeds.live.hosts.local.hosts import HostLease, leases_of
from include.testbeds.live.record import Journal
from include.testbeds.live.replay import ReplayProcess
from tests.live.world import HOSTS, SERVICES, kill_container, script, wait_until

GIVE_UP_S = 150
AWAY_S = 6.0
"""How long a service stays away: longer than a monitoring period."""


class Victim:
    """A run, seen from outside: its files tell what there is to harm, and what it has noticed."""

    def __init__(self, run: str) -> None:
        self.run = run

    @property
    def fleet(self) -> LiveFleet:
        """Hosts and instances as of the last change."""
        plain = read_json(run_folder(self.run) / "state.json")["fleet"]
        return TypeAdapter(LiveFleet).validate_python(plain)

    def instance(self, operator: str) -> tuple[LiveInstance, LiveHost]:
        """One that works, and where."""
        fleet = self.fleet
        instance = next(
            instance for instance in fleet.instances.values() if instance.operator == operator
        )
        return instance, fleet.hosts[instance.host]

    def events(self) -> Counter[str]:
        """How often what has been noticed."""
        rows, _ = Journal(run_folder(self.run) / "journal.jsonl").read(0)
        return Counter(rows.get("event", {"event": []})["event"])

    def wait_for(self, event: str, since: Counter[str]) -> None:
        """Return when an event has happened once more."""
        wait_until(lambda: self.events()[event] > since[event], event, GIVE_UP_S)

    @property
    def calm(self) -> bool:
        """Whether everything is up, at most one host of each operator works, and little waits."""
        plain = read_json(run_folder(self.run) / "state.json")
        fleet = self.fleet
        instances = list(fleet.instances.values())
        return (
            not plain["reading"]["missed"]
            and sum(plain["reading"]["waiting"].values()) < 100
            and all(host.up and not host.releasing for host in fleet.leased())
            and all(
                instance.first_item_s is not None and not instance.stopping
                for instance in instances
            )
            and sorted(instance.operator for instance in instances) == ["back", "front"]
            and ReplayProcess(self.run).alive
        )


def kill_an_instance(victim: Victim) -> None:
    instance, host = victim.instance("front")
    kill_container(victim.run, instance.name, host.endpoint)


def cut_power_without_a_registry(victim: Victim) -> None:
    """The host that takes its place has nowhere to get its image from, for a while."""
    since = victim.events()
    script(SERVICES, "crash", "registry")
    try:
        script(HOSTS, "crash", str(victim.instance("back")[1].id))
        victim.wait_for("instance_start_retried", since)
    finally:
        script(SERVICES, "up", "registry")


def kill_a_daemon_and_the_boot_of_its_successor(victim: Victim) -> None:
    """Containers of the host go on without their daemon, until its lease ends."""
    before = leases_of(victim.run)  # numbers are given anew, processes are not
    script(HOSTS, "crash-daemon", str(victim.instance("front")[1].id))

    def booting() -> HostLease | None:
        new = (lease for lease in leases_of(victim.run) if lease not in before)
        return next((lease for lease in new if lease.boot.alive), None)

    lease = wait_until(booting, "another host is leased", GIVE_UP_S)
    lease.boot.end(first=signal.SIGKILL, kill_after_s=0)


def freeze_a_host_for_a_while(victim: Victim) -> None:
    """On a busy machine it may be given up before it thaws."""
    number, since = str(victim.instance("back")[1].id), victim.events()
    script(HOSTS, "freeze", number)
    victim.wait_for("host_silent", since)
    with suppress(AssertionError):  # it is gone
        script(HOSTS, "thaw", number)


def restart_the_broker(victim: Victim) -> None:
    restart("rabbit")


def restart_redis(victim: Victim) -> None:
    restart("redis")


def restart(service: str) -> None:
    script(SERVICES, "crash", service)
    time.sleep(AWAY_S)
    script(SERVICES, "up", service)


def kill_the_provider(victim: Victim) -> None:
    process = ReplayProcess(victim.run).process
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)


FAULTS: dict[str, tuple[Callable[[Victim], None], tuple[str, ...]]] = {
    "SIGKILL to an instance": (kill_an_instance, ("instance_crash",)),
    "registry killed, then a host without power": (
        cut_power_without_a_registry,
        ("host_lost", "instance_start_retried"),
    ),
    "daemon killed, then the boot of the next host": (
        kill_a_daemon_and_the_boot_of_its_successor,
        ("host_silent", "host_lost", "host_boot_failure"),
    ),
    "host frozen, thawed once it was noticed": (
        freeze_a_host_for_a_while,
        ("host_silent",),
    ),
    "broker killed, back after 6 s": (restart_the_broker, ("monitoring_gap",)),
    "Redis killed, back after 6 s": (restart_redis, ("monitoring_gap",)),
    "SIGKILL to the data provider": (kill_the_provider, ("provider_restarted",)),
}
"""By name: what is done, and the events by which it has to be noticed."""


@dataclass(frozen=True, slots=True)
class Inflicted:
    """A fault that was survived; seconds of the wall since it was inflicted."""

    name: str
    noticed_s: float
    calm_s: float


def inflict(name: str, victim: Victim) -> Inflicted:
    """One fault on a run that is calm, until it is calm again."""
    work, expected = FAULTS[name]
    wait_until(lambda: victim.calm, f"calm before: {name}", GIVE_UP_S)
    since, began_s = victim.events(), time.monotonic()
    work(victim)
    for event in expected:
        victim.wait_for(event, since)
    noticed_s = time.monotonic() - began_s
    wait_until(lambda: victim.calm, f"calm after: {name}", GIVE_UP_S)
    return Inflicted(name, noticed_s, time.monotonic() - began_s)


def inflict_while(victim: Victim, goes_on: Callable[[], bool]) -> Iterator[Inflicted]:
    """All faults in turn, again and again while there is time to recover from one."""
    for name in cycle(FAULTS):
        if not goes_on():
            return
        yield inflict(name, victim)
