"""Everything fails once in one run, from its first stage to its tables, and nothing is lost."""

from __future__ import annotations

import pytest

from include.testbeds.live.hosts.local.hosts import leases
from include.testbeds.live.hosts.local.reap import find
from tests.live.fault_run import survive
from tests.live.faults import FAULTS
from tests.live.world import crowding

pytestmark = [pytest.mark.live, pytest.mark.nightly]

RATE = 60
DURATION_S = 240.0
"""Enough for all of them on a machine that does nothing else."""


def test_a_run_survives_every_fault_and_loses_nothing(images, tmp_path, capsys):
    items = 5 * RATE * round(DURATION_S / 5 * min(1.5, crowding()))
    survived = survive(items, RATE, tmp_path, "faults")
    with capsys.disabled():
        print("", *survived.lines(), sep="\n")
    assert survived.lost == []
    assert survived.problem == ""
    assert survived.sent_items == survived.planned_items == items
    # Items that came again were counted once.
    assert survived.done == {"front": items, "back": items}
    for _, expected in FAULTS.values():
        assert survived.events.keys() >= set(expected)
    assert list(leases()) == []
    assert find() == []
