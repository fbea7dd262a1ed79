"""The control loop: the only place where a decision meets a testbed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import merge
from itertools import groupby
from typing import Any

from include.controllers.base import Controller, Setting
from include.controllers.failures import WHATEVER, decide_failed, is_ctrl_c
from include.model.cluster import Changes
from include.model.decision import Decision, Outcome, Reasoned
from include.model.observation import Observation
from include.runs.advice import Advice, ask
from include.runs.guard import decide
from include.testbeds.base import ACTS, Testbed


@dataclass(frozen=True, slots=True)
class Tick:
    """One observation, the decision on it, the outcome of each action, and the memory after."""

    observed: Observation
    decided: Decision
    outcomes: tuple[Outcome, ...]
    memory: Any

    @property
    def changes(self) -> Changes:
        """What was carried out."""
        accepted = (outcome.action for outcome in self.outcomes if outcome.accepted)
        return Changes.from_actions(accepted, self.observed)


@dataclass(frozen=True, slots=True)
class Turn:
    """One time at which the acting controller, advisors, or both decide.

    ``memories`` are those afterwards, by name; the acting controller's is called ``ACTS``.
    """

    acted: Tick | None
    advice: tuple[Advice, ...]
    memories: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Loop:
    """Observe, decide, guard, apply; at every multiple of the controller's interval.

    Advisors see what the controller would in their place, at every multiple of their own interval,
    and are asked once it has acted.
    """

    testbed: Testbed
    controller: Controller
    setting: Setting
    advisors: Mapping[str, Controller] = field(default_factory=dict)

    def turns(self, memories: Mapping[str, Any], start_s: float, end_s: float) -> Iterator[Turn]:
        """Every turn from ``start_s`` up to, not at, ``end_s``; then time moves to ``end_s``."""
        for at_s, due in self._due(start_s, end_s):
            self.testbed.advance_to(at_s)
            observations = {who: self.testbed.observe(who) for who in due if who != ACTS}
            acted = self._act(memories[ACTS]) if ACTS in due else None
            advice = tuple(
                ask(who, self.advisors[who], memories[who], observations[who], self.setting)
                for who in observations
            )
            memories = {**memories, **{asked.advisor: asked.memory for asked in advice}}
            if acted:
                memories[ACTS] = acted.memory
            yield Turn(acted, advice, memories)
        self.testbed.advance_to(end_s)

    def _act(self, memory: Any) -> Tick:
        observation = self.testbed.observe()
        try:
            memory, decided, checked = decide(self.controller, memory, observation, self.setting)
        except (*WHATEVER, KeyboardInterrupt) as error:
            if is_ctrl_c(error):
                raise
            raise decide_failed(self.controller, observation.now_s, error) from error
        return Tick(observation, decided, self._apply(decided, checked), memory)

    def _due(self, start_s: float, end_s: float) -> Iterator[tuple[float, list[str]]]:
        """Times and who decides then; times that are equal to a microsecond are merged."""
        ticks = merge(
            *(
                _ticks(who, decider.interval_s, start_s, end_s)
                for who, decider in {ACTS: self.controller, **self.advisors}.items()
            )
        )
        for _, due in groupby(ticks, key=lambda tick: round(tick[0] * 1e6)):
            times_s, who = zip(*due, strict=True)
            yield times_s[0], list(who)

    def _apply(
        self, decided: Decision, checked: Sequence[tuple[Reasoned, str]]
    ) -> tuple[Outcome, ...]:
        if not checked:
            return ()
        allowed = replace(decided, steps=tuple(step for step, refusal in checked if not refusal))
        applied = iter(self.testbed.apply(allowed))
        return tuple(
            Outcome(step.action, step.because, False, "", refusal) if refusal else next(applied)
            for step, refusal in checked
        )


def _ticks(
    who: str, interval_s: float, start_s: float, end_s: float
) -> Iterator[tuple[float, str]]:
    for tick in range(_first_tick(interval_s, start_s), _first_tick(interval_s, end_s)):
        yield tick * interval_s, who


def _first_tick(interval_s: float, from_s: float) -> int:
    """Number of the first tick that is not before ``from_s``, to a billionth of the interval.

    However long the interval, tick 0 is at second 0 only.
    """
    return max(math.ceil(from_s / interval_s - 1e-9), int(from_s > 0))
