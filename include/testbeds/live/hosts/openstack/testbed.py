"""The live testbed with hosts of a cloud."""

from __future__ import annotations

import time

from include.testbeds.base import TestbedConfig
from include.testbeds.live.hosts.openstack.calibration import OpenStackCalibration
from include.testbeds.live.hosts.openstack.hosts import OpenStackHosts
from include.testbeds.live.hosts.openstack.tags import ResourceTags, site
from include.testbeds.live.testbed import LiveTestbed

GRACE_S = 2 * 3600.0
"""How much longer than its arrivals a run may take, with everything that goes wrong on the way."""


def build(config: TestbedConfig) -> LiveTestbed:
    """A run on servers, before anything is deployed on them."""
    settings = OpenStackCalibration.model_validate(config.calibration)
    due_s = time.time() + config.duration_s / settings.time_scale + GRACE_S
    hosts = OpenStackHosts(ResourceTags(config.run, site(), due_s), settings)
    return LiveTestbed(config, hosts, settings)
