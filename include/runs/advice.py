"""What advisors would do: each decides like the acting controller, and nothing is carried out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import PurePath
from typing import Any

from include.controllers.base import Controller, Setting
from include.controllers.failures import WHATEVER, error_line, is_ctrl_c, place_in
from include.model.cluster import Changes, operator_of
from include.model.decision import Decision, Reasoned
from include.model.observation import Observation
from include.runs.guard import decide
from include.runs.measurements.rows import AdviceRow

NO_CHANGES = Changes(Counter(), 0, 0)


@dataclass(frozen=True, slots=True)
class Advice:
    """What an advisor would have done at one time, and its memory afterwards.

    Where it failed, ``decided`` is None, ``fault`` says why, and the memory is unchanged.
    """

    advisor: str
    observed: Observation
    decided: Decision | None
    would: Changes
    memory: Any
    fault: str = ""


def ask(
    advisor: str, controller: Controller, memory: Any, observation: Observation, setting: Setting
) -> Advice:
    """The advice of one controller. An exception in it becomes a fault, and the run goes on.

    Actions that the guard would refuse do not count as changes.
    """
    try:
        after, decided, checked = decide(controller, memory, observation, setting)
    except (*WHATEVER, KeyboardInterrupt) as error:
        if is_ctrl_c(error):
            raise
        # A row of measurements, so the same on any machine: no folders.
        where = PurePath(place_in(controller, error)).name
        fault = f"{error_line(error)} ({where})"
        return Advice(advisor, observation, None, NO_CHANGES, memory, fault)
    allowed = (step.action for step, refusal in checked if not refusal)
    return Advice(advisor, observation, decided, Changes.from_actions(allowed, observation), after)


def advice_rows(
    advice: Iterable[tuple[Advice, Changes]], operators: Sequence[str]
) -> dict[str, list[Any]]:
    """Columns of the table ``advice``, a row per operator, each beside what was done then."""
    rows = [row for asked, done in advice for row in _rows(asked, done, operators)]
    return {field.name: [getattr(row, field.name) for row in rows] for field in fields(AdviceRow)}


def _rows(advice: Advice, done: Changes, operators: Sequence[str]) -> Iterator[AdviceRow]:
    observation, would = advice.observed, advice.would
    hosts = sum(not host.releasing for host in observation.hosts.values())
    why = reasons_of(advice)
    for operator in operators:
        instances = len(observation.serving(operator))
        reason, because = why.get(operator, why.get("", ("", "")))
        yield AdviceRow(
            time_s=observation.now_s,
            advisor=advice.advisor,
            operator=operator,
            instances=instances,
            acted_instances=instances + done.instances[operator],
            advised_instances=instances + would.instances[operator],
            hosts=hosts,
            acted_hosts=hosts + done.leases - done.releases,
            would_lease=would.leases,
            would_release=would.releases,
            failed=advice.decided is None,
            reason=reason,
            because=because,
        )


def reasons_of(advice: Advice) -> dict[str, tuple[str, str]]:
    """Reason and sentence of the first action on each operator; where no action is about an
    operator, those of the whole decision under ""."""
    decided = advice.decided
    if decided is None:
        return {"": ("", advice.fault)}
    reasons: dict[str, tuple[str, str]] = {}
    for step in decided.steps:
        if operator := operator_of(step.action, advice.observed):
            reasons.setdefault(operator, _why(step))
    return reasons or {"": _why(decided)}


def _why(step: Decision | Reasoned) -> tuple[str, str]:
    return step.reason.value, step.because
