"""PeerJ CS 141, Algorithm 1 (Upscaling Algorithm), line by line."""

from __future__ import annotations

import pytest

from include.controllers.peerj141.upscaling import (
    in_seeded_order,
    predicted_duration_ms,
    up_trigger,
)
from include.model.decision import Reason, Why
from include.model.observation import OperatorSample
from include.testing.builders import a_sample

SLO_MS = 1000.0
RISING = (600.0, 700.0, 800.0, 900.0, 1000.0)  # mean 800, predicted 1100
FALLING = (1200.0, 1000.0, 800.0, 600.0, 400.0)  # mean 800, predicted 200


@pytest.mark.parametrize(
    ("lines", "sample", "expected"),
    [
        (
            "2-4, 16-18: o_d above",
            a_sample(durations_ms=(1001.0,) * 5, waiting_items=51),
            True,
        ),
        ("2: o_d equal to o_slo", a_sample(durations_ms=(1000.0,) * 5, waiting_items=51), False),
        ("2: o_d is a mean, not the last", a_sample(durations_ms=FALLING, waiting_items=51), False),
        ("10-12: predicted above o_slo", a_sample(durations_ms=RISING, waiting_items=51), True),
        ("13-15: neither", a_sample(durations_ms=(999.0,) * 5, waiting_items=9999), False),
        ("19: queue at the threshold", a_sample(durations_ms=RISING, waiting_items=50), False),
    ],
)
def test_up_trigger(lines: str, sample: OperatorSample, expected: bool) -> None:
    assert up_trigger(sample, SLO_MS).upscaling is expected, lines


def test_lines_5_to_9_with_the_numbers_of_a_worked_example() -> None:
    # i = 1..5: observationMean 3, durationMean 800
    # beta = (-2*-200 + -1*-100 + 0 + 1*100 + 2*200) / (4 + 1 + 0 + 1 + 4) = 1000 / 10 = 100
    # alpha = 800 - 100 * 3 = 500; predictedDuration = 500 + 100 * 6 = 1100
    assert predicted_duration_ms(RISING) == pytest.approx(1100.0)


@pytest.mark.parametrize(
    ("durations_ms", "predicted_ms"),
    [
        ((700.0,) * 5, 700.0),
        ((640.0,), 640.0),
        ((100.0, 200.0, 300.0), 400.0),
        ((300.0, 100.0), -100.0),
        ((100.0, 100.0, 100.0, 100.0, 600.0), 500.0),
    ],
)
def test_lines_5_to_9_read_the_fitted_line_one_step_ahead(
    durations_ms: tuple[float, ...], predicted_ms: float
) -> None:
    assert predicted_duration_ms(durations_ms) == pytest.approx(predicted_ms)


def test_line_7_subtracts_the_mean_although_the_paper_prints_a_product() -> None:
    # As printed, beta is the slope times durationMean: a rise of 0.2 ms per observation becomes
    # 100 ms, and an operator at half its SLO would be predicted to be late.
    durations_ms, slo_ms = (500.0, 500.0, 500.0, 500.0, 501.0), 750.0
    printed_beta = sum((i - 3) * (d * 500.2) for i, d in enumerate(durations_ms, start=1)) / 10
    assert 500.2 + printed_beta * 3 == pytest.approx(800.32)
    assert predicted_duration_ms(durations_ms) == pytest.approx(500.8)
    assert not up_trigger(a_sample(durations_ms=durations_ms, waiting_items=51), slo_ms).upscaling


def test_n_limits_the_durations_that_are_fitted() -> None:
    rising_at_the_end = a_sample(durations_ms=(500.0, 100.0, 200.0, 300.0), waiting_items=51)
    assert up_trigger(rising_at_the_end, 390.0, observations=3).upscaling  # predicts 400
    assert not up_trigger(rising_at_the_end, 390.0, observations=4).upscaling  # predicts 150


def test_without_a_recorded_duration_an_operator_is_neither_late_nor_predicted_to_be() -> None:
    trigger = up_trigger(a_sample(durations_ms=(), waiting_items=9999), SLO_MS)
    assert not trigger.upscaling
    assert trigger.why.reason is Reason.NO_MEASUREMENT


def test_the_reason_carries_the_numbers() -> None:
    sample = a_sample("O1", waiting_items=312, durations_ms=(2210.0,) * 5)
    assert up_trigger(sample, 1500.0).why == Why(
        Reason.SLO_VIOLATED, "O1 is late: 2210 ms > 1500 ms, 312 items wait"
    )


def test_operators_come_in_an_order_that_changes_with_time_and_seed_only() -> None:
    names = [f"O{number}" for number in range(1, 10)]
    assert in_seeded_order(names, 1, 60.0) == in_seeded_order(reversed(names), 1, 60.0)
    orders = {tuple(in_seeded_order(names, 1, tick * 60.0)) for tick in range(120)}
    assert len(orders) > 110
    firsts = [in_seeded_order(names, 7, tick * 60.0)[0] for tick in range(900)]
    assert all(60 < firsts.count(name) < 140 for name in names)  # 100 each on average
