"""When an operator needs another instance: Upscaling Algorithm, PeerJ CS 141, Algorithm 1."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from include.model.decision import Reason, Why
from include.model.observation import OperatorSample

OBSERVATIONS = 5
"""N, the number of latest processing durations (BTU-OD)."""

SCALING_THRESHOLD_ITEMS = 50
"""scalingThreshold, "Evaluation configuration"."""


@dataclass(frozen=True, slots=True)
class UpTrigger:
    """The answer of Algorithm 1 and the numbers that led to it."""

    upscaling: bool
    why: Why


def predicted_duration_ms(durations_ms: Sequence[float]) -> float:
    """Lines 5 to 9: a least-squares line through the durations (i = 1 is the oldest), at N + 1.

    The paper numbers from the latest (docs/deviations.md, PEERJ-141-A1-I). Line 7 prints
    ``o_d_i * durationMean``; the linear least squares estimator that the text names subtracts, and
    so does this (PEERJ-141-A1-L7). A single duration predicts itself.
    """
    n = len(durations_ms)
    if n < 2:
        return durations_ms[-1]
    observation_mean = (n + 1) / 2  # line 5: the mean of 1..N
    duration_mean = fmean(durations_ms)  # line 6
    beta = sum(  # line 7
        (i - observation_mean) * (duration_ms - duration_mean)
        for i, duration_ms in enumerate(durations_ms, start=1)
    ) / sum((i - observation_mean) ** 2 for i in range(1, n + 1))
    alpha = duration_mean - beta * observation_mean  # line 8
    return alpha + beta * (n + 1)  # line 9


def up_trigger(
    sample: OperatorSample,
    slo_ms: float,
    scaling_threshold_items: int = SCALING_THRESHOLD_ITEMS,
    observations: int = OBSERVATIONS,
    predict: Callable[[Sequence[float]], float] = predicted_duration_ms,
) -> UpTrigger:
    """Algorithm 1, upTrigger(o, N). Without a recorded duration nothing is late."""
    duration_ms = sample.duration_ms  # o_d
    if duration_ms is None:
        sentence = f"{sample.operator} has recorded no duration yet"
        return UpTrigger(False, Why(Reason.NO_MEASUREMENT, sentence))
    predicted_ms = predict(sample.durations_ms[-observations:])
    if duration_ms > slo_ms:  # lines 2-4
        sentence = f"{sample.operator} is late: {duration_ms:.0f} ms > {slo_ms:.0f} ms"
        late = Why(Reason.SLO_VIOLATED, sentence)
    elif predicted_ms > slo_ms:  # lines 10-12
        sentence = (
            f"{sample.operator} will be late: {predicted_ms:.0f} ms > {slo_ms:.0f} ms predicted"
        )
        late = Why(Reason.SLO_AT_RISK, sentence)
    else:  # lines 13-15
        sentence = f"{sample.operator} is in time: {duration_ms:.0f} ms"
        return UpTrigger(False, Why(Reason.SLO_MET, sentence))
    waiting = late + f", {sample.waiting_items} items wait"
    return UpTrigger(sample.waiting_items > scaling_threshold_items, waiting)  # lines 16-19


def in_seeded_order(names: Iterable[str], seed: int, now_s: float) -> list[str]:
    """The names in an order that looks random and follows from seed and time alone.

    Who comes first gets the last free place, so a fixed order would favour one operator.
    """

    def rank(name: str) -> bytes:
        return hashlib.blake2b(f"{seed}:{now_s:.3f}:{name}".encode(), digest_size=8).digest()

    return sorted(names, key=rank)
