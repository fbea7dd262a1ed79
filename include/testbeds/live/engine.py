"""The Docker Engine API of a host, as far as a testbed needs it; every call has a time-out."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import docker  # type: ignore[import-untyped]
import docker.errors  # type: ignore[import-untyped]
import requests

from include.testbeds.live.hosts.provider import Usage

API_VERSION = "1.41"
"""Of dockerd 20.10, Debian's. Named, because asking for it is a call of its own."""
PING_S = 3.0
WORK_S = 120.0
SECRETS_FOLDER, SECRETS_FILE = "/run/tidebench", "secrets.json"
USER_ID = 10001
"""The user of the images."""
TROUBLE = (docker.errors.DockerException, requests.RequestException, OSError)
"""What a host that is gone, frozen or out of order does to a client."""
RUN_LABEL, OPERATOR_LABEL = "tidebench.run", "tidebench.operator"
INSTANCE_LABEL, EXPERIMENT_LABEL = "tidebench.instance", "tidebench.experiment"


@dataclass(frozen=True, slots=True)
class Container:
    """A container of a run; ``state`` in Docker's words: created, running, exited, ..."""

    id: str
    instance: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSpec:
    """An instance to start."""

    name: str
    image: str
    environment: Mapping[str, str]
    secrets: Mapping[str, str]
    labels: Mapping[str, str]
    cpu_shares: int
    memory_bytes: int


class Engine:
    """The daemon of one host."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint

    def containers(self, run: str) -> dict[str, Container]:
        """Everything of a run on this host, by instance; also the sign of life of the host."""
        with self._client(PING_S) as client:
            label = f"{RUN_LABEL}={run}"
            listed = client.containers(all=True, filters={"label": label})
        found = (
            Container(one["Id"], one["Labels"][INSTANCE_LABEL], one["State"]) for one in listed
        )
        return {one.instance: one for one in found}

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
                one["Id"]: _usage(client.stats(one["Id"], stream=False, one_shot=True))
                for one in listed
            }

    def has_image(self, image: str) -> bool:
        """Whether an image, by its address with digest, is in the host's cache."""
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
            client.inspect_image(image)  # a pull that failed says so in its output only

    def start(self, spec: ContainerSpec) -> str:
        """Create a container, give it its secrets, start it; returns its id.

        What an attempt that was interrupted has left is removed first.
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
                environment=dict(spec.environment),
                labels=dict(spec.labels),
                host_config=limits,
            )["Id"]
            client.put_archive(made, SECRETS_FOLDER, _archive(spec.secrets))
            client.start(made)
        return str(made)

    def signal(self, container: str, name: str) -> None:
        """Send a signal to what runs in a container; nothing when it has ended."""
        with self._client(PING_S) as client:
            try:
                client.kill(container, name)
            except docker.errors.APIError as error:
                if error.status_code not in (404, 409):
                    raise

    def remove(self, container: str) -> None:
        """Delete a container, running or not."""
        with self._client(WORK_S) as client:
            try:
                client.remove_container(container, force=True)
            except docker.errors.NotFound:
                return

    def logged_events(self, container: str, lines: int = 50) -> list[dict[str, Any]]:
        """The last events that an instance has logged, with their times in microseconds."""
        with self._client(PING_S) as client:
            text = client.logs(container, stderr=False, tail=lines)
        events = []
        for line in text.splitlines():
            try:
                event = json.loads(line)
                at = datetime.fromisoformat(event["time"])
                events.append({**event, "at_us": round(at.timestamp() * 1e6)})
            except (ValueError, KeyError, TypeError):
                continue  # cut in the middle
        return events

    def why_ended(self, container: str) -> str:
        """How a container ended, in words."""
        with self._client(PING_S) as client:
            state = client.inspect_container(container)["State"]
        reason = ", out of memory" if state["OOMKilled"] else ""
        return f"exit code {state['ExitCode']}{reason}"

    @contextmanager
    def _client(self, timeout_s: float) -> Iterator[Any]:
        client = docker.APIClient(self._endpoint, version=API_VERSION, timeout=timeout_s)
        client.trust_env = False  # no proxy of the environment leads to the bridge
        try:
            yield client
        finally:
            client.close()


def _usage(stats: Mapping[str, Any]) -> Usage:
    """The file cache, which is given back when needed, does not count."""
    memory = stats["memory_stats"]
    details = memory.get("stats", {})
    cached = details.get("total_inactive_file", details.get("inactive_file", 0))
    return Usage(
        stats["cpu_stats"]["cpu_usage"]["total_usage"] / 1e9,
        max(0, memory.get("usage", 0) - cached) / 2**20,
    )


def _archive(secrets: Mapping[str, str]) -> bytes:
    """A tar file with the secrets, readable for the user of the image only."""
    body = json.dumps(dict(secrets)).encode()
    entry = tarfile.TarInfo(SECRETS_FILE)
    entry.size, entry.mode, entry.uid, entry.gid = len(body), 0o400, USER_ID, USER_ID
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as file:
        file.addfile(entry, io.BytesIO(body))
    return buffer.getvalue()
