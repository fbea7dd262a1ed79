"""Refuse what cannot be done, and say why: a pure check between controller and testbed."""

from __future__ import annotations

from typing import Any, get_type_hints

from include.controllers.base import Controller, Setting
from include.controllers.failures import deadline
from include.model.cluster import PlannedCluster
from include.model.decision import ACTION_NAMES, Decision, Reason, Reasoned
from include.model.observation import Observation

TEXTS = {
    kind: [name for name, hint in get_type_hints(kind).items() if hint is str]
    for kind in ACTION_NAMES
}
"""By action, its fields that are texts."""


def planned(observation: Observation, setting: Setting) -> PlannedCluster:
    """The observed cluster, for the actions of a decision to be applied to."""
    return PlannedCluster(
        observed=observation,
        topology=setting.topology,
        flavor=setting.flavor,
        max_hosts=setting.max_hosts,
        btu_s=setting.btu_s,
    )


def decide(
    controller: Controller, memory: Any, observation: Observation, setting: Setting
) -> tuple[Any, Decision, list[tuple[Reasoned, str]]]:
    """Memory and decision of a controller, and what `check` says of the decision.

    Raises TypeError for a memory that the next window could not read, and for what is no decision,
    TimeoutError where there is none in time.
    """
    with deadline():
        both = controller.decide(memory, observation)
    if not isinstance(both, tuple) or len(both) != 2:
        raise TypeError(f"decide returns {both!r:.60} in place of a memory and a Decision")
    after, decided = both
    if after.__class__ is not memory.__class__:
        raise TypeError(
            f"decide returns a memory of class {after.__class__.__name__} for one of "
            f"{memory.__class__.__name__}; make it the class that initial_memory returns"
        )
    _require_decision(decided)
    return after, decided, check(decided, observation, setting)


def check(
    decision: Decision, observation: Observation, setting: Setting
) -> list[tuple[Reasoned, str]]:
    """Every step of a decision, and why it is refused ("" when it is not), as if those before it
    were carried out."""
    if not decision.steps:
        return []
    cluster = planned(observation, setting)
    return [(step, cluster.apply(step.action)) for step in decision.steps]


def _require_decision(decided: Any) -> None:
    """Raise TypeError where rows could not store it."""
    if not isinstance(decided, Decision):
        raise TypeError(f"decide returns {decided!r:.60} in place of a Decision")
    _require_why(decided)
    if not isinstance(decided.steps, tuple | list):  # an iterator is empty once it was looked at
        raise TypeError(f"steps must be a tuple, got {decided.steps!r:.60}")
    for step in decided.steps:
        if not isinstance(step, Reasoned) or type(step.action) not in TEXTS:
            raise TypeError(f"{step!r:.60} is no step of a Decision")
        _require_why(step)
        for name in TEXTS[type(step.action)]:
            if not isinstance(getattr(step.action, name), str):
                raise TypeError(f"{name} must be a text, got {step.action!r:.60}")


def _require_why(why: Decision | Reasoned) -> None:
    if not isinstance(why.reason, Reason):
        raise TypeError(f"reason must be one of Reason, got {why.reason!r:.40}")
    if not isinstance(why.because, str):
        raise TypeError(f"because must be a text, got {why.because!r:.40}")
    why.because.encode()  # raises for half of a character
