"""What is measured beside the study: boots that hold up the reasoner, messages held ahead."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from include.experiment.run import Run, resolve
from include.experiment.spec import RunSpec
from include.studies.peerj141.trial import calibrated
from include.studies.preprint.boots import COLUMNS, OUT, blocked, mean_interval
from include.studies.preprint.prefetch import figures
from include.studies.preprint.study import STUDY


@pytest.mark.parametrize(
    "changed", [lambda spec: resolve(blocked(spec)), lambda spec: calibrated(spec, {"prefetch": 5})]
)
def test_a_boot_that_holds_up_the_reasoner_or_messages_held_ahead_change_the_figures(
    changed: Callable[[RunSpec], Run],
) -> None:
    spec = replace(STUDY.runs([25])[0], duration_min=20.0)
    usual, others = figures(resolve(spec)), figures(changed(spec))
    assert set(usual) == set(others)
    assert usual["vm_upscaling_count"] > 0
    assert usual != others


def test_an_interval_holds_its_mean_and_of_no_value_is_absent() -> None:
    mean, low, high = mean_interval([1.0, 2.0, 3.0, 6.0])
    half = 3.1824 * math.sqrt(14 / 3) / 2  # t with 3 degrees of freedom
    assert (mean, low, high) == pytest.approx((3.0, 3.0 - half, 3.0 + half), rel=1e-3, abs=1e-3)
    assert [math.isnan(value) for value in mean_interval([4.0])] == [False, True, True]
    assert all(math.isnan(value) for value in mean_interval([]))


def test_every_stored_figure_stands_without_and_with_it() -> None:
    with OUT.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    cells = {tuple(row[name] for name in COLUMNS[:4]) for row in rows}
    assert len(rows) == 2 * len(cells)
