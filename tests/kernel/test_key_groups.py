"""Operators whose items come in key groups: as slow as the fullest instance."""

from __future__ import annotations

import numpy as np
import pytest

from include.model.topology import Keyed
from include.testbeds.virtual.key_groups import key_group, loads_of_instances
from tests.builders import seen_at
from tests.kernel.flows import a_chain, a_config, started
from tests.problems import problems_told


def completed(instances: int, **calibration):
    """Items a second of an operator that always has enough to do, and its sample."""
    config = a_config(a_chain("O1", service_ms=50.0), 500.0, calibration=calibration)
    testbed = started(config, hosts=8, instances=instances)
    sample = seen_at(testbed, 600).operators["O1"]
    return sample.completed_items / 600, sample


@pytest.mark.parametrize(
    ("instances", "per_s"),
    [(12, 12 * 20), (16, 12 * 20), (23, 12 * 20), (24, 24 * 20), (5, 24 / 5 * 20), (30, 24 * 20)],
)
def test_of_24_groups_only_as_many_instances_help_as_the_fullest_allows(instances, per_s):
    """The fullest of 16 has two of 24 groups, and so has each of 12; more than 24 have none."""
    assert completed(instances, key_groups={"O1": 24})[0] == pytest.approx(per_s, rel=0.001)


def test_the_fullest_instance_works_all_the_time_and_the_others_less():
    sample = completed(16, key_groups={"O1": 24})[1]
    assert sample.busiest_share == 1
    assert sample.busy_share == pytest.approx(24 / 32, abs=1e-3)


def test_groups_that_divide_evenly_change_nothing():
    assert completed(12, key_groups={"O1": 24}) == completed(12)


def test_ranges_are_those_of_flink():
    """128 groups, five instances: 0 to 25, 26 to 51, 52 to 76, 77 to 102, 103 to 127."""
    counts = loads_of_instances(np.ones(128), 5) * 128 / 5
    assert counts.round(9).tolist() == [26, 26, 25, 26, 25]


def test_a_keyed_operator_is_as_slow_as_the_instance_with_the_most_keys():
    """Of keys as they are on the testbed ``flink``, in groups as many as there."""
    keyed = Keyed(keys=50, exponent=1.0)
    topology = a_chain("O1", service_ms=100.0, stateful=True, keyed=keyed)
    config = a_config(topology, 1000.0, calibration={"key_groups": {"O1": 128}})
    testbed = started(config, instances=4)
    testbed.advance_to(210)
    heaviest = np.bincount(key_group(np.arange(50)) // 32, 1 / np.arange(1, 51)).max()
    expected = 10 * (1 / np.arange(1, 51)).sum() / heaviest
    completed_items = testbed.observe().operators["O1"].completed_items
    assert completed_items / 210 == pytest.approx(expected, rel=0.001)


def test_keys_go_where_flink_sends_them() -> None:
    """Key groups as org.apache.flink.runtime.state.KeyGroupRangeAssignment of Flink 2.2.1 has them,
    of 128, for the keys 0 to 9."""
    assert key_group(np.arange(10)).tolist() == KEY_GROUPS_OF_FLINK


KEY_GROUPS_OF_FLINK = [94, 86, 127, 113, 7, 126, 18, 113, 15, 51]


def test_groups_of_an_operator_that_is_not_there_are_refused():
    config = a_config(a_chain("O1"), calibration={"key_groups": {"O2": 4, "O3": 8}})
    first, second = problems_told(started, config)
    assert "O2" in first
    assert "O3" in second
