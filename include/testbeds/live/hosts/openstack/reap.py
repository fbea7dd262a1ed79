"""Resources of runs in clouds and on this machine."""

from __future__ import annotations

import math
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from include.model.errors import TestbedError
from include.testbeds.live.files import HEARTBEAT, live_state, run_folder
from include.testbeds.live.give_back import give_back
from include.testbeds.live.hosts.local import reap as local
from include.testbeds.live.hosts.openstack import servers
from include.testbeds.live.hosts.openstack.calibration import OpenStackCalibration
from include.testbeds.live.hosts.openstack.cloud import CloudClient
from include.testbeds.live.hosts.openstack.hosts import OpenStackHosts
from include.testbeds.live.hosts.openstack.tags import TAG, ResourceTags, site
from include.testbeds.reap import HeldResources, silent_s

if TYPE_CHECKING:
    from openstack.connection import Connection


def find() -> list[HeldResources]:
    """Every run of this testbed with resources in a cloud or here.

    A run of another installation counts as alive until its due end. Raises TestbedError if a cloud
    or service does not answer.
    """
    holds: defaultdict[str, list[str]] = defaultdict(list)
    since_s: dict[str, float] = {}
    named: dict[tuple[str, ...], str] = {}
    """Runs by tags, which have the end of a long name only: of ports nothing else is known."""
    for held in local.find("openstack"):
        holds[held.run].extend(held.holds)
        since_s[held.run] = held.silent_s
        named[tuple(ResourceTags(held.run, site()).tags)] = held.run
    for resource in _resources(_clouds()):
        run = named.setdefault(tuple(resource.tags.tags), _name(resource.tags))
        holds[run].append(resource.label)
        of_own = resource.tags.site == site()
        overdue_s = silent_s(run_folder(run) / HEARTBEAT) if of_own else resource.overdue_s
        since_s[run] = min(since_s.get(run, math.inf), overdue_s)
    return [HeldResources(run, tuple(held), since_s[run]) for run, held in sorted(holds.items())]


def give_back_run(run: str) -> None:
    """Give back a run's resources. Raises TestbedError naming those that remain."""
    clouds, origin = _clouds(), local.origin_of(run)
    if origin["testbed"] == "openstack":
        settings = OpenStackCalibration(cloud=origin["cloud"])
        with closing(OpenStackHosts(ResourceTags(run, site()), settings)) as hosts:
            give_back(run, hosts)
    problems = []
    name, _, other_site = run.partition("@")
    tags = ResourceTags(name, other_site or site()).tags
    for resource in _resources(clouds):
        try:
            if resource.tags.tags == tags:
                resource.delete()
        except TestbedError as error:
            problems.append(f"{resource.label}: {error}")
    if problems:
        raise TestbedError(f"of run {run} this is still there:\n" + "\n".join(problems))


def _resources(clouds: Iterable[str]) -> Iterator[TaggedResource]:
    for name in sorted(clouds):
        with closing(CloudClient(name, OpenStackCalibration().answer_within_s)) as cloud:
            yield from tagged_in(cloud)


def _clouds() -> set[str]:
    """Clouds in the origins of runs, and the environment's cloud."""
    origins = (local.origin_of(path.name) for path in (live_state() / "runs").glob("*"))
    named = {origin["cloud"] for origin in origins if origin["testbed"] == "openstack"}
    if any(name.startswith("OS_") for name in os.environ):
        named.add(os.environ.get("OS_CLOUD", ""))
    return named


def _name(tags: ResourceTags) -> str:
    """Run id, with the site if it is another installation's, which may use the same id."""
    return tags.run if tags.site == site() else f"{tags.run}@{tags.site}"


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


def tagged_in(cloud: CloudClient) -> list[TaggedResource]:
    """Servers first, because their ports and addresses are free only when they are gone.

    Without volumes, which no run creates, and without what has our tag and no run's.
    """
    listed = cloud.with_retries(
        lambda c: list(_tagged(cloud, c)), "list what runs hold", GONE_WITHIN_S
    )
    return [resource for resource in listed if resource.tags.run and resource.tags.site]


def _tagged(cloud: CloudClient, connection: Connection) -> Iterator[TaggedResource]:
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

    tags, what = ResourceTags.read(resource.tags or (), {}), f"delete {kind} {resource.id}"
    return TaggedResource(
        kind, resource.id, tags, lambda: cloud.with_retries(work, what, GONE_WITHIN_S)
    )
