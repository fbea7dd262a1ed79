"""What runs hold in clouds, beside what they hold on this machine."""

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
    """Every run that holds anything in a cloud, or here as a run of this testbed.

    A run of another installation is known by its tags only, and alive until it is due to end.
    Raises TestbedError when somebody does not answer.
    """
    holds: defaultdict[str, list[str]] = defaultdict(list)
    silent_s: dict[str, float] = {}
    for known in local.find("openstack"):
        holds[known.run].extend(known.holds)
        silent_s[known.run] = known.silent_s
    for one in _resources(_clouds()):
        run = _name(one.tags)
        holds[run].append(one.label)
        of_own = one.tags.site == site()
        overdue_s = local.silent_s(run) if of_own else one.overdue_s
        silent_s[run] = min(silent_s.get(run, math.inf), overdue_s)
    return [HeldResources(run, tuple(held), silent_s[run]) for run, held in sorted(holds.items())]


def give_back_run(run: str) -> None:
    """Give back everything of a run. Raises TestbedError with what could not be."""
    clouds, origin = _clouds(), local.origin_of(run)
    if origin["testbed"] == "openstack":
        settings = OpenStackCalibration(cloud=origin["cloud"])
        with closing(OpenStackHosts(ResourceTags(run, site()), settings)) as hosts:
            give_back(run, hosts)
    problems = []
    for one in _resources(clouds):
        try:
            if _name(one.tags) == run:
                one.delete()
        except TestbedError as error:
            problems.append(f"{one.label}: {error}")
    if problems:
        raise TestbedError(f"of run {run} this is still there:\n" + "\n".join(problems))


def _resources(clouds: Iterable[str]) -> Iterator[TaggedResource]:
    for name in sorted(clouds):
        with closing(CloudClient(name, OpenStackCalibration().answer_within_s)) as cloud:
            yield from resources.find(cloud)


def _clouds() -> set[str]:
    """Clouds that runs have been told to use, and the one that the environment names."""
    origins = (local.origin_of(path.name) for path in (live_state() / "runs").glob("*"))
    named = {one["cloud"] for one in origins if one["testbed"] == "openstack"}
    if any(name.startswith("OS_") for name in os.environ):
        named.add(os.environ.get("OS_CLOUD", ""))
    return named


def _name(tags: ResourceTags) -> str:
    """Runs of other installations may have the same id as one of ours."""
    return tags.run if tags.site == site() else f"{tags.run}@{tags.site}"
