"""The live testbed with hosts of a cloud."""

from __future__ import annotations

import time

from include.testbeds.base import Scene
from include.testbeds.docker.testbed import DockerTestbed
from include.testbeds.openstack.calibration import Calibration
from include.testbeds.openstack.hosts import OpenStackHosts
from include.testbeds.openstack.marks import Marks, site

GRACE_S = 2 * 3600.0
"""How much longer than its arrivals a run may take, with everything that goes wrong on the way."""


def build(scene: Scene) -> DockerTestbed:
    """A run on servers, before anything is deployed on them."""
    settings = Calibration.model_validate(scene.calibration)
    due_s = time.time() + scene.duration_s / settings.time_scale + GRACE_S
    hosts = OpenStackHosts(Marks(scene.run, site(), due_s), settings)
    return DockerTestbed(scene, hosts, settings)
