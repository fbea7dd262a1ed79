"""A run on the real broker and the real Redis of `infra/live`, for tests: made, used, removed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import docker  # type: ignore[import-untyped]

from include.testbeds.live.broker import Broker
from include.testbeds.live.engine import API_VERSION, INSTANCE_LABEL, RUN_LABEL
from include.testbeds.live.operators import wire
from include.testbeds.live.operators.settings import Settings, Target
from include.testbeds.live.services import Services
from include.testbeds.live.shared_state import SharedState

REPOSITORY = Path(__file__).resolve().parents[2]
SERVICES = REPOSITORY / "infra" / "live" / "services.sh"
HOSTS = REPOSITORY / "infra" / "live" / "hosts.sh"
IMAGES = REPOSITORY / "infra" / "live" / "images.sh"
GIVE_UP_S = 60


def script(path: Path, *arguments: str) -> str:
    """What a script of `infra/live` prints; raises with its complaint when it fails."""
    done = subprocess.run([path, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def services_are_up() -> bool:
    """Whether all of them run."""
    states = subprocess.run([SERVICES, "status"], capture_output=True, text=True, check=False)
    return not states.returncode and "down" not in states.stdout


def crowding() -> float:
    """How many processes want each core, at least 1: how much longer everything may take."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def wait_until(
    condition: Callable[[], Any], what: str | Callable[[], object], give_up_s: float = GIVE_UP_S
) -> Any:
    """The first true answer; asks ten times a second, for longer on a crowded machine."""
    end_s = time.monotonic() + give_up_s * min(3.0, crowding())
    while time.monotonic() < end_s:
        if answer := condition():
            return answer
        time.sleep(0.1)
    raise AssertionError(f"not within {give_up_s} s: {what() if callable(what) else what}")


def kill_container(run: str, instance: str, endpoint: str) -> None:
    """SIGKILL to an instance on a host, as nobody would stop it."""
    with closing(docker.DockerClient(endpoint, version=API_VERSION, timeout=10)) as client:
        wanted = [f"{RUN_LABEL}={run}", f"{INSTANCE_LABEL}={instance}"]
        for container in client.containers.list(filters={"label": wanted}):
            container.kill("SIGKILL")


@dataclass
class World:
    """A vhost, a user of broker and Redis, queues and processes that work on them."""

    run: str = field(default_factory=lambda: f"test-{uuid.uuid4().hex[:8]}")
    services: Services = field(default_factory=Services.find)
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="tidebench-")))
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @cached_property
    def broker(self) -> Broker:
        """The run's vhost."""
        return Broker(self.services, self.run)

    @cached_property
    def shared(self) -> SharedState:
        """The run's keys."""
        return SharedState(self.services, self.run)

    @property
    def redis(self) -> Any:
        """The administrator's client."""
        return self.shared.redis

    def make(self, queues: Sequence[str]) -> None:
        """Create vhost, users, exchange and queues, as the testbed does."""
        self.broker.declare(queues)
        self.shared.grant()

    def remove(self) -> None:
        """End the processes and delete everything of the run."""
        for process in self.processes:
            process.kill()
            process.wait()
        self.broker.remove()
        self.shared.remove()
        self.redis.close()
        shutil.rmtree(self.folder)

    def channel(self) -> AbstractContextManager[Any]:
        """A channel of the run's user."""
        return self.broker.channel()

    def publish(self, queue: str, source: str, bodies: Sequence[bytes], first: int = 0) -> None:
        """Items of a source, numbered from ``first`` on, into a queue; returns when they are in."""
        with self.channel() as channel:
            for number, body in enumerate(bodies, start=first):
                now = wire.now_us()
                props = wire.properties(wire.ItemId(source, number), now, now)
                channel.basic_publish(wire.EXCHANGE, queue, body, props)
            channel.queue_declare(queue, passive=True)  # answered after everything before

    def depth(self, queue: str) -> int:
        """Items that wait in a queue."""
        with self.channel() as channel:
            return int(channel.queue_declare(queue, passive=True).method.message_count)

    def take_all(self, queue: str) -> list[tuple[str, bytes]]:
        """Id and body of every item in a queue, which is empty afterwards."""
        taken = []
        with self.channel() as channel:
            while True:
                method, props, body = channel.basic_get(queue, auto_ack=True)
                if method is None:
                    return taken
                taken.append((props.message_id, body))

    def settings(self, operator: str, instance: str = "1", **more: Any) -> Settings:
        """The settings of an instance; ``targets`` are names or targets."""
        targets = tuple(
            Target(target) if isinstance(target, str) else target
            for target in more.pop("targets", ())
        )
        to = self.services
        urls = {"amqp_url": to.amqp_url(self.run), "redis_url": to.redis_url(self.run)}
        named = {"operator": operator, "instance": instance, "run": self.run, "targets": targets}
        return Settings(**(urls | named | {"heartbeat_s": 5} | more))

    def start(self, operator: str, instance: str = "1", **more: Any) -> subprocess.Popen[bytes]:
        """An instance as a process of this machine, without container."""
        file = self.folder / f"{operator}-{instance}.json"
        file.write_text(self.settings(operator, instance, **more).to_json())
        command = [sys.executable, "-m", "include.testbeds.live.operators", file]
        with self.log(operator, instance).open("ab") as log:
            process = subprocess.Popen(command, cwd=REPOSITORY, stdout=log)
        self.processes.append(process)
        return process

    def log(self, operator: str, instance: str = "1") -> Path:
        """What an instance has printed."""
        return self.folder / f"{operator}-{instance}.log"

    def events(self, operator: str, instance: str = "1") -> list[str]:
        """Names of the events that an instance has logged so far."""
        lines = self.log(operator, instance).read_text().splitlines()
        return [json.loads(line)["event"] for line in lines]


@contextmanager
def world(*queues: str) -> Iterator[World]:
    """A run with queues, removed afterwards."""
    made = World()
    made.make(queues)
    try:
        yield made
    finally:
        made.remove()
