"""Orders servers, finds them by their tags, and deletes them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import jinja2
from openstack import exceptions
from openstack.connection import Connection

from include.model.errors import TestbedError
from include.testbeds.live.hosts.openstack.cloud import CloudClient
from include.testbeds.live.hosts.openstack.tags import TAG, ResourceTags

T = TypeVar("T")
GONE = ("DELETED", "SOFT_DELETED")
ASK_EVERY_S, DELETE_AGAIN_S = 0.5, 5.0


@dataclass(frozen=True, slots=True)
class Server:
    """A run's server."""

    id: str
    name: str
    status: str
    fault: str
    address_in: dict[str, str]
    """Fixed address by network, if assigned."""
    tags: ResourceTags

    def address(self, network: str) -> str:
        """Address in a network; if that is given by id, in the only one. Else empty."""
        of_only = next(iter(self.address_in.values()), "") if len(self.address_in) == 1 else ""
        return self.address_in.get(network, of_only)


def find(connection: Connection, tags: Iterable[str]) -> list[Server]:
    """All servers with these tags."""
    listed = connection.compute.servers(tags=",".join((TAG, *tags)))
    return [_server(server) for server in listed if server.status not in GONE]


def order(cloud: CloudClient, request: dict[str, Any], within_s: float) -> str:
    """Create a server and return its id, without waiting for it to boot.

    A request whose answer was lost may have created the server, so a retry looks for its unique
    name first. Raises CapacityExhausted or TestbedError.
    """
    lost: list[bool] = []

    def attempt(connection: Connection) -> str:
        if lost:
            for existing in connection.compute.servers(name=f"^{request['name']}$"):
                return str(existing.id)
        lost.append(True)
        return str(connection.compute.create_server(**request).id)

    return cloud.with_retries(attempt, "create a server", within_s)


def delete(cloud: CloudClient, server: str, within_s: float) -> None:
    """Delete a server and its remaining ports; returns when they are gone.

    A failed deletion leaves the server in ERROR and is repeated. Raises TestbedError if the server
    is not gone after ``within_s``.
    """
    end_s, asked_s = time.monotonic() + within_s, 0.0

    def with_retries(work: Callable[[Connection], T]) -> T:
        return cloud.with_retries(
            work, f"delete server {server}", max(1.0, end_s - time.monotonic())
        )

    while status := with_retries(lambda c: _status(c, server)):
        now_s = time.monotonic()
        if now_s > end_s:
            raise TestbedError(
                f"server {server} of {cloud.label} is not gone within {within_s:g} s: {status}"
            )
        if not asked_s or (status.startswith("ERROR") and now_s - asked_s >= DELETE_AGAIN_S):
            with_retries(lambda c: c.compute.delete_server(server))
            asked_s = now_s
        time.sleep(ASK_EVERY_S)
    with_retries(lambda c: _delete_ports(c, server))


def _status(connection: Connection, server: str) -> str:
    try:
        current = connection.compute.get_server(server)
    except exceptions.NotFoundException:
        return ""
    if current.status in GONE:
        return ""
    return f"{current.status} {current.task_state or ''}".strip()


def _delete_ports(connection: Connection, server: str) -> None:
    """Delete the ports that Nova could not delete because Neutron failed."""
    for port in connection.network.ports(device_id=server):
        connection.network.delete_port(port)


def _server(server: Any) -> Server:
    return Server(
        id=server.id,
        name=server.name,
        status=server.status,
        fault=(server.fault or {}).get("message", ""),
        address_in={
            network: address["addr"]
            for network, addresses in (server.addresses or {}).items()
            for address in addresses
            if address.get("OS-EXT-IPS:type", "fixed") == "fixed" and address.get("version") == 4
        },
        tags=ResourceTags.read(server.tags or (), server.metadata or {}),
    )


TEMPLATE = Path(__file__).with_name("user_data.yaml.j2")


def user_data(registry: str, engine_port: int) -> str:
    """cloud-config that starts a Docker engine which trusts ``registry`` (host:port)."""
    daemon = {
        "hosts": [f"tcp://0.0.0.0:{engine_port}", "unix:///var/run/docker.sock"],
        "insecure-registries": [registry],
        "tls": False,
        "max-concurrent-downloads": 3,
        "log-driver": "json-file",
        "log-opts": {"max-size": "1m", "max-file": "2"},
    }
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(daemon=daemon)
