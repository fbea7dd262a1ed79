"""What advisors would do: each asked like a controller that acts, and nothing of it carried out."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from include.controllers.base import Controller, Setting
from include.model.cluster import Changes, operator_of
from include.model.decision import Decision, Reasoned
from include.model.observation import Observation
from include.runs.guard import check
from include.runs.measurements.rows import AdviceRow

Columns = dict[str, list[Any]]


NO_CHANGES = Changes(Counter(), 0, 0)


@dataclass(frozen=True, slots=True)
class Advice:
    """What an advisor would have done at one time, and its memory after it.

    Of one that failed ``decided`` is absent, ``fault`` says why, and the memory is that before.
    """

    advisor: str
    seen: Observation
    decided: Decision | None
    would: Changes
    memory: Any
    fault: str = ""


def ask(
    advisor: str, controller: Controller, memory: Any, seen: Observation, setting: Setting
) -> Advice:
    """Ask an advisor. Whatever goes wrong in it is its own matter: the run goes on.

    What the guard would refuse changes nothing.
    """
    try:
        after, decided = controller.decide(memory, seen)
        allowed = (one.step.action for one in check(decided, seen, setting) if not one.refusal)
        return Advice(advisor, seen, decided, Changes.of(allowed, seen), after)
    except Exception as error:
        fault = " ".join(f"{type(error).__name__}: {error}".split())
        return Advice(advisor, seen, None, NO_CHANGES, memory, fault[:200])


def advice_rows(
    advice: Iterable[tuple[Advice, Changes]], operators: Sequence[str]
) -> dict[str, list[Any]]:
    """Columns of the table ``advice``, a row per operator, each beside what was done then."""
    names = [field.name for field in dataclasses.fields(AdviceRow)]
    columns: Columns = {name: [] for name in names}
    for one, done in advice:
        for row in _rows(one, done, operators):
            for name in names:
                columns[name].append(getattr(row, name))
    return columns


def _rows(advice: Advice, done: Changes, operators: Sequence[str]) -> Iterator[AdviceRow]:
    seen, would = advice.seen, advice.would
    hosts = sum(not host.releasing for host in seen.hosts.values())
    why = _reasons(advice)
    for operator in operators:
        instances = len(seen.serving(operator))
        reason, because = why.get(operator, why.get("", ("", "")))
        yield AdviceRow(
            time_s=seen.now_s,
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


def _reasons(advice: Advice) -> dict[str, tuple[str, str]]:
    """By operator the first reason to start, stop or move an instance of it; as "" that of the
    whole decision, where it is about no operator more than another."""
    decided = advice.decided
    if decided is None:
        return {"": ("", advice.fault)}
    found: dict[str, tuple[str, str]] = {}
    for step in decided.steps:
        if operator := operator_of(step.action, advice.seen):
            found.setdefault(operator, _why(step))
    return found or {"": _why(decided)}


def _why(one: Decision | Reasoned) -> tuple[str, str]:
    return one.reason.value, one.because
