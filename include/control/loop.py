"""The control loop: the only place where a decision meets a testbed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from include.control.guard import check
from include.controllers.base import Controller, Setting
from include.model.decision import Decision, Outcome
from include.model.observation import Observation
from include.testbeds.base import Testbed


@dataclass(frozen=True, slots=True)
class Tick:
    """One turn of the loop: what was seen, decided, and became of it; the memory after it."""

    seen: Observation
    decided: Decision
    outcomes: tuple[Outcome, ...]
    memory: Any


@dataclass(frozen=True, slots=True)
class Loop:
    """Observe, decide, guard, apply; at every multiple of the controller's interval."""

    testbed: Testbed
    controller: Controller
    setting: Setting

    def run(self, memory: Any, start_s: float, end_s: float) -> Iterator[Tick]:
        """Every tick from ``start_s`` up to, not at, ``end_s``; then time moves to ``end_s``."""
        interval_s = self.controller.interval_s
        turn = math.ceil(start_s / interval_s - 1e-9)
        while turn * interval_s < end_s:
            self.testbed.advance_to(turn * interval_s)
            seen = self.testbed.observe()
            memory, decided = self.controller.decide(memory, seen)
            yield Tick(seen, decided, self._apply(decided, seen), memory)
            turn += 1
        self.testbed.advance_to(end_s)

    def deploy(self, decided: Decision) -> tuple[Outcome, ...]:
        """Carry out the first decision; returns when everything it started is up."""
        return self.testbed.deploy(decided)

    def _apply(self, decided: Decision, seen: Observation) -> tuple[Outcome, ...]:
        if not decided.steps:
            return ()
        checked = check(decided, seen, self.setting)
        allowed = replace(decided, steps=tuple(one.step for one in checked if not one.refusal))
        applied = iter(self.testbed.apply(allowed))
        return tuple(
            Outcome(one.step.action, one.step.because, False, "", one.refusal)
            if one.refusal
            else next(applied)
            for one in checked
        )
