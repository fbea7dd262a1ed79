"""A crowded host is a busy one: what is behind a bottleneck keeps no CPU for what never comes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from include.testing.builders import a_topology, an_operator
from tests.builders import seen_at
from tests.kernel.flows import SHARED, a_config, started


@pytest.mark.parametrize("behind", [1, 3])
def test_a_host_with_a_backlog_uses_all_of_its_cores(behind):
    heavy = an_operator("heavy", service_ms=90.0)
    light = [an_operator(f"light{n}", service_ms=10.0 / behind) for n in range(behind)]
    config = a_config(a_topology(heavy, *light), 1000.0, flavor=replace(SHARED, vcpus=2))
    testbed = started(config, instances=4)
    observation = seen_at(testbed, 300)
    (host,) = observation.hosts.values()
    assert host.cpu_share == pytest.approx(1.0, abs=0.01)
    # An item takes 90 ms and 10 ms: two cores finish 20 of them a second.
    done = observation.operators[light[-1].name].completed_items
    assert done == pytest.approx(20 * 300, rel=0.01)
