"""Rounds that a boot holds up, as those of the authors' runtime.

visp-streaming/runtime c3f9999: ``ReasonerBTU`` (line 81) and ``ReasonerBasic`` (line 70) run every
``reasoninginterval`` at a fixed rate, ``synchronized``, and start a host from their loop over the
operators (``ReasonerBTU``, lines 114 to 127; ``ReasonerBasic``, lines 104 to 118). ``startVM``
returns once the host answers (``OpenstackConnector``, lines 110 to 120 and 167 to 180), or sleeps
as long for a host of a pool (``ResourcePoolConnector``, line 79). Nothing runs it elsewhere.

A controller that blocks is asked every few seconds. It answers nothing while a host boots, and
then goes on with the operators that the round has not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from include.controllers.plan import Plan
from include.model.decision import Decision, Reason, Why
from include.model.observation import Observation


@dataclass(frozen=True, slots=True)
class Round:
    """When the next round is due, and where the one of now is.

    ``left``: operators that it has still to look at, in order; None between two rounds.
    """

    next_s: float = 0.0
    left: tuple[str, ...] | None = None

    def wait(self, observation: Observation) -> Decision | None:
        """The decision to wait for a boot or for the next round; None when it is time to look."""
        booting = sorted(
            host.host for host in observation.hosts.values() if not (host.up or host.releasing)
        )
        if booting:
            because = f"{', '.join(booting)} boots, and nothing else is looked at until it is up"
            return Decision((), because, Reason.SETTLING)
        if self.left is None and observation.now_s < self.next_s:
            return Decision((), f"the next round is at {self.next_s:.0f} s", Reason.SETTLING)
        return None

    def begin(self, operators: Iterable[str], round_s: float) -> Round:
        """A new round. Late ones follow each other at once, as Java's fixed rate has it."""
        return Round(self.next_s + round_s, tuple(operators))

    def at(self, left: Iterable[str]) -> Round:
        return replace(self, left=tuple(left))

    def end(self) -> Round:
        return replace(self, left=None)


def until_a_lease(
    plan: Plan, operators: tuple[str, ...], look: Callable[[str], None]
) -> tuple[str, ...]:
    """Look at operators in turn until the plan has leased a host; returns those after it."""
    for place, name in enumerate(operators):
        if leased(plan):
            return operators[place:]
        look(name)
    return ()


def leased(plan: Plan) -> bool:
    """Whether this plan has leased a host."""
    return plan.last_order_was_within(0.0)


def problems(interval_s: float, round_s: float) -> Iterator[str]:
    """What is wrong with the two times of a controller with ``boot_blocks``."""
    if interval_s >= round_s:
        yield (
            f"with boot_blocks interval_s ({interval_s}) is how often it looks whether a host is "
            f"up, and must be below round_s ({round_s}); try interval_s: 3"
        )


NOTHING = Why(Reason.NOTHING_TO_DO, "nothing to do: no operator that was looked at has to change")
