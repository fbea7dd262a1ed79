"""Where a run is stored and taken up again changes nothing, whatever is under way then."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from include.model.decision import ReleaseHost, StartInstance, StopInstance
from tests.builders import rows_cut
from tests.contract.test_overlapping_migration import EMBEDDED, moving
from tests.kernel.flows import a_config, started
from tests.kernel.test_chaining_and_pauses import a_world
from tests.kernel.test_flow_restarts import CHAIN
from tests.kernel.test_whole_job import HOT, a_job


def migrating(kind: str, crash_s: float | None) -> Any:
    """An instance's copy is ready at 80 s, and may crash before or after that."""
    testbed, copy = moving(kind, faults={"instance_crashes_per_hour": 1e-6})
    testbed.fleet.instance(copy).crashes_us = crash_s and round(crash_s * 1e6)
    return testbed


RESTART = {"down_s": [5, 9], "hot_s": [20, 40], "hot_factor": [1.2, 2]}
RESTARTING = a_config(
    CHAIN, 12.0, calibration={"restart": RESTART, "sample_every_items": 5},
    faults={"restarts": [[125, 3]]},
)  # fmt: skip
MORE, MOVED = [StartInstance("O1", "host-1")], [StartInstance("O1", "host-2"), StopInstance("O1-1")]
SERVES_ON = [StopInstance("O1-2", serves_s=60.0)]
WORLDS: dict[str, tuple[Any, ...]] = {
    "an instance serves on": (a_world, {60: SERVES_ON}, (75,), 180),
    # Before, in the first rescale, while the second cannot begin, in its checkpoint, and hot.
    "rescaled": (partial(a_job, level=2.5, room=4, rescale=HOT), {39: MORE, 41: MORE},
                 (35, 40, 45, 55, 60, 70), 120),
    "restarted": (partial(started, RESTARTING, hosts=2), {95: MOVED},
                  (60, 97.5, 103.3, 120, 131), 180),
    **{f"{kind} migrates, crash at {crash_s}": (partial(migrating, kind, crash_s),
        {60: [ReleaseHost("host-1")]}, (61, 79, 80, 81), 180)
       for kind in EMBEDDED for crash_s in (None, 79.5, 80.5)},
}  # fmt: skip
"""What builds a testbed, what is done when, where it is cut, and its end."""
CUTS = [(name, cut_s) for name, (*_, cuts_s, _) in WORLDS.items() for cut_s in cuts_s]


@pytest.mark.parametrize(("world", "cut_s"), CUTS)
def test_where_a_run_is_cut_changes_nothing(world: str, cut_s: float) -> None:
    """Snapshots say what was taken, so both are taken from at the cut where they are compared."""
    build, moves, _, end_s = WORLDS[world]
    rows, rows_of_cut = (rows_cut(build(), moves, cuts_s, end_s)[0] for cuts_s in ((), (cut_s,)))
    assert rows_of_cut == rows
    early = {t_s: actions for t_s, actions in moves.items() if t_s <= cut_s}
    whole = build()
    _, cut = rows_cut(whole, early, (), cut_s)
    for testbed in (whole, cut):
        rows_cut(testbed, {t_s: moves[t_s] for t_s in moves.keys() - early.keys()}, (), end_s)
    np.testing.assert_equal(cut.snapshot(), whole.snapshot())
