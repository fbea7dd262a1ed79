"""Resources of runs in clouds and on this machine."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing

from include.model.errors import TestbedError
from include.testbeds.live.files import live_state
from include.testbeds.live.give_back import give_back
from include.testbeds.live.hosts.local import reap as local
from include.testbeds.live.hosts.openstack import resources
from include.testbeds.live.hosts.openstack.calibration import OpenStackCalibration
from include.testbeds.live.hosts.openstack.cloud import CloudClient
from include.testbeds.live.hosts.openstack.hosts import OpenStackHosts
from include.testbeds.live.hosts.openstack.resources import TaggedResource
from include.testbeds.live.hosts.openstack.tags import ResourceTags, site
from include.testbeds.reap import HeldResources


def find() -> list[HeldResources]:
    """Every run of this testbed with resources in a cloud or here.

    A run of another installation counts as alive until its due end. Raises TestbedError if a cloud
    or service does not answer.
    """
    holds: defaultdict[str, list[str]] = defaultdict(list)
    silent_s: dict[str, float] = {}
    for held in local.find("openstack"):
        holds[held.run].extend(held.holds)
        silent_s[held.run] = held.silent_s
    for resource in _resources(_clouds()):
        run = _name(resource.tags)
        holds[run].append(resource.label)
        of_own = resource.tags.site == site()
        overdue_s = local.silent_s(run) if of_own else resource.overdue_s
        silent_s[run] = min(silent_s.get(run, math.inf), overdue_s)
    return [HeldResources(run, tuple(held), silent_s[run]) for run, held in sorted(holds.items())]


def give_back_run(run: str) -> None:
    """Give back a run's resources. Raises TestbedError naming those that remain."""
    clouds, origin = _clouds(), local.origin_of(run)
    if origin["testbed"] == "openstack":
        settings = OpenStackCalibration(cloud=origin["cloud"])
        with closing(OpenStackHosts(ResourceTags(run, site()), settings)) as hosts:
            give_back(run, hosts)
    problems = []
    for resource in _resources(clouds):
        try:
            if _name(resource.tags) == run:
                resource.delete()
        except TestbedError as error:
            problems.append(f"{resource.label}: {error}")
    if problems:
        raise TestbedError(f"of run {run} this is still there:\n" + "\n".join(problems))


def _resources(clouds: Iterable[str]) -> Iterator[TaggedResource]:
    for name in sorted(clouds):
        with closing(CloudClient(name, OpenStackCalibration().answer_within_s)) as cloud:
            yield from resources.find(cloud)


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
