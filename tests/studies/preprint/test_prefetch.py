"""The figures of runs in which instances hold messages ahead."""

from __future__ import annotations

from dataclasses import replace

from include.studies.peerj141.trial import calibrated
from include.studies.preprint.prefetch import figures
from include.studies.preprint.study import STUDY


def test_messages_held_ahead_change_the_figures_of_a_run() -> None:
    spec = replace(STUDY.runs([25])[0], duration_min=5.0)
    shared, held = (figures(calibrated(spec, {"prefetch": items})) for items in (0, 5))
    assert set(shared) == set(held)
    assert shared["paid_btus_count"] == held["paid_btus_count"] > 0
    level = "real_time_compliance_percent"
    assert held[level] != shared[level]
    assert held[level] > 0
