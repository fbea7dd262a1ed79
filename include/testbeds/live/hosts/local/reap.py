"""Resources of runs on this machine: hosts, folders, data providers, vhosts, Redis users."""

from __future__ import annotations

from collections import defaultdict

import redis

from include.model.errors import SetupError, TestbedError
from include.testbeds.live import broker, shared_state
from include.testbeds.live.files import HEARTBEAT, ORIGIN, live_state, read_json, run_folder
from include.testbeds.live.give_back import give_back
from include.testbeds.live.hosts.local.hosts import LocalHosts, leases
from include.testbeds.live.replay import ReplayProcess
from include.testbeds.live.services import Services
from include.testbeds.reap import HeldResources, silent_s


def find(testbed: str = "docker") -> list[HeldResources]:
    """Every run of a testbed with resources here. Raises TestbedError if a service is down."""
    holds: defaultdict[str, list[str]] = defaultdict(list)
    for lease in leases():
        holds[lease.run].append(f"host {lease.id}")
    for folder in (live_state() / "runs").glob("*"):
        holds[folder.name].append("folder")
        if ReplayProcess(folder.name).alive:
            holds[folder.name].append("data provider")
    for name, what in _on_services():
        holds[name].append(what)
    return [
        HeldResources(run, tuple(held), silent_s(run_folder(run) / HEARTBEAT))
        for run, held in sorted(holds.items())
        if origin_of(run)["testbed"] == testbed
    ]


def give_back_run(run: str) -> None:
    """Give back a run's resources. Raises TestbedError naming those that remain."""
    give_back(run, LocalHosts(run))


def origin_of(run: str) -> dict[str, str]:
    """Origin of a run's hosts; this machine by default."""
    origin: dict[str, str] = read_json(run_folder(run) / ORIGIN) or {"testbed": "docker"}
    return origin


def _on_services() -> list[tuple[str, str]]:
    try:
        services = Services.find()
    except SetupError:
        return []  # never started, so no run has anything there
    try:
        users = shared_state.users(services)
    except redis.RedisError as error:
        raise TestbedError(f"Redis does not answer: {error}") from error
    holdings = [(name, "vhost") for name in broker.vhosts(services)]
    return holdings + [(name, "Redis user") for name in users]
