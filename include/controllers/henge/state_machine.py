"""The state machine of the cluster: Kalim et al., Fig. 3 and section 4.3."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

ROUNDS_TO_CONVERGE = 4
"""Rounds with every SLO met after which the cluster is Converged."""


class Move(Enum):
    """What one round does."""

    STAY = "watch"
    CONVERGE = "converged"
    RECONFIGURE = "give instances to the job that comes first"
    REDUCE = "take instances from jobs that meet their SLO"
    REVERT = "return to the best configuration seen"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundState:
    """What a round in the Not Converged state knows, in yes, no and counts."""

    fell: bool
    """The last reconfiguration made the utility of the cluster drop."""
    at_max: bool
    """Every job meets its SLO."""
    stable_rounds: int
    """Rounds before this one in which every job did."""
    congested: bool
    """Condition (a) of a reduction: most hosts have more to run than cores."""
    reducible: bool
    """Conditions (b) and (c): a job meets its SLO and was not reduced before."""
    just_reduced: bool
    """No reconfiguration has helped since the last reduction: the lockout of section 4.3.2."""
    candidates: bool
    """A job misses its SLO, may be reconfigured and has congested operators."""


def next_move(now: RoundState) -> Move:
    """The cases in the order of the paper's text."""
    if now.fell:
        can_reduce = now.congested and now.reducible and not now.just_reduced
        return Move.REDUCE if can_reduce else Move.REVERT
    if now.at_max:
        return Move.CONVERGE if now.stable_rounds >= ROUNDS_TO_CONVERGE else Move.STAY
    # "No further actions will improve the performance of any topology."
    return Move.RECONFIGURE if now.candidates else Move.REVERT
