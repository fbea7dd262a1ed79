"""Gives back all resources of a run, from any process and in any state."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import redis

from include.model.errors import SetupError, TestbedError, TidebenchError, command
from include.testbeds.live.broker import Broker
from include.testbeds.live.files import run_folder
from include.testbeds.live.hosts.provider import HostProvider
from include.testbeds.live.replay import ReplayProcess
from include.testbeds.live.services import Services
from include.testbeds.live.shared_state import SharedState

AT_ONCE = 8
"""Number of hosts removed in parallel."""


def give_back(run: str, hosts: HostProvider) -> None:
    """Stop the data provider, end all hosts, and remove queues, users, keys and the folder.

    Safe at any time and more than once. Raises TestbedError naming what remains, after trying
    everything, and keeps the folder for the next attempt.
    """
    problems: list[str] = []
    _try(ReplayProcess(run).end, "data provider", problems)
    leased: list[str] = []
    _try(lambda: leased.extend(hosts.leased()), "hosts", problems)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for host in leased:
            pool.submit(_try, partial(hosts.give_back, host), f"host {host}", problems)
    try:
        services = Services.find()
    except SetupError:
        pass  # never started, so the run has nothing there
    else:
        _try(Broker(services, run).remove, "vhost and user of the broker", problems)
        _try(SharedState(services, run).remove, "user and keys of Redis", problems)
    if problems:
        listed = "\n".join(f"  - {problem}" for problem in problems)
        raise TestbedError(
            f"of run {run} this is still there; start what is down and release it again, or "
            f"`{command('reap', '--remove')}` later:\n{listed}"
        )
    shutil.rmtree(run_folder(run), ignore_errors=True)


def _try(work: Callable[[], object], what: str, problems: list[str]) -> None:
    try:
        work()
    except (TidebenchError, redis.RedisError, OSError) as error:
        problems.append(f"{what}: {error}")
    except Exception as error:  # an answer nobody expected: without a problem the folder would go
        problems.append(f"{what}: {type(error).__name__}: {error}")
