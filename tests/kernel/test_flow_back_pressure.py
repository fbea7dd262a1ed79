"""Operators with bounded input: what feeds a full one waits, back to the source."""

from __future__ import annotations

import numpy as np
import pytest

from include.testbeds.flow.arrays import ARRIVED, COMPLETED, MICRO
from include.testing.builders import a_topology, an_operator
from tests.builders import tables_of
from tests.kernel.flows import a_config, started

SLOW = a_topology(an_operator("O1", service_ms=100.0), an_operator("O2", service_ms=200.0))
"""Of 8 items a second O1 could do ten and O2 does five."""


def run(input_items: int, level: float = 8.0, until_s: float = 600.0):
    testbed = started(a_config(SLOW, level, calibration={"input_items": input_items}))
    testbed.advance_to(until_s)
    return testbed


def waiting(testbed) -> list[float]:
    counts = testbed.queues.state.counts
    return ((counts[:, ARRIVED] - counts[:, COMPLETED]) / MICRO).tolist()


def test_without_a_bound_the_slow_operator_has_all_that_is_late():
    first, second = waiting(run(0))
    assert first == pytest.approx(0, abs=1)
    assert second == pytest.approx(3 * 600, rel=0.02)


def test_with_a_bound_both_inputs_fill_and_the_source_waits():
    testbed = run(20)
    assert all(value <= 20 for value in waiting(testbed))
    assert waiting(testbed)[0] > 10
    counts = testbed.queues.state.counts / MICRO
    assert counts[1, COMPLETED] == pytest.approx(5 * 600, rel=0.03), "the slow one is never idle"
    assert testbed.queues.published_items()[0] - counts[0, ARRIVED] > 1500


def test_nothing_is_lost_or_made_on_the_way():
    counts = run(20).queues.state.counts
    assert counts[0, COMPLETED] == counts[1, ARRIVED]


def test_age_counts_from_where_an_item_was_taken_in():
    """At most two full inputs and the items in service: 40 items of 0.2 s each."""
    testbed = run(20)
    age_s = testbed.take_measurements()["processing_duration"]["age_ms"] / 1000
    assert float(np.max(age_s)) < 9
    late_s = run(0).take_measurements()["processing_duration"]["age_ms"] / 1000
    assert float(np.max(late_s)) > 100


def test_a_bound_that_is_never_reached_changes_nothing():
    free, bounded = (tables_of(run(items, level=3.0)) for items in (0, 10_000))
    for table in ("processing_duration", "queue"):
        assert free[table] == bounded[table]


def test_a_source_that_keeps_what_it_gives_has_all_that_is_late_in_front_of_its_reader():
    """The slow second operator does five of eight items a second: the rest is lag of the first."""
    kept = started(a_config(SLOW, 8.0, calibration={"input_items": 20, "sources_keep": True}))
    kept.advance_to(600)
    first, second = waiting(kept)
    assert second <= 20
    assert first == pytest.approx(3 * 600, rel=0.03)
    assert kept.observe().operators["O1"].completed_items == pytest.approx(5 * 600, rel=0.03)
    age_s = kept.take_measurements()["processing_duration"]["age_ms"] / 1000
    assert float(np.max(age_s)) == pytest.approx(3 / 8 * 600, rel=0.05), "it waited since it came"
