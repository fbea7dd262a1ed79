"""What CPU of an instance is shown: idle, busy, and as the mean of whole windows."""

from __future__ import annotations

import numpy as np
import pytest

from include.model.decision import StartInstance
from include.workloads.pattern import Levels
from tests.builders import apply_at, measured_at, resumed
from tests.kernel.flows import a_chain, a_config, started

HALF_BUSY = a_chain("O1", service_ms=10.0)
"""At 50 items a second."""


def shown(testbed) -> dict[str, float | None]:
    return {name: one.cpu_share for name, one in testbed.observe().instances.items()}


def test_shown_is_a_line_from_idle_to_busy():
    config = a_config(HALF_BUSY, 50.0, calibration={"cpu_at_rest": 0.1, "cpu_when_busy": 0.7})
    testbed = started(config)
    testbed.advance_to(60)
    assert shown(testbed) == {"O1-1": pytest.approx(0.1 + 0.5 * 0.6, abs=0.01)}


def a_step(cpu_window_s: float):
    """Idle for 100 s, then half busy."""
    levels = Levels((0.0, 100.0), (0.0, 50.0))
    return a_config(HALF_BUSY, levels, calibration={"cpu_window_s": cpu_window_s})


def test_a_window_is_shown_until_the_next_one_ends():
    testbed = started(a_step(60))
    seen = []
    for t_s in (60, 105, 120, 165, 180):
        testbed.advance_to(t_s)
        seen.append(shown(testbed)["O1-1"])
    assert seen == pytest.approx([0, 0, 20 / 60 * 0.5, 20 / 60 * 0.5, 0.5], abs=0.01)


def test_an_instance_is_read_once_it_was_there_for_a_whole_window():
    testbed = started(a_step(60))
    apply_at(testbed, 65, StartInstance("O1", "host-1"))
    testbed.advance_to(120)
    assert shown(testbed)["O1-2"] is None
    testbed.advance_to(180)
    assert shown(testbed)["O1-2"] == pytest.approx(0.25, abs=0.01)


def test_rows_have_every_reading_and_a_snapshot_keeps_half_a_window():
    config = a_step(60)
    testbed = started(config)
    rows = measured_at(testbed, 150)["instance_utilisation"]["cpu_share"]
    assert np.asarray(rows) == pytest.approx([0] * 6 + [1 / 6, 0.5, 0.5, 0.5], abs=0.01)
    other = resumed(testbed)
    for one in (testbed, other):
        one.advance_to(180)
    assert shown(other) == shown(testbed) == {"O1-1": pytest.approx(0.5, abs=0.01)}
