"""A process that provisions a run, to be killed: `python -m tests.openstack.provisioning RUN`."""

from __future__ import annotations

import sys

from include.model.decision import LeaseHost, StartInstance
from include.testbeds import TESTBEDS
from include.testing.builders import decision
from tests.live.live_run import BACK, FRONT, config_of
from tests.openstack.plane import FLAVOR, SMALL


def main(run: str) -> None:
    """Deploy on two hosts, say so, and look after the run until killed."""
    testbed = TESTBEDS["openstack"].build(config_of(run, **SMALL))
    actions = [
        LeaseHost(FLAVOR.name, "a"),
        LeaseHost(FLAVOR.name, "b"),
        StartInstance(FRONT, "a"),
        StartInstance(BACK, "b"),
    ]
    testbed.deploy(decision(*actions))
    print("deployed", flush=True)
    testbed.advance_to(3600)


if __name__ == "__main__":
    main(sys.argv[1])
