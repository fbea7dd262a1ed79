"""The load patterns of ESPA, by the formulas of its generator, worked by hand."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from include.workloads import PATTERNS
from include.workloads.espa.load_patterns import Cosine, Rounds, Walk


def test_a_cosine_without_noise_is_its_formula() -> None:
    """15 minutes are a quarter of a wave: 6 + 4 cos 0 = 10, 6, 2, 6."""
    levels = Cosine(noise=0.0).unfold(7200, seed=1)
    at = [levels.at(60.0 * minute) for minute in (0, 10, 15, 30, 45, 60)]
    assert at == pytest.approx([10.0, 8.0, 6.0, 2.0, 6.0, 10.0])
    assert levels.at(10 * 60 + 59.9) == levels.at(10 * 60)  # holds for a minute
    assert len(levels.levels) == 120


def test_a_shorter_wave_in_shorter_steps_is_the_same_wave() -> None:
    """A fifth of the time, a fifth of the period."""
    hour = Cosine(noise=0.0).unfold(3600, seed=1)
    short = Cosine(noise=0.0, period_s=720.0, hold_s=12.0).unfold(720, seed=1)
    assert short.levels == pytest.approx(hour.levels)


def test_the_noise_of_a_cosine_is_uniform_around_it() -> None:
    plain = Cosine(noise=0.0).unfold(600_000, seed=1).levels
    noisy = Cosine().unfold(600_000, seed=1).levels
    noise = [b - a for a, b in zip(plain, noisy, strict=True)]
    assert max(map(abs, noise)) <= 0.4
    assert sum(noise) / len(noise) == pytest.approx(0.0, abs=0.01)
    assert math.sqrt(sum(n * n for n in noise) / len(noise)) == pytest.approx(
        0.4 / 3**0.5, rel=0.02
    )


def test_a_cosine_is_never_negative() -> None:
    levels = Cosine(mean=1.0, divergence=4.0, noise=0.0).unfold(3600, seed=1)
    assert levels.at(0) == pytest.approx(5.0)
    assert levels.at(1800) == 0.0


def test_a_walk_begins_at_its_start_and_takes_steps_within_their_range() -> None:
    levels = Walk().unfold(600_000, seed=1).levels
    steps = [b - a for a, b in pairwise(levels) if b > 0]
    assert levels[0] == 6.0
    assert -0.4 <= min(steps) < -0.39
    assert 0.39 < max(steps) <= 0.4


def test_a_walk_that_only_rises_stops_at_the_highest_level() -> None:
    """Steps of exactly 1: 6, 7, 8, 8."""
    levels = Walk(down=1.0, up=1.0, highest=8.0).unfold(240, seed=1)
    assert levels.levels == (6.0, 7.0, 8.0, 8.0)


def test_a_walk_that_only_falls_stops_at_nothing() -> None:
    assert Walk(start=1.5, down=-1.0, up=-1.0).unfold(180, seed=1).levels == (1.5, 0.5, 0.0)


def test_rounds_take_a_seventh_and_two_sevenths_of_a_run() -> None:
    """14 iterations: i <= 2 is round 0, then 1 + (i - 2) // 4: i = 3 to 5, 6 to 9, 10 to 13."""
    levels = Rounds(noise=0.0).unfold(14 * 60, seed=1)
    assert levels.levels == (0.0,) * 3 + (4.0,) * 3 + (8.0,) * 4 + (4.0,) * 4


def test_rounds_of_given_length_end_at_nothing() -> None:
    """first 1, round 2: i <= 1, then i = 2, then 3 and 4, and no round is left."""
    levels = Rounds(levels=(1, 2, 3), noise=0.0, first_s=60, round_s=120).unfold(420, seed=1)
    assert levels.levels == (1.0, 1.0, 2.0, 3.0, 3.0, 0.0, 0.0)


@pytest.mark.parametrize("name", ["espa_cosine", "espa_random", "espa_step"])
def test_every_seed_has_its_own_levels(name: str) -> None:
    pattern = PATTERNS[name]()
    assert pattern.unfold(3600, seed=1) != pattern.unfold(3600, seed=2)


@pytest.mark.parametrize(
    ("pattern", "problems"),
    [
        (Cosine(mean=0, noise=-1), ["mean must be above 0, got 0", "noise must be a number"]),
        (Walk(start=-1, down=2, up=1), ["start must be above 0", "down must not be above up"]),
        (Rounds(levels=(), noise=math.inf), ["levels is empty", "noise must be a number"]),
        (Rounds(first_s=30), ["first_s must be at least hold_s (60), got 30"]),
    ],
)
def test_every_wrong_option_is_named_at_once(pattern, problems) -> None:
    reported = list(pattern.problems())
    assert len(reported) == len(problems)
    assert all(text.startswith(start) for text, start in zip(reported, problems, strict=True))
