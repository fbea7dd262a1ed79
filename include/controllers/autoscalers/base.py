"""One adapter for all: from how many instances each operator should have to a decision."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from include.controllers.autoscalers.rates import Paths
from include.controllers.base import Gauge, Setting
from include.controllers.first_fit import least_colocated, release_empty_hosts, start_first_fit
from include.controllers.plan import Plan
from include.model.decision import Decision, Reason, Why
from include.model.errors import below_0, not_above_0, unknown_name
from include.model.observation import Observation

WHEN_EMPTY, HOLD_TO_BTU_END = "when_empty", "hold_to_btu_end"
RELEASES = (WHEN_EMPTY, HOLD_TO_BTU_END)


@dataclass(frozen=True, slots=True)
class Recommendation:
    """How many instances an operator should have, and why."""

    instances: int
    why: Why


@dataclass(frozen=True, kw_only=True)
class Autoscaler(ABC):
    """What all of them share: a rule says how many, this class where, and what becomes of hosts.

    Instances start on the first host with room, on a new one where none has. The one that shares
    its host with the fewest stops. ``release`` says when a host without instances is given back:
    "when_empty", as a node autoscaler does, or "hold_to_btu_end", just before the next BTU of its
    lease would be paid; until then it takes instances again.
    """

    setting: Setting
    interval_s: float = 60.0
    release: str = WHEN_EMPTY

    watches: ClassVar[str]
    """What the rule looks at, with its unit."""
    may_be_zero: ClassVar[frozenset[str]] = frozenset()
    """Options that may be 0; all other numbers must be above."""

    @abstractmethod
    def initial_memory(self) -> Any:
        """What the rule remembers before it has seen anything."""

    @abstractmethod
    def targets(self, memory: Any, seen: Observation) -> tuple[Any, Mapping[str, Recommendation]]:
        """The rule: what to remember, and a target for every operator that it has an opinion on."""

    @abstractmethod
    def watched(self, memory: Any, seen: Observation, operator: str) -> Gauge | None:
        """What the rule looks at of an operator; None where it can say nothing yet."""

    def waits(self, memory: Any, seen: Observation) -> Why | None:
        """Why the rule changes nothing at this look, from its memory before it; None if it may."""
        return None

    def problems(self) -> Iterator[str]:
        if self.release not in RELEASES:
            yield unknown_name("release", self.release, RELEASES)
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                problems = below_0 if field.name in self.may_be_zero else not_above_0
                yield from problems(self, field.name)

    @cached_property
    def _paths(self) -> Paths:
        return Paths(self.setting.topology)

    def initial_instances(self) -> Mapping[str, int]:
        return dict.fromkeys(self.setting.topology.operator_names, 1)

    def decide(self, memory: Any, seen: Observation) -> tuple[Any, Decision]:
        """Ask the rule, then start, stop and lease what it takes."""
        waits = self.waits(memory, seen)
        memory, targets = self.targets(memory, seen)
        plan = Plan(self.setting, seen)
        if self.release == WHEN_EMPTY:
            release_empty_hosts(plan)
        for name in self.setting.topology.operator_names:
            if name in seen.operators:
                reconcile(plan, name, targets.get(name))
        if self.release == HOLD_TO_BTU_END:
            release_at_btu_end(plan, self.interval_s)
        plan.keep_leases(0)
        as_it_is = "no operator that was read should have more or fewer instances"
        return memory, plan.decision(waits or Why(Reason.NOTHING_TO_DO, as_it_is))


def min_above_max(options: Any) -> Iterator[str]:
    """Sentence for bounds of the instances that leave no number between them."""
    if options.min_instances > options.max_instances:
        yield (
            f"min_instances ({options.min_instances}) must not be above max_instances "
            f"({options.max_instances})"
        )


def reconcile(plan: Plan, operator: str, target: Recommendation | None) -> None:
    """Start or stop instances until there are as many as the target says, and at least one."""
    if plan.count(operator) == 0:
        detail = f"{operator} has no instance left"
        start_first_fit(plan, operator, Why(Reason.INSTANCE_LOST, detail))
    if target is None:
        return
    while plan.count(operator) < target.instances:
        count = plan.count(operator)
        start_first_fit(plan, operator, target.why)
        if plan.count(operator) == count:
            return  # no host is to be had
    while plan.count(operator) > max(1, target.instances):
        candidates = plan.stoppable(operator)
        if not candidates:
            return
        plan.stop(least_colocated(plan, candidates), target.why)


def release_at_btu_end(plan: Plan, interval_s: float) -> None:
    """Give empty hosts back at the last look before their next BTU would be paid."""
    for host in plan.hosts:
        left_s = host.paid_until_s - plan.now_s
        if left_s < interval_s and plan.is_empty(host.host) and len(plan.free) > 1:
            detail = f"{host.host} is empty, and its BTU ends in {left_s:.0f} s"
            plan.release(host, Why(Reason.HOST_EMPTY, detail))


def target_of(
    current: int,
    wanted: int,
    detail: str,
    up: Reason = Reason.UTILISATION_HIGH,
    down: Reason = Reason.UTILISATION_LOW,
) -> Recommendation:
    """A target with the reason that its direction gives."""
    return Recommendation(wanted, Why(up if wanted > current else down, detail))
