"""Everything in a cloud that carries the marks of a run, of any run and any installation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from openstack import exceptions
from openstack.connection import Connection

from include.testbeds.openstack import servers
from include.testbeds.openstack.cloud import Cloud
from include.testbeds.openstack.marks import MARK, Marks

GONE_WITHIN_S = 120.0


@dataclass(frozen=True, slots=True)
class Leftover:
    """A thing in a cloud, and how it is deleted."""

    kind: str
    id: str
    marks: Marks
    delete: Callable[[], None]

    @property
    def told(self) -> str:
        """For a person."""
        return f"{self.kind} {self.id}"

    @property
    def overdue_s(self) -> float:
        """For how long its run should have been over; negative before that."""
        return time.time() - self.marks.due_s


def find(cloud: Cloud) -> list[Leftover]:
    """Servers first: ports, addresses and volumes are only free once these are gone."""
    return cloud.patiently(lambda c: list(_find(cloud, c)), "list what runs hold", GONE_WITHIN_S)


def _find(cloud: Cloud, connection: Connection) -> Iterator[Leftover]:
    for one in servers.find(connection, ()):
        delete = partial(servers.delete, cloud, one.id, GONE_WITHIN_S)
        yield Leftover("server", one.id, one.marks, delete)
    network = connection.network
    for address in network.ips(tags=MARK):
        yield _leftover(cloud, "floating address", address, "delete_ip")
    for port in network.ports(tags=MARK):
        yield _leftover(cloud, "port", port, "delete_port")
    for volume in _volumes(connection):
        marks = Marks.read((), volume.metadata)
        work = partial(_delete_volume, volume.id)
        yield Leftover("volume", volume.id, marks, _patient(cloud, work, f"volume {volume.id}"))


def _leftover(cloud: Cloud, kind: str, one: Any, call: str) -> Leftover:
    def work(connection: Connection) -> None:
        getattr(connection.network, call)(one.id)

    delete = _patient(cloud, work, f"{kind} {one.id}")
    return Leftover(kind, one.id, Marks.read(one.tags or (), {}), delete)


def _patient(cloud: Cloud, work: Callable[[Connection], None], what: str) -> Callable[[], None]:
    return lambda: cloud.patiently(work, f"delete {what}", GONE_WITHIN_S)


def _volumes(connection: Connection) -> Iterator[Any]:
    try:
        listed = list(connection.block_storage.volumes())
    except (
        exceptions.EndpointNotFound,
        exceptions.ServiceDisabledException,
        exceptions.ServiceDiscoveryException,
    ):
        return  # not every cloud has volumes
    yield from (one for one in listed if _is_ours(one.metadata or {}))


def _is_ours(metadata: Mapping[str, Any]) -> bool:
    return any(name.startswith(f"{MARK}.") for name in metadata)


def _delete_volume(volume: str, connection: Connection) -> None:
    connection.block_storage.delete_volume(volume)
