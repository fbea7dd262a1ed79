"""The search over noisy runs: pretended surfaces instead of runs."""

from __future__ import annotations

import random

import pytest

from include.experiment.spec import RunSpec
from include.model.errors import SpecError
from include.studies.peerj141 import search
from include.studies.peerj141.calibration import PARAMETERS
from include.studies.peerj141.published import published_figure

BEST = {
    "service_scale": 0.83,
    "memory_factor": 2.2,
    "stalls_per_hour": 17.0,
    "stall_max_s": 9.0,
    "latency_ms": 11.0,
}


def pretend(monkeypatch, noise_percent: float) -> list[list[RunSpec]]:
    """Every parameter but one of its own cell is off by 100 % per range; returns what is run."""
    names = [p.name for p in PARAMETERS]
    ranges = {p.name: p.high - p.low for p in PARAMETERS}
    draw, ran = random.Random(5), []
    cells = [("btu-runtime", "stepwise", btu, "resource_cost") for btu in (10.0, 30.0, 60.0)]
    cells += [("threshold", "stepwise", btu, "resource_cost") for btu in (10.0, 30.0)]

    def measured(values, points, pool):
        ran.append(points)
        off = {name: (values[name] - BEST[name]) / ranges[name] for name in names}
        return {
            cell: published_figure(*cell).mean
            * (1 + off[name] + off[name] ** 2 + draw.gauss(0, noise_percent / 100))
            for cell, name in zip(cells, names, strict=True)
        }

    monkeypatch.setattr(search, "published_means", measured)
    return ran


def found(evaluations: int = 96, seeds: int = 12) -> dict[str, float]:
    return search.search(evaluations=evaluations, seeds=seeds, pool=None, report=lambda *_: None)


def test_the_minimum_is_found_in_spite_of_noise(monkeypatch) -> None:
    pretend(monkeypatch, noise_percent=3.0)
    values = found()
    for p in PARAMETERS:
        assert abs(values[p.name] - BEST[p.name]) < 0.04 * (p.high - p.low), p.name


def test_the_same_call_finds_the_same_values(monkeypatch) -> None:
    pretend(monkeypatch, noise_percent=0.0)
    assert found() == found()


def test_every_seed_takes_part_two_at_a_time_and_all_in_refinement(monkeypatch) -> None:
    ran = pretend(monkeypatch, noise_percent=0.0)
    found()
    seen = [{spec.seed for spec in points} for points in ran]
    every = set(range(1, 13))
    assert {len(seeds) for seeds in seen[:96]} == {2}
    assert set().union(*seen[:96]) == every
    assert all(seeds == every for seeds in seen[96:])
    patterns = {spec.pattern for points in ran for spec in points}
    assert patterns == {"stepwise", "random_walk_1"}, "the others are held out"


def test_refinement_keeps_a_step_only_when_the_loss_falls(monkeypatch) -> None:
    pretend(monkeypatch, noise_percent=0.0)
    start = BEST | {"memory_factor": BEST["memory_factor"] + 0.075}
    worse = BEST | {"memory_factor": 2.9}
    refined = search.refine([worse, start], seeds=2, pool=None, report=lambda *_: None)
    assert refined == pytest.approx(BEST)
    assert search.refine([BEST, start], seeds=2, pool=None, report=lambda *_: None) == BEST


def test_the_search_stays_within_the_bounds(monkeypatch) -> None:
    tried: list[dict[str, float]] = []
    pretend(monkeypatch, noise_percent=30.0)
    values = search.search(
        evaluations=96, seeds=3, pool=None, report=lambda _, tried_now: tried.append(tried_now)
    )
    assert len(tried) > 96
    for one in (*tried, values):
        assert all(p.low <= one[p.name] <= p.high for p in PARAMETERS)


def test_too_few_evaluations_for_a_surface_are_refused() -> None:
    with pytest.raises(SpecError, match="42 or more"):
        found(evaluations=41)
