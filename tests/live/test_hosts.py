"""Docker hosts on this machine: every way to fail, every way back, and nothing left behind."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
import requests

from tests.live.conftest import why_not
from tests.live.world import HOSTS, crowding, wait_until

pytestmark = pytest.mark.live

PREFIX, SUBNET = "tbt", "10.79.13"


@pytest.fixture(scope="module")
def hosts():
    """`hosts.sh` with state, names and addresses of its own; everything is removed afterwards."""
    if reason := why_not():
        pytest.skip(reason)
    folder = tempfile.mkdtemp(prefix="tb-", dir="/var/tmp")  # short: sockets lie below it
    settings = {"STATE": folder, "PREFIX": PREFIX, "SUBNET": SUBNET, "MEMORY": "512m"}
    environment = os.environ | {f"TIDEBENCH_LIVE_{key}": value for key, value in settings.items()}

    def run(*arguments, check=True):
        done = subprocess.run(
            [HOSTS, *arguments], env=environment, capture_output=True, text=True, check=False
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done.stdout if check else done.stderr

    run.state = Path(folder) / "hosts"
    run("up", "2")
    yield run
    run("down")
    assert left_behind(folder) == []
    os.rmdir(folder)  # noqa: PTH106 (fails when anything is left)


def left_behind(folder):
    """What of the hosts is still in the kernel."""
    mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if folder in line]
    groups = [str(path) for path in Path("/sys/fs/cgroup").glob(f"*/{PREFIX}")]
    spaces = [path.name for path in Path("/run/netns").glob(f"{PREFIX}*")]
    links = [path.name for path in Path("/sys/class/net").glob(f"{PREFIX}*")]
    return mounts + groups + spaces + links + processes(folder)


def processes(folder):
    """Command lines that name the folder of the hosts; those of zombies are empty."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # it ended meanwhile
    # Deleting the stores goes on in the background for a moment.
    return [line for line in lines if folder in line and not line.startswith("rm ")]


def states(hosts):
    rows = [line.split() for line in hosts("status").splitlines()[1:]]
    return {row[0]: row[4] for row in rows}


def ping(number):
    """How a client finds a host: answers, refuses (nobody there) or hangs (no connection)."""
    session = requests.Session()
    session.trust_env = False
    try:
        return session.get(f"http://{SUBNET}.{10 + number}:2375/_ping", timeout=1).text
    except requests.Timeout:
        return "hangs"
    except requests.ConnectionError:
        return "refuses"


def test_hosts_are_up_and_say_their_true_size(hosts):
    assert states(hosts) == {"1": "up", "2": "up"}
    assert hosts("env").split() == [
        f"{number}=tcp://{SUBNET}.{10 + number}:2375" for number in (1, 2)
    ]
    session = requests.Session()
    session.trust_env = False
    info = session.get(f"http://{SUBNET}.11:2375/info", timeout=10).json()
    assert set(info["Labels"]) >= {"host.cpu=0.5", f"host.memory={512 * 2**20}"}


@pytest.mark.parametrize(
    ("failure", "looks", "state"),
    [("crash", "hangs", "down"), ("stop", "hangs", "down"), ("freeze", "hangs", "silent")],
)
def test_a_host_fails_alone_and_comes_back(hosts, failure, looks, state):
    hosts(failure, "1")
    assert ping(1) == looks
    assert states(hosts) == {"1": state, "2": "up"}
    hosts("thaw" if failure == "freeze" else "start", "1")
    wait_until(lambda: ping(1) == "OK", "the host is back")
    assert states(hosts) == {"1": "up", "2": "up"}


def test_a_killed_daemon_is_noticed_at_once_and_the_host_can_be_stopped(hosts):
    hosts("crash-daemon", "1")
    wait_until(lambda: ping(1) == "refuses", "the daemon is gone")
    assert "no dockerd of host 1 runs" in hosts("crash-daemon", "1", check=False)
    hosts("stop", "1")
    hosts("start", "1")
    assert ping(1) == "OK"


def test_a_frozen_host_can_be_removed_and_made_anew(hosts):
    hosts("freeze", "2")
    hosts("rm", "2")
    assert states(hosts) == {"1": "up"}
    began_s = time.monotonic()
    hosts("add", "2", "0.25", "256m")
    assert ping(2) == "OK"  # under the same address at once
    assert time.monotonic() - began_s < 30 * crowding()
    assert states(hosts) == {"1": "up", "2": "up"}


def test_a_host_whose_boot_was_killed_before_it_had_anything_can_be_removed(hosts):
    folder = hosts.state / "3"
    folder.mkdir()  # the first thing that a boot makes
    hosts("rm", "3")
    assert not folder.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("add", "1"), "there is a host 1 already"),
        (("add", "0"), "the id of a host is 1 to 240"),
        (("start", "1"), "is running; stop or crash it first"),
        (("crash", "7"), "there is no host 7; there are: 1 2"),
    ],
)
def test_what_cannot_be_done_is_said(hosts, arguments, message):
    assert message in hosts(*arguments, check=False)
