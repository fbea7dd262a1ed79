"""Everything in a cloud that carries the tags of a run, of any run and any installation."""

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
    """A thing in a cloud, and how it is deleted."""

    kind: str
    id: str
    tags: ResourceTags
    delete: Callable[[], None]

    @property
    def label(self) -> str:
        return f"{self.kind} {self.id}"

    @property
    def overdue_s(self) -> float:
        """For how long its run should have been over; negative before that."""
        return time.time() - self.tags.due_s


def find(cloud: CloudClient) -> list[TaggedResource]:
    """Servers first: ports and addresses are only free once these are gone.

    Volumes are not looked for: no run asks for one.
    """
    return cloud.with_retries(lambda c: list(_find(cloud, c)), "list what runs hold", GONE_WITHIN_S)


def _find(cloud: CloudClient, connection: Connection) -> Iterator[TaggedResource]:
    for one in servers.find(connection, ()):
        delete = partial(servers.delete, cloud, one.id, GONE_WITHIN_S)
        yield TaggedResource("server", one.id, one.tags, delete)
    network = connection.network
    for address in network.ips(tags=TAG):
        yield _network_resource(cloud, "floating address", address, "delete_ip")
    for port in network.ports(tags=TAG):
        yield _network_resource(cloud, "port", port, "delete_port")


def _network_resource(cloud: CloudClient, kind: str, one: Any, call: str) -> TaggedResource:
    def work(connection: Connection) -> None:
        getattr(connection.network, call)(one.id)

    delete = _retried(cloud, work, f"{kind} {one.id}")
    return TaggedResource(kind, one.id, ResourceTags.read(one.tags or (), {}), delete)


def _retried(
    cloud: CloudClient, work: Callable[[Connection], None], what: str
) -> Callable[[], None]:
    return lambda: cloud.with_retries(work, f"delete {what}", GONE_WITHIN_S)
