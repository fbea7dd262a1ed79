"""The lookup table of one host and its learning: Heinze et al., section IV-C.

Rows are utilisations 0, step, 2 step, ... 1. Columns are the expected rewards of the actions, in
the order of the utilisations that they are meant for: scale in, no action, scale out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T")

Row = tuple[float, ...]
"""The expected rewards of IN, NONE and OUT."""
IN, NONE, OUT = 0, 1, 2
NAMES = ("scale in", "no action", "scale out")

_BEYOND = (
    (0.0, 0.85, 0.70, 0.38),
    (0.1, 0.90, 0.50, 0.35),
    (0.2, 1.00, 0.40, 0.32),
)
"""Table Ia at 0.8, its threshold, 0.9 and 1.0: how far beyond, and the expected rewards of what
the threshold asks for, of no action and of the opposite."""
_JUST_BELOW = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """The parameters of learning, and the thresholds that a new table starts from."""

    lower: float
    upper: float
    target: float
    imp: float = 0.2
    dur: float = 80.0
    beta: float = 0.1
    step: float = 0.05
    penalty: float = 1.0
    rounds_down: bool = False

    def error(self, utilisation: float) -> float:
        """How far a utilisation is from the target, relative to it."""
        return abs(self.target - utilisation) / self.target

    def state(self, utilisation: float) -> int:
        """The row of the nearest utilisation that the table has, or of the next lower one."""
        row = min(max(utilisation, 0.0), 1.0) / self.step
        return math.floor(row + 1e-9) if self.rounds_down else round(row)

    def alpha(self, visits: int) -> float:
        """imp * dur / (dur + visits): what the next update of an entry weighs."""
        return self.imp * self.dur / (self.dur + visits)


@dataclass(frozen=True, slots=True)
class Transition:
    """A decision to learn from: in which state it was taken, and how far off the target."""

    state: int
    action: int
    error: float
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Expected rewards of a host, how often each was updated, and the decision before."""

    rewards: tuple[Row, ...]
    visits: tuple[tuple[int, ...], ...]
    last: Transition | None = None


@cache
def initial_table(learning: Learning) -> Table:
    """The table of a new host: it behaves like the thresholds, and has the values of Table Ia."""
    states = round(1 / learning.step) + 1
    rows = tuple(initial_row(i * learning.step, learning) for i in range(states))
    return Table(rows, ((0, 0, 0),) * states)


def initial_row(utilisation: float, learning: Learning) -> Row:
    """Expected rewards before anything was learned.

    They depend on how far the utilisation is beyond the nearer threshold (the upper one from the
    target on). From the threshold on what it asks for has the highest reward, by Table Ia;
    before it no action has, the less so the nearer the threshold is.
    """
    upper_side = utilisation >= learning.target
    beyond = utilisation - learning.upper if upper_side else learning.lower - utilisation
    beyond = round(beyond, 9)
    if beyond < 0:
        asked, none, opposite = 0.82 + 0.2 * beyond, 0.82 - 0.3 * beyond, 0.38 - 0.2 * beyond
    else:
        asked, none, opposite = _interpolated(beyond)
    return (opposite, none, asked) if upper_side else (asked, none, opposite)


def _interpolated(beyond: float) -> Row:
    """Between the printed rows along straight lines; after the last one as there."""
    for (start, *low), (end, *high) in pairwise(_BEYOND):
        if beyond <= end:
            share = (beyond - start) / (end - start)
            return tuple(a + share * (b - a) for a, b in zip(low, high, strict=True))
    return _BEYOND[-1][1:]


def best_action(row: Row) -> int:
    """The action with the highest expected reward; no action wins a tie."""
    return max((NONE, IN, OUT), key=lambda action: row[action])


def reward(error_before: float, error_after: float) -> float:
    """The immediate reward: above 1 when the error of the utilisation fell."""
    return 1.0 + (error_before - error_after)


def updated(expected: float, alpha: float, earned: float, beta: float, future: float) -> float:
    """Q(s') of Sarsa(0) for the previous state: (1 - a) Q(s') + a (r + b Q(s))."""
    return (1.0 - alpha) * expected + alpha * (earned + beta * future)


def learn(table: Table, utilisation: float, learning: Learning) -> Table:
    """The table after the outcome of its last decision is known; that decision is settled.

    The future reward is that of the same action in the state that was reached, as in the
    example of the paper. A refused decision earns the penalty instead of a reward.
    """
    step = table.last
    if step is None:
        return table
    earned = -learning.penalty if step.refused else reward(step.error, learning.error(utilisation))
    row, visits = table.rewards[step.state], table.visits[step.state]
    new = updated(
        row[step.action],
        learning.alpha(visits[step.action]),
        earned,
        learning.beta,
        table.rewards[learning.state(utilisation)][step.action],
    )
    rewards = _with(table.rewards, step.state, _with(row, step.action, new))
    if best_action(rewards[step.state]) != best_action(row):
        rewards = monotone(rewards, step.state)
    counted = _with(visits, step.action, visits[step.action] + 1)
    return Table(rewards, _with(table.visits, step.state, counted))


def monotone(rewards: tuple[Row, ...], state: int) -> tuple[Row, ...]:
    """Rewards after which a higher utilisation never asks for fewer hosts, seen from ``state``.

    What a state prefers decides: actions that would contradict it at higher or lower
    utilisations are put just below the best one that does not.
    """
    rows = list(rewards)
    bound = best_action(rows[state])
    for other in range(state + 1, len(rows)):
        rows[other] = _at_least(rows[other], bound)
        bound = best_action(rows[other])
    bound = best_action(rows[state])
    for other in reversed(range(state)):
        mirrored = _at_least(rows[other][::-1], OUT - bound)
        rows[other] = mirrored[::-1]
        bound = best_action(rows[other])
    return tuple(rows)


def _at_least(row: Row, action: int) -> Row:
    """The row with every action before ``action`` below the best of the others."""
    if best_action(row) >= action:
        return row
    most = max(row[action:]) - _JUST_BELOW
    return tuple(min(value, most) if i < action else value for i, value in enumerate(row))


def _with(values: tuple[T, ...], position: int, value: T) -> tuple[T, ...]:
    """A copy of a tuple with another value at one position."""
    return (*values[:position], value, *values[position + 1 :])


def decided(table: Table, step: Transition | None) -> Table:
    """The table with the decision to learn from next."""
    return replace(table, last=step)
