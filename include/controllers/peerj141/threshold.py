"""The threshold baseline: PeerJ CS 141, "Baseline"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from include.controllers.base import Setting
from include.controllers.first_fit import release_empty_hosts, start_first_fit
from include.controllers.plan import NoMemory, Plan
from include.model.decision import Decision, Reason, Why
from include.model.observation import InstanceSample, Observation, OperatorSample


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """Scales on the number of waiting items alone, whatever a BTU costs.

    The defaults are those that reproduce the published tables: upper thresholds of the
    original runtime, lower one of the paper. ``reuse_places_at_once`` gives the place of an
    instance away in the decision that stops it.
    """

    setting: Setting
    interval_s: float = 60.0
    scale_up_above_items: int = 250
    scale_up_twice_above_items: int = 1250
    scale_down_below_items: int = 1
    reuse_places_at_once: bool = True

    def problems(self) -> Iterator[str]:
        """Options that make no sense, each with what to do."""
        if self.interval_s <= 0:
            yield f"interval_s must be above 0, got {self.interval_s}"
        if self.scale_up_twice_above_items < self.scale_up_above_items:
            yield (
                f"scale_up_twice_above_items ({self.scale_up_twice_above_items}) must not be "
                f"below scale_up_above_items ({self.scale_up_above_items})"
            )
        if self.scale_down_below_items > self.scale_up_above_items:
            yield (
                f"scale_down_below_items ({self.scale_down_below_items}) must not be above "
                f"scale_up_above_items ({self.scale_up_above_items}), or it would scale up and down"
            )

    def initial_instances(self) -> Mapping[str, int]:
        """One instance of every operator."""
        return dict.fromkeys(self.setting.topology.operator_names, 1)

    def initial_memory(self) -> NoMemory:
        """It looks at the present only."""
        return NoMemory()

    def decide(self, memory: NoMemory, seen: Observation) -> tuple[NoMemory, Decision]:
        """Give back empty hosts, then look at every queue, then keep the leases that end."""
        plan = Plan(self.setting, seen)
        release_empty_hosts(plan)
        for name in self.setting.topology.operator_names:
            if name in seen.operators:
                self._scale(plan, seen.operators[name])
        plan.keep_leases(0)
        told = (
            f"nothing to do: every queue of {len(seen.operators)} is between its thresholds "
            f"or at one instance"
        )
        return memory, plan.decision(Why(Reason.NOTHING_TO_DO, told))

    def _scale(self, plan: Plan, sample: OperatorSample) -> None:
        name, waiting = sample.operator, sample.waiting_items
        if waiting > self.scale_up_twice_above_items:
            told = f"{name} has {waiting} > {self.scale_up_twice_above_items} items waiting"
            start_first_fit(plan, name, Why(Reason.QUEUE_LONG, told))
            start_first_fit(plan, name, Why(Reason.QUEUE_LONG, told))
        elif waiting > self.scale_up_above_items:
            told = f"{name} has {waiting} > {self.scale_up_above_items} items waiting"
            start_first_fit(plan, name, Why(Reason.QUEUE_LONG, told))
        elif plan.count(name) == 0:
            told = f"{name} has no instance left"
            start_first_fit(plan, name, Why(Reason.INSTANCE_LOST, told))
        elif waiting < self.scale_down_below_items:
            victim = least_colocated(plan, name)
            if victim is not None:
                floor = self.scale_down_below_items
                told = f"{name} has {waiting} < {floor} items waiting"
                why = Why(Reason.QUEUE_SHORT, told)
                plan.stop(victim, why, frees=self.reuse_places_at_once)


def least_colocated(plan: Plan, operator: str) -> InstanceSample | None:
    """The instance to stop: the one that shares its host with the fewest, so that hosts empty.

    On a tie the host leased last. None when no instance may stop (docs/deviations.md, THR-VICTIM).
    """
    order = plan.order_of_lease
    candidates = [
        one for one in plan.serving(operator) if one.host in plan.free and plan.may_stop(one)
    ]
    return min(
        candidates,
        key=lambda one: (len(plan.on_host(one.host)), -order[one.host]),
        default=None,
    )
