from __future__ import annotations

import numpy as np
import pytest

from include.advise.margins import verdict
from include.advise.objective import LatencyObjective, parse_objective
from include.model.errors import SpecError


@pytest.mark.parametrize(
    ("text", "share", "limit_s"),
    [
        ("latency p95 < 2 s", 0.95, 2.0),
        ("latency p99.9 <= 500 ms", 0.999, 0.5),
        ("95 % within 2 s", 0.95, 2.0),
        (" 99.5% within 250ms ", 0.995, 0.25),
        ("p95 < 2 s", 0.95, 2.0),
        ("Latency P95 < 2000 ms", 0.95, 2.0),
        ("95 % within 2 S", 0.95, 2.0),
        ("99 % within 1.5 min", 0.99, 90.0),
    ],
)
def test_both_forms_are_read(text: str, share: float, limit_s: float) -> None:
    objective = parse_objective(text)

    assert objective.share == pytest.approx(share)
    assert objective.limit_s == pytest.approx(limit_s)


@pytest.mark.parametrize(
    "text",
    ["", "latency < 2 s", "latency p95 < 2", "p95 < 2 h", "95 % within 2000 min",
     "0 % within 2 s", "95 % within 0 s",
     "100 % within 1 s", "latency p95 > 2 s"],
)  # fmt: skip
def test_anything_else_is_refused_with_both_forms(text: str) -> None:
    with pytest.raises(SpecError, match="95 % within 2 s"):
        parse_objective(text)


@pytest.mark.parametrize(("text", "late"), [("p99.9 < 2 s", 1000), ("95 % within 2 s", 20)])
@pytest.mark.parametrize("each_per_s", [0.1, 0.3, 33.3, 1234.567, np.pi])
def test_an_objective_is_held_where_just_as_many_are_within(
    text: str, late: int, each_per_s: float
) -> None:
    objective = parse_objective(text)
    for steps in (late, 3 * late, 144 * late):
        latency = np.where(np.arange(steps) % late == 0, 9.0, 1.0)
        within = objective.within(np.full(steps, each_per_s), latency)
        assert verdict(objective.share, within, within) == "yes"
        latency[1] = 9.0
        within = objective.within(np.full(steps, each_per_s), latency)
        assert verdict(objective.share, within, within) == "no"


def test_records_count_by_load_and_only_where_latency_is_known() -> None:
    load = np.array([10.0, 30.0, 60.0, 1000.0])
    latency = np.array([1.0, 3.0, 2.0, np.nan])

    assert LatencyObjective(0.95, 2.0).within(load, latency) == pytest.approx(0.7)


def test_hours_without_records_hold_every_objective() -> None:
    asked = LatencyObjective(0.95, 2.0)

    assert asked.within(np.zeros(3), np.array([9.0, 9.0, 9.0])) == 1.0
    assert asked.within(np.array([1.0]), np.array([np.nan])) == 1.0
