"""Looks up the names in a calibration in a cloud, and reports all problems at once."""

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
    """Ids for creating a server, and its share of the project's quota."""

    image: str
    flavor: str
    networks: tuple[str, ...]
    cores: int
    memory_mb: int


def look_up(
    connection: Connection, settings: OpenStackCalibration, flavor: HostFlavor
) -> ServerOptions:
    """Look up image, flavor, networks and options. Raises SpecError with every problem."""
    problems: list[str] = []
    image = _resource("image", settings.image, connection.image.images(), problems)
    there = list(connection.network.networks())
    networks = [_resource("network", name, there, problems) for name in settings.networks]
    wanted = settings.flavors.get(flavor.name, flavor.name)
    of_cloud = _resource("flavor", wanted, connection.compute.flavors(), problems)
    if of_cloud and (of_cloud.vcpus < flavor.vcpus or of_cloud.ram < flavor.memory_mb):
        problems.append(
            f"flavor {wanted} has {of_cloud.vcpus} cores and {of_cloud.ram} MB, less than the "
            f"{flavor.vcpus:g} cores and {flavor.memory_mb:g} MB of {flavor.name}; name a larger "
            "one in flavors"
        )
    for name in settings.security_groups:
        _resource("security group", name, connection.network.security_groups(), problems)
    if settings.key_pair:
        _resource("key pair", settings.key_pair, connection.compute.keypairs(), problems)
    if settings.availability_zone:
        zones = connection.compute.availability_zones()
        _resource("availability zone", settings.availability_zone, zones, problems)
    if problems:
        name = f"cloud {settings.cloud}" if settings.cloud else "cloud of the environment"
        raise SpecError(name, problems)
    ids = tuple(network.id for network in networks)
    return ServerOptions(image.id, of_cloud.id, ids, of_cloud.vcpus, of_cloud.ram)


def require_quota(connection: Connection, options: ServerOptions, hosts: int, leased: int) -> None:
    """Raise CapacityExhausted if ``hosts`` more hosts exceed the project's quota.

    ``leased``: hosts of the run, which will be given back before new ones are ordered.
    """
    limits = connection.compute.get_limits().absolute
    short = []
    for what, of_one, limit, used in (
        ("servers", 1, limits.instances, limits.instances_used),
        ("cores", options.cores, limits.total_cores, limits.total_cores_used),
        ("MB of memory", options.memory_mb, limits.total_ram, limits.total_ram_used),
    ):
        left = limit - used + leased * of_one
        if limit >= 0 and left < hosts * of_one:  # below 0: no limit
            short.append(f"{hosts * of_one} {what} of {max(0, left)} that are left of {limit}")
    if short:
        raise CapacityExhausted(
            f"{hosts} hosts exceed the quota of the project: they take {' and '.join(short)}. "
            "Give servers back, ask for a larger quota, or start with fewer hosts"
        )


def _resource(kind: str, name: str, there: Iterable[Any], problems: list[str]) -> Any:
    """The resource with a name or id; None, and a new problem, unless there is exactly one."""
    candidates = list(there)
    named = [candidate for candidate in candidates if name in (candidate.name, candidate.id)]
    if len(named) == 1:
        return named[0]
    if named:
        problems.append(f"{len(named)} of kind {kind} have the name {name}; give the id of one")
    else:
        problems.append(
            unknown_name(kind, name, [candidate.name for candidate in candidates if candidate.name])
        )
    return None
