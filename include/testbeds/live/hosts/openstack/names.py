"""Names that people give, looked up in a cloud: everything that is wrong with them at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from openstack.connection import Connection

from include.model.errors import CapacityExhausted, SpecError, unknown_name
from include.model.host import HostFlavor
from include.testbeds.live.hosts.openstack.calibration import OpenStackCalibration


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Ids of what a server is made of, and what it takes of the project's quota."""

    image: str
    flavor: str
    networks: tuple[str, ...]
    cores: int
    memory_mb: int


def look_up(
    connection: Connection, settings: OpenStackCalibration, flavor: HostFlavor
) -> ServerOptions:
    """Raises SpecError with every problem."""
    problems: list[str] = []
    image = _one("image", settings.image, connection.image.images(), problems)
    network_of = {one.name: one for one in connection.network.networks()}
    networks = [_one("network", name, network_of.values(), problems) for name in settings.networks]
    wanted = settings.flavors.get(flavor.name, flavor.name)
    of_cloud = _one("flavor", wanted, connection.compute.flavors(), problems)
    if of_cloud and (of_cloud.vcpus < flavor.vcpus or of_cloud.ram < flavor.memory_mb):
        problems.append(
            f"flavor {wanted} has {of_cloud.vcpus} cores and {of_cloud.ram} MB, less than the "
            f"{flavor.vcpus:g} cores and {flavor.memory_mb:g} MB of {flavor.name}; name a larger "
            "one in flavors"
        )
    for name in settings.security_groups:
        _one("security group", name, connection.network.security_groups(), problems)
    if settings.key_pair:
        _one("key pair", settings.key_pair, connection.compute.keypairs(), problems)
    if settings.availability_zone:
        zones = connection.compute.availability_zones()
        _one("availability zone", settings.availability_zone, zones, problems)
    if problems:
        name = f"cloud {settings.cloud}" if settings.cloud else "cloud of the environment"
        raise SpecError(name, problems)
    ids = tuple(one.id for one in networks)
    return ServerOptions(image.id, of_cloud.id, ids, of_cloud.vcpus, of_cloud.ram)


def require_quota(connection: Connection, found: ServerOptions, hosts: int, own: int) -> None:
    """Raises CapacityExhausted when so many hosts are more than the project may have.

    ``own`` are hosts of the run itself, which will be gone before the new ones are ordered.
    """
    limits = connection.compute.get_limits().absolute
    short = []
    for what, of_one, limit, used in (
        ("servers", 1, limits.instances, limits.instances_used),
        ("cores", found.cores, limits.total_cores, limits.total_cores_used),
        ("MB of memory", found.memory_mb, limits.total_ram, limits.total_ram_used),
    ):
        left = limit - used + own * of_one
        if limit >= 0 and left < hosts * of_one:  # below 0: no limit
            short.append(f"{hosts * of_one} {what} of {max(0, left)} that are left of {limit}")
    if short:
        raise CapacityExhausted(
            f"{hosts} hosts exceed the quota of the project: they take {' and '.join(short)}. "
            "Give servers back, ask for a larger quota, or start with fewer hosts"
        )


def _one(kind: str, name: str, there: Iterable[Any], problems: list[str]) -> Any:
    """The only one of that name or id; None, and one problem more, when there is not just one."""
    known = list(there)
    named = [one for one in known if name in (one.name, one.id)]
    if len(named) == 1:
        return named[0]
    if named:
        problems.append(f"{len(named)} of kind {kind} have the name {name}; give the id of one")
    else:
        problems.append(unknown_name(kind, name, [one.name for one in known if one.name]))
    return None
