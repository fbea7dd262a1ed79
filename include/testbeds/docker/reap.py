"""Remove what dead runs have left: ``python -m include.testbeds.docker.reap [--remove]``.

A run is dead when nothing has looked after it for a while; a window's task looks every second. Only
what carries the id of a run is touched. Without ``--remove`` it only lists.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import redis

from include.model.errors import SetupError, TestbedError
from include.testbeds.docker import broker, hosts, shared
from include.testbeds.docker.files import HEARTBEAT, live_state, run_folder
from include.testbeds.docker.give_back import give_back
from include.testbeds.docker.replay import Replay
from include.testbeds.docker.services import Services

DEAD_AFTER_S = 600.0


@dataclass(frozen=True, slots=True)
class Found:
    """A run that holds something; ``silent_s`` is None when nobody ever looked after it."""

    run: str
    holds: tuple[str, ...]
    silent_s: float | None

    def dead(self, after_s: float) -> bool:
        """Whether nobody has looked after it for so long."""
        return self.silent_s is None or self.silent_s >= after_s


def find() -> list[Found]:
    """Every run that holds anything. Raises TestbedError when a service does not answer."""
    holds: defaultdict[str, list[str]] = defaultdict(list)
    for one in hosts.leases():
        holds[one.run].append(f"host {one.id}")
    for folder in (live_state() / "runs").glob("*"):
        holds[folder.name].append("folder")
        if Replay(folder.name).alive:
            holds[folder.name].append("data provider")
    try:
        services = Services.find()
    except SetupError:
        services = None
    if services:
        for name in broker.vhosts(services):
            holds[name].append("vhost")
        for name in shared.users(services):
            holds[name].append("Redis user")
    return [Found(run, tuple(held), _silent_s(run)) for run, held in sorted(holds.items())]


def _silent_s(run: str) -> float | None:
    try:
        return time.time() - (run_folder(run) / HEARTBEAT).stat().st_mtime
    except FileNotFoundError:
        return None


def main(arguments: Sequence[str]) -> int:
    """Returns 1 when something that should go is still there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--remove", action="store_true", help="remove instead of listing")
    parser.add_argument("--after-s", type=float, default=DEAD_AFTER_S, help="silent for so long")
    given = parser.parse_args(arguments)
    failed = False
    try:
        found = find()
    except (TestbedError, redis.RedisError) as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 (a command)
        return 1
    for one in found:
        dead = one.dead(given.after_s)
        silent = "never seen" if one.silent_s is None else f"silent for {one.silent_s:.0f} s"
        verdict = ("removing" if given.remove else "dead") if dead else "alive"
        print(f"{one.run}: {verdict}, {silent}: {', '.join(one.holds)}", flush=True)  # noqa: T201
        if dead and given.remove:
            try:
                give_back(one.run)
            except TestbedError as error:
                failed = True
                print(f"error: {error}", file=sys.stderr)  # noqa: T201
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
