"""Finds all resources in a cloud with the tags of a run, of any installation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from openstack.connection import Connection

from include.testbeds.live.hosts.openstack import servers
from include.testbeds.live.hosts.openstack.cloud import CloudClient
from include.testbeds.live.hosts.openstack.tags import TAG, ResourceTags

GONE_WITHIN_S = 120.0


@dataclass(frozen=True, slots=True)
class TaggedResource:
    """A resource in a cloud, and a function that deletes it."""

    kind: str
    id: str
    tags: ResourceTags
    delete: Callable[[], None]

    @property
    def label(self) -> str:
        return f"{self.kind} {self.id}"

    @property
    def overdue_s(self) -> float:
        """Time since the due end of its run; negative before."""
        return time.time() - self.tags.due_s


def find(cloud: CloudClient) -> list[TaggedResource]:
    """Servers first, because their ports and addresses are free only when they are gone.

    Without volumes, which no run creates.
    """
    return cloud.with_retries(lambda c: list(_find(cloud, c)), "list what runs hold", GONE_WITHIN_S)


def _find(cloud: CloudClient, connection: Connection) -> Iterator[TaggedResource]:
    for server in servers.find(connection, ()):
        delete = partial(servers.delete, cloud, server.id, GONE_WITHIN_S)
        yield TaggedResource("server", server.id, server.tags, delete)
    network = connection.network
    for address in network.ips(tags=TAG):
        yield _network_resource(cloud, "floating address", address, "delete_ip")
    for port in network.ports(tags=TAG):
        yield _network_resource(cloud, "port", port, "delete_port")


def _network_resource(cloud: CloudClient, kind: str, resource: Any, call: str) -> TaggedResource:
    def work(connection: Connection) -> None:
        getattr(connection.network, call)(resource.id)

    delete = _retried(cloud, work, f"{kind} {resource.id}")
    return TaggedResource(kind, resource.id, ResourceTags.read(resource.tags or (), {}), delete)


def _retried(
    cloud: CloudClient, work: Callable[[Connection], None], what: str
) -> Callable[[], None]:
    return lambda: cloud.with_retries(work, f"delete {what}", GONE_WITHIN_S)
