"""What live tests need, or the reason why they are skipped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

from tests.live.world import HOSTS, IMAGES, SERVICES, script, services_are_up

COMMANDS = ("redis-server", "rabbitmqctl", "docker-registry", "dockerd", "buildah", "debootstrap")


def why_not() -> str:
    """Why nothing can be started on this machine; empty when it can."""
    if os.geteuid() != 0:
        return "live tests make network namespaces and cgroups, which needs root"
    path = os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"])
    missing = [name for name in COMMANDS if not shutil.which(name, path=path)]
    if missing:
        return f"no {', '.join(missing)}; infra/live/services.sh packages installs them"
    if not os.path.isdir("/sys/fs/cgroup/memory"):  # noqa: PTH112 (a kernel's folder)
        return "Docker hosts need the controllers of cgroup v1"
    return ""


@pytest.fixture(scope="session")
def at() -> Iterator[None]:
    """The services: those that run, or else started here and stopped afterwards."""
    if reason := why_not():
        pytest.skip(reason)
    running = services_are_up()
    if not running:
        script(SERVICES, "up")
    yield
    if not running:
        script(SERVICES, "down")


@pytest.fixture(scope="session")
def images(at: None) -> str:
    """The images of the operators, built where they are not; the path of images.json."""
    script(IMAGES, "up")
    return script(IMAGES, "env").strip()


@pytest.fixture(scope="session")
def docker_host(at: None) -> Iterator[str]:
    """A host of its own with one core, removed afterwards: its endpoint."""
    identity = "240"
    script(HOSTS, "add", identity, "1.0", "1g")
    addresses = dict(line.split("=", 1) for line in script(HOSTS, "env").split())
    yield addresses[identity]
    script(HOSTS, "rm", identity)
