"""The BTU-based controller as the original runtime behaved, where that differs from the paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from include.controllers.peerj141.btu import TWICE_ABOVE_ITEMS, Btu, BtuMemory
from include.controllers.peerj141.procedures import Spare, btu_ends, most_suitable
from include.controllers.peerj141.reclaim import AllOperators, record_highs
from include.controllers.peerj141.upscaling import UpTrigger
from include.controllers.plan import Plan
from include.model.decision import Decision, Reason, Why
from include.model.observation import HostSample, Observation, OperatorSample
from include.model.topology import Operator


@dataclass(frozen=True, kw_only=True)
class BtuRuntime(Btu):
    """Acts first and looks afterwards; each method says how it differs from the paper.

    Read in visp-streaming/runtime: ``ReasonerBTU``, ``ReasonerUtility``, ``Monitor``. With
    ``serves_on`` a stopped or moved instance works until the next tick: it would end when a file
    below "~" exists (``Receiver`` of visp-streaming/processingNodes), which Java does not expand,
    and is killed by ``ProcessingNodeManagement``. ``of_broker`` counts queues as ``Monitor``: the
    longest one, with what instances hold of it.
    """

    reclaim_for_migrations: bool = True
    keeps_guarded: bool = True
    serves_on: bool = True
    of_broker: bool = True

    def decide(self, memory: BtuMemory, seen: Observation) -> tuple[BtuMemory, Decision]:
        """As the paper's, on the queues that ``Monitor`` reads."""
        if not self.of_broker:
            return super().decide(memory, seen)
        operators = {
            name: one
            if one.longest_queue_items is None
            else replace(one, waiting_items=one.longest_queue_items)
            for name, one in seen.operators.items()
        }
        return super().decide(memory, replace(seen, operators=operators))

    def trigger(self, sample: OperatorSample, op: Operator) -> UpTrigger:
        """A queue above TWICE_ABOVE_ITEMS suffices, late or not."""
        trigger = super().trigger(sample, op)
        if not trigger.upscaling and sample.waiting_items > TWICE_ABOVE_ITEMS:
            told = f"{op.name} has {sample.waiting_items} > {TWICE_ABOVE_ITEMS} items waiting"
            return UpTrigger(True, Why(Reason.QUEUE_LONG, told))
        return trigger

    def all_operators(self, instances: NDArray[np.int64], scalings: int) -> AllOperators:
        """The minimum starts at 0 and so stays 0."""
        most = int(instances.max())
        return AllOperators(fewest_instances=0, most_instances=most, scalings=scalings)

    def counted(self, utilities: Mapping[str, float]) -> Mapping[str, float]:
        """Only utilities above all before them, in the order of the operators."""
        return record_highs(utilities)

    def start_one(self, plan: Plan, op: Operator, why: Why, spare: Spare) -> None:
        """Without room, one instance of the best operator is stopped and a host leased as well."""
        choice = plan.free.best(op, self.cache_factor)
        if choice is not None:
            plan.start(op.name, choice.host, why + most_suitable(choice))
            return
        if not plan.fits_an_empty_host(op):
            return
        self._stop_one_of_the_best(plan, op, spare(plan))
        handle = plan.lease(Why(Reason.NO_CAPACITY, f"{why}; no host has room"))
        plan.start(op.name, handle, why + "; on the new host")

    def retire_one(self, plan: Plan, host: HostSample, spare: Spare) -> None:
        """Every counted operator is cut on the host, as long as an instance of it stays.

        Then the others are moved one by one. When one does not fit, an instance of the best
        operator is stopped for it, and the host is prolonged all the same; what was cut and
        moved by then stays so.
        """
        ends = btu_ends(plan, host)
        if plan.is_given_work(host.host):
            told = f"{ends}, and it has just been given an instance"
            plan.prolong(host, Why(Reason.HOST_NEEDED, told))
            return
        utilities = spare(plan)
        for one in reversed(plan.on_host(host.host)):
            if one.operator in utilities and plan.may_stop(one):
                utility = utilities[one.operator]
                told = f"; {one.operator} has utility {utility:.2f}"
                plan.stop(one, ends + told, serves_s=self._serves_s(plan, host))
        for one in plan.on_host(host.host):
            op = plan.operator(one.operator)
            choice = plan.free.best(op, self.cache_factor, only_up=True, leaving=host.host)
            if choice is None:
                if self.reclaim_for_migrations:
                    self._stop_one_of_the_best(plan, op, spare(plan))
                told = f"{ends}; no other host has room for {one.instance}"
                plan.prolong(host, Why(Reason.HOST_NEEDED, told))
                return
            why = ends + f"; {one.operator} fits on {choice.host}"
            plan.migrate(one, choice.host, why, serves_s=self._serves_s(plan, host))
        plan.release(host, ends + "; its instances were stopped or moved")

    def _serves_s(self, plan: Plan, host: HostSample) -> float:
        """Until the next tick, but not longer than the host is paid for."""
        left_s = max(0.0, host.paid_until_s - plan.now_s)
        return min(self.interval_s, left_s) if self.serves_on else 0.0

    def _stop_one_of_the_best(
        self, plan: Plan, op: Operator, utilities: Mapping[str, float]
    ) -> None:
        """Stop an instance of the operator with the best utility on a host in use.

        The oldest: ``ProcessingNodeManagement.scaleDown`` takes the first that it finds.
        """
        for name, utility in utilities.items():
            candidates = [
                one for one in plan.serving(name) if one.host in plan.free and plan.may_stop(one)
            ]
            if candidates:
                told = f"{op.name} finds no room; {name} has utility {utility:.2f}"
                plan.stop(
                    candidates[0],
                    Why(Reason.MAKE_ROOM, told),
                    serves_s=self.interval_s if self.serves_on else 0.0,
                )
                return
