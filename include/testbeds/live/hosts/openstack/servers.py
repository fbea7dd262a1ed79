"""Servers of runs: ordered, found again by their tags, and deleted until they are gone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

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
    """A server that somebody has ordered for a run."""

    id: str
    name: str
    status: str
    fault: str
    address_in: dict[str, str]
    """By network: the fixed address, once it has one."""
    tags: ResourceTags

    def address(self, network: str) -> str:
        """In a network; where that was named by its id, in the only one there is. Else empty."""
        of_only = next(iter(self.address_in.values()), "") if len(self.address_in) == 1 else ""
        return self.address_in.get(network, of_only)


def find(connection: Connection, tags: Iterable[str]) -> list[Server]:
    """All servers with these tags."""
    listed = connection.compute.servers(tags=",".join((TAG, *tags)))
    return [_server(one) for one in listed if one.status not in GONE]


def order(cloud: CloudClient, asked: dict[str, Any], within_s: float) -> str:
    """Create a server that nobody has to wait for; returns its id.

    When the answer to a request got lost, the server may be there all the same: so before the next
    request it is looked for by its name, which is unique. Raises CapacityExhausted, TestbedError.
    """
    lost: list[bool] = []

    def attempt(connection: Connection) -> str:
        if lost:
            for one in connection.compute.servers(name=f"^{asked['name']}$"):
                return str(one.id)
        lost.append(True)
        return str(connection.compute.create_server(**asked).id)

    return cloud.with_retries(attempt, "create a server", within_s)


def delete(cloud: CloudClient, server: str, within_s: float) -> None:
    """Delete a server and whatever ports it leaves; returns when they are gone.

    A deletion that fails leaves the server in ERROR, and is asked for again. Raises TestbedError
    when it is still there after ``within_s``.
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
        seen = connection.compute.get_server(server)
    except exceptions.NotFoundException:
        return ""
    if seen.status in GONE:
        return ""
    return f"{seen.status} {seen.task_state or ''}".strip()


def _delete_ports(connection: Connection, server: str) -> None:
    """Nova deletes them, unless Neutron was out of order just then."""
    for port in connection.network.ports(device_id=server):
        connection.network.delete_port(port)


def _server(seen: Any) -> Server:
    return Server(
        id=seen.id,
        name=seen.name,
        status=seen.status,
        fault=(seen.fault or {}).get("message", ""),
        address_in={
            network: one["addr"]
            for network, addresses in (seen.addresses or {}).items()
            for one in addresses
            if one.get("OS-EXT-IPS:type", "fixed") == "fixed" and one.get("version") == 4
        },
        tags=ResourceTags.read(seen.tags or (), seen.metadata or {}),
    )
