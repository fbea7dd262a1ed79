"""A host's Docker Engine API, with a time-out for every call."""

from __future__ import annotations

import io
import json
import tarfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import docker  # type: ignore[import-untyped]
import docker.errors  # type: ignore[import-untyped]
import requests

from include.testbeds.live.hosts.provider import Usage
from include.testbeds.live.operators.settings import FILE, Settings

API_VERSION = "1.41"
"""Of Debian's dockerd 20.10. Fixed, because asking for it takes another call."""
PING_S = 3.0
LAST_LINES = 50
WORK_S = 120.0
USER_ID = 10001
"""User id in the images."""
TROUBLE = (docker.errors.DockerException, requests.RequestException, OSError)
"""Exceptions in a client if the host is gone, frozen or broken."""
RUN_LABEL, OPERATOR_LABEL = "tidebench.run", "tidebench.operator"
INSTANCE_LABEL, EXPERIMENT_LABEL = "tidebench.instance", "tidebench.experiment"


@dataclass(frozen=True, slots=True)
class Container:
    """A container of a run. ``state`` is Docker's: created, running, exited, ..."""

    id: str
    instance: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSpec:
    """Parameters of an instance's container."""

    name: str
    image: str
    settings: Settings
    labels: Mapping[str, str]
    cpu_shares: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class StartedContainer:
    """A started container. ``pull_s`` is 0 if the host had the image."""

    container: str
    image: str
    pull_s: float


class Engine:
    """The daemon of one host."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint

    def containers(self, run: str) -> dict[str, Container]:
        """Containers of a run by instance; also the host's sign of life."""
        with self._client(PING_S) as client:
            label = f"{RUN_LABEL}={run}"
            listed = client.containers(all=True, filters={"label": label})
        containers = (
            Container(entry["Id"], entry["Labels"][INSTANCE_LABEL], entry["State"])
            for entry in listed
        )
        return {container.instance: container for container in containers}

    def answers(self) -> bool:
        try:
            with self._client(PING_S) as client:
                return bool(client.ping())
        except TROUBLE:
            return False

    def usage(self, run: str) -> dict[str, Usage]:
        """CPU time and memory of the running containers of a run, by their ids."""
        with self._client(PING_S) as client:
            listed = client.containers(filters={"label": f"{RUN_LABEL}={run}"})
            return {
                container["Id"]: _usage(client.stats(container["Id"], stream=False, one_shot=True))
                for container in listed
            }

    def has_image(self, image: str) -> bool:
        """Whether the host has an image, given by address with digest."""
        with self._client(WORK_S) as client:
            try:
                client.inspect_image(image)
            except docker.errors.ImageNotFound:
                return False
        return True

    def pull(self, image: str) -> None:
        """Fetch an image from the registry. Raises one of TROUBLE."""
        name, _, digest = image.partition("@")
        with self._client(WORK_S) as client:
            client.pull(name, tag=digest)
            client.inspect_image(image)  # raises if the pull failed, unlike the pull

    def launch(self, spec: ContainerSpec) -> StartedContainer:
        """Start a container, after fetching its image if it is not here. Raises one of TROUBLE."""
        began_s, pull_s = time.monotonic(), 0.0
        if not self.has_image(spec.image):
            self.pull(spec.image)
            pull_s = time.monotonic() - began_s
        return StartedContainer(self.start(spec), spec.image, pull_s)

    def start(self, spec: ContainerSpec) -> str:
        """Create a container, copy its settings, start it; returns its id.

        Removes the container of an interrupted attempt first.
        """
        with self._client(WORK_S) as client:
            with suppress(docker.errors.NotFound):
                client.remove_container(spec.name, force=True)
            limits = client.create_host_config(
                cpu_shares=spec.cpu_shares, mem_limit=spec.memory_bytes
            )
            made = client.create_container(
                spec.image,
                name=spec.name,
                labels=dict(spec.labels),
                host_config=limits,
            )["Id"]
            client.put_archive(made, str(FILE.parent), archive(spec.settings))
            client.start(made)
        return str(made)

    def signal(self, container: str, name: str) -> None:
        """Send a signal to a container, unless it has ended."""
        with self._client(PING_S) as client:
            try:
                client.kill(container, name)
            except docker.errors.APIError as error:
                if error.status_code not in (404, 409):
                    raise

    def remove(self, container: str) -> None:
        """Delete a container, running or not."""
        with self._client(WORK_S) as client, suppress(docker.errors.NotFound):
            client.remove_container(container, force=True)

    def logged_events(self, container: str) -> list[dict[str, Any]]:
        """The last events in an instance's log, with ``at_us`` in microseconds since 1970."""
        with self._client(PING_S) as client:
            text = client.logs(container, stderr=False, tail=LAST_LINES)
        events = []
        for line in text.splitlines():
            try:
                event = json.loads(line)
                at = datetime.fromisoformat(event["time"])
                events.append({**event, "at_us": round(at.timestamp() * 1e6)})
            except (ValueError, KeyError, TypeError):
                continue  # a truncated line
        return events

    def why_ended(self, container: str) -> str:
        """Sentence with the exit code of a container."""
        with self._client(PING_S) as client:
            state = client.inspect_container(container)["State"]
        reason = ", out of memory" if state["OOMKilled"] else ""
        return f"exit code {state['ExitCode']}{reason}"

    @contextmanager
    def _client(self, timeout_s: float) -> Iterator[Any]:
        client = docker.APIClient(self._endpoint, version=API_VERSION, timeout=timeout_s)
        client.trust_env = False  # proxies of the environment cannot reach the bridge
        try:
            yield client
        finally:
            client.close()


def _usage(stats: Mapping[str, Any]) -> Usage:
    """CPU time, and memory without the reclaimable file cache."""
    memory = stats["memory_stats"]
    details = memory.get("stats", {})
    cached = details.get("total_inactive_file", details.get("inactive_file", 0))
    return Usage(
        stats["cpu_stats"]["cpu_usage"]["total_usage"] / 1e9,
        max(0, memory.get("usage", 0) - cached) / 2**20,
    )


def archive(settings: Settings) -> bytes:
    """A tar file with the settings, readable only by the image's user."""
    body = settings.to_json().encode()
    entry = tarfile.TarInfo(FILE.name)
    entry.size, entry.mode, entry.uid, entry.gid = len(body), 0o400, USER_ID, USER_ID
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as file:
        file.addfile(entry, io.BytesIO(body))
    return buffer.getvalue()
