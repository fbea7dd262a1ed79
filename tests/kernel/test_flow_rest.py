"""Items that are with an idle operator for a while: in their age and among what waits."""

from __future__ import annotations

import numpy as np
import pytest

from tests.builders import measured_at
from tests.kernel.flows import a_chain, a_config, rows_of, started


def measured(level: float = 20.0, **calibration):
    config = a_config(a_chain("O1", "O2", service_ms=10.0), level, calibration=calibration)
    testbed = started(config)
    return testbed, measured_at(testbed, 120)


def test_by_littles_law_rate_times_rest_waits():
    testbed, _ = measured(rest_s={"O1": 1.5})
    waiting = {name: sample.waiting_items for name, sample in testbed.observe().operators.items()}
    assert waiting == {"O1": 30, "O2": 0}


def test_age_and_duration_are_longer_by_the_rest_and_nothing_else_is():
    plain, rested = measured()[1], measured(rest_s={"O1": 1.5, "O2": 0.25})[1]
    before, after = plain["processing_duration"], rested["processing_duration"]
    for name, later_s, older_s in (("O1", 1.5, 1.5), ("O2", 0.25, 1.75)):
        rows = rows_of(before, name)
        more_ms = (after["duration_ms"] - before["duration_ms"])[rows]
        older_ms = (after["age_ms"] - before["age_ms"])[rows]
        assert more_ms == pytest.approx(1000 * later_s)
        assert older_ms == pytest.approx(1000 * older_s)
    cpu = (tables["instance_utilisation"]["cpu_share"] for tables in (plain, rested))
    assert np.array_equal(*cpu)
    assert np.array_equal(before["time_s"], after["time_s"])


def test_no_load_leaves_nothing_to_rest():
    testbed, _ = measured(level=0.0, rest_s={"O1": 9.0})
    assert testbed.observe().operators["O1"].waiting_items == 0


def test_what_is_in_an_operator_is_in_its_age_and_does_not_wait():
    testbed, passing = measured(pass_s={"O1": 1.5})
    assert testbed.observe().operators["O1"].waiting_items == 0
    plain = measured()[1]["processing_duration"]
    for name in ("O1", "O2"):
        rows = rows_of(plain, name)
        older_ms = (passing["processing_duration"]["age_ms"] - plain["age_ms"])[rows]
        assert older_ms == pytest.approx(1500)
