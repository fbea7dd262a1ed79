"""Which operator can lose an instance: Operator Selection Algorithm, PeerJ CS 141, Algorithm 3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """W1 to W4 by what they weigh, QL and P. The defaults are those of the evaluation.

    The preprint numbers the weights in another order; the names avoid the question.
    """

    instances: float = 1.0
    queue_load: float = 1.0
    delay: float = 1.0
    scalings: float = 1.0
    empty_queue_bonus: float = 100.0
    penalty_per_item: float = 0.0001


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Inputs of Algorithm 3 for one operator: o_#, o_d, o_slo, o_queue and o_s.

    Numbers, or arrays of many operators at once.
    """

    instances: Any
    duration_ms: Any
    slo_ms: Any
    waiting_items: Any
    scalings: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class AllOperators:
    """Inputs of Algorithm 3 over all operators: minimum and maximum of o_#, sum of o_s."""

    fewest_instances: int
    most_instances: int
    scalings: int


Utility = Callable[[Candidate, AllOperators, Weights], Any]


def utility_final(op: Candidate, among: AllOperators, weigh: Weights) -> Any:
    """Algorithm 3 of PeerJ CS 141, down(o). Negative: every instance is needed."""
    instances = _share_of_range(op, among)  # line 5
    delay = op.duration_ms / op.slo_ms * (1 + weigh.penalty_per_item)  # line 6
    scalings = _share_of_scalings(op, among)  # line 7
    queue_load = np.where(op.waiting_items < 1, weigh.empty_queue_bonus, 0.0)  # lines 8-12
    value = (  # line 13
        1
        + weigh.instances * instances
        + weigh.queue_load * queue_load
        - weigh.delay * delay
        - weigh.scalings * scalings
    )
    return np.where(op.instances < 2, -1.0, value)  # lines 2-4


def utility_preprint(op: Candidate, among: AllOperators, weigh: Weights) -> Any:
    """Algorithm 3 of the preprint: no leading 1, and P alone weighs the delay."""
    instances = _share_of_range(op, among)  # line 5
    delay = op.duration_ms / op.slo_ms * weigh.penalty_per_item  # line 6
    scalings = _share_of_scalings(op, among)  # line 7
    queue_load = np.where(op.waiting_items < 1, weigh.empty_queue_bonus, 0.0)  # lines 8-12
    value = (  # line 13
        instances * weigh.instances
        - delay * weigh.delay
        - scalings * weigh.scalings
        + queue_load * weigh.queue_load
    )
    return np.where(op.instances < 2, -1.0, value)  # lines 2-4


UTILITIES: Mapping[str, Utility] = {"final": utility_final, "preprint": utility_preprint}


def _share_of_range(op: Candidate, among: AllOperators) -> Any:
    """Line 5. When all operators have as many instances the fraction is 0/0: it counts as 0."""
    spread = among.most_instances - among.fewest_instances
    return (op.instances - among.fewest_instances) / spread if spread else 0.0


def _share_of_scalings(op: Candidate, among: AllOperators) -> Any:
    """Line 7. Before the first scaling the fraction is 0/0: it counts as 0."""
    return op.scalings / among.scalings if among.scalings else 0.0


def best_first(utilities: Mapping[str, float]) -> dict[str, float]:
    """The operators with a positive utility, highest first; ties keep their order."""
    positive = [(name, value) for name, value in utilities.items() if value > 0]
    return dict(sorted(positive, key=lambda item: -item[1]))


def record_highs(utilities: Mapping[str, float]) -> dict[str, float]:
    """The original runtime's choice: utilities above 0 and all previous ones, highest first."""
    counted: dict[str, float] = {}
    highest = 0.0
    for name, value in utilities.items():
        if value > highest:
            counted[name] = highest = value
    return dict(reversed(counted.items()))
