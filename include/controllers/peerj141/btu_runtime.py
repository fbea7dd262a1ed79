"""The BTU-based controller as the original runtime behaved, where that differs from the paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from include.controllers.peerj141 import rounds
from include.controllers.peerj141.btu import TWICE_ABOVE_ITEMS, Btu, BtuMemory
from include.controllers.peerj141.procedures import Spare, btu_ends, most_suitable
from include.controllers.peerj141.reclaim import AllOperators, record_highs
from include.controllers.peerj141.rounds import Round, leased, until_a_lease
from include.controllers.peerj141.upscaling import UpTrigger, in_seeded_order
from include.controllers.placement import HostChoice
from include.controllers.plan import Plan
from include.model.decision import Decision, Reason, Why
from include.model.errors import not_above_0
from include.model.observation import HostSample, InstanceSample, Observation, OperatorSample
from include.model.topology import Operator


@dataclass(frozen=True, slots=True)
class RoundMemory(BtuMemory):
    """With ``boot_blocks``: also where the round is."""

    round: Round = field(default_factory=Round)


@dataclass(frozen=True, kw_only=True)
class BtuRuntime(Btu):
    """Stops and moves without simulating first; each method says how it differs from the paper.

    Read in visp-streaming/runtime: ``ReasonerBTU``, ``ReasonerUtility``, ``Monitor``.
    docs/deviations.md, BTU-RUNTIME-LEFT, says what is left to ``btu-source``. A stopped or moved
    instance works until the next tick: it would end when a file below "~" exists (``Receiver`` of
    visp-streaming/processingNodes), which Java does not expand, and is killed by
    ``ProcessingNodeManagement``. Queues are counted as by ``Monitor``: the longest one, with what
    instances hold of it. With ``boot_blocks`` a boot holds up the round, there is one every
    ``round_s``, and ``interval_s`` is how often it looks whether a host is up.
    """

    reclaim_for_migrations: bool = True
    keeps_guarded: bool = True
    boot_blocks: bool = False
    round_s: float = 60.0

    def problems(self) -> Iterator[str]:
        """Those of the paper's controller, and of the rounds."""
        yield from super().problems()
        if self.boot_blocks:
            yield from rounds.problems(self.interval_s, self.round_s)
        else:
            yield from not_above_0(self, "round_s")

    def initial_memory(self) -> BtuMemory:
        return RoundMemory() if self.boot_blocks else BtuMemory()

    def decide(self, memory: BtuMemory, observation: Observation) -> tuple[BtuMemory, Decision]:
        """As in the paper, but with the queue lengths that ``Monitor`` reads."""
        counted = self._of_broker(observation)
        if self.boot_blocks and isinstance(memory, RoundMemory):
            return self._go_on(memory, counted)
        return super().decide(memory, counted)

    def _of_broker(self, observation: Observation) -> Observation:
        operators = {
            name: sample
            if sample.longest_queue_items is None
            else structs.replace(sample, waiting_items=sample.longest_queue_items)
            for name, sample in observation.operators.items()
        }
        return replace(observation, operators=operators)

    def _go_on(self, memory: RoundMemory, observation: Observation) -> tuple[BtuMemory, Decision]:
        """Scale operators up until a host is leased; hosts retire after the last operator.

        ``ReasonerBTU``, lines 111 to 249: the order is drawn as a round starts, and each operator
        is judged by what is measured when its turn comes.
        """
        current = memory.round
        if waiting := current.wait(observation):
            return memory, waiting
        if current.left is None:
            order = in_seeded_order(observation.operators, self.setting.seed, observation.now_s)
            current = current.begin(order, self.round_s)
        left = current.left or ()
        plan = Plan(self.setting, observation)
        needs = {name: need for name, need in self.needs(plan, observation).items() if name in left}
        spare = self.spare(self.standings(observation, memory, needs))

        def look(name: str) -> None:
            if name in needs:
                self._scale_up(plan, {name: needs[name]}, spare)

        left = until_a_lease(plan, left, look)
        if leased(plan):
            current = current.at(left)
        else:
            self._retire(plan, observation, spare)
            plan.keep_leases(self.round_s)
            current = current.end()
        after = replace(memory, round=current)
        return self.remembered(after, plan), plan.decision(rounds.NOTHING)

    def trigger(self, sample: OperatorSample, op: Operator) -> UpTrigger:
        """A queue above TWICE_ABOVE_ITEMS suffices, late or not (BTU-TWICE)."""
        trigger = super().trigger(sample, op)
        if not trigger.upscaling and sample.waiting_items > TWICE_ABOVE_ITEMS:
            sentence = f"{op.name} has {sample.waiting_items} > {TWICE_ABOVE_ITEMS} items waiting"
            return UpTrigger(True, Why(Reason.QUEUE_LONG, sentence))
        return trigger

    def all_operators(self, instances: NDArray[np.int64], scalings: int) -> AllOperators:
        """The minimum starts at 0 and so stays 0."""
        most = int(instances.max())
        return AllOperators(fewest_instances=0, most_instances=most, scalings=scalings)

    def counted(self, utilities: Mapping[str, float]) -> Mapping[str, float]:
        """Only utilities above all previous ones, in the order of the operators."""
        return record_highs(utilities)

    def start_one(self, plan: Plan, op: Operator, why: Why, spare: Spare) -> None:
        """If no host has room, stop an instance of the best operator and also lease a host."""
        choice = self._suitable(plan, op)
        if choice is not None:
            plan.start(op.name, choice.host, why + most_suitable(choice))
            return
        if not plan.fits_an_empty_host(op):
            return
        self._make_room(plan, op, spare)
        handle = plan.lease(Why(Reason.NO_CAPACITY, f"{why}; no host has room"))
        plan.start(op.name, handle, why + "; on the new host")

    def retire_one(self, plan: Plan, host: HostSample, spare: Spare) -> None:
        """Stop instances of every counted operator on the host, except an operator's last one.

        Then move the others one by one. If one does not fit, stop an instance of the best
        operator for it and prolong the host anyway; earlier stops and moves remain.
        """
        ends = btu_ends(plan, host)
        if plan.is_given_work(host.host):
            detail = f"{ends}, and it has just been given an instance"
            plan.prolong(host, Why(Reason.HOST_NEEDED, detail))
            return
        self._stop_spare(plan, host, reversed(plan.on_host(host.host)), spare(plan))
        for instance in plan.on_host(host.host):
            op = plan.operator(instance.operator)
            choice = self._suitable(plan, op, leaving=host.host)
            if choice is None:
                if self.reclaim_for_migrations:
                    self._make_room(plan, op, spare)
                detail = f"{ends}; no other host has room for {instance.instance}"
                plan.prolong(host, Why(Reason.HOST_NEEDED, detail))
                return
            why = ends + f"; {instance.operator} fits on {choice.host}"
            plan.migrate(instance, choice.host, why, serves_s=self._serves_s(plan, host))
        plan.release(host, ends + "; its instances were stopped or moved")

    def _suitable(self, plan: Plan, op: Operator, leaving: str | None = None) -> HostChoice | None:
        """Algorithm 2; to move, only hosts that are up (BTU-MIGRATE-UP)."""
        only_up = leaving is not None
        return plan.free.best(op, self.cache_factor, only_up=only_up, leaving=leaving)

    def _stop_spare(
        self,
        plan: Plan,
        host: HostSample,
        instances: Iterable[InstanceSample],
        utilities: Mapping[str, float],
    ) -> None:
        """Stop these instances of the host, as far as their operators have a utility."""
        for instance in instances:
            if instance.operator in utilities and plan.may_stop(instance):
                utility = utilities[instance.operator]
                why = btu_ends(plan, host) + f"; {instance.operator} has utility {utility:.2f}"
                plan.stop(instance, why, serves_s=self._serves_s(plan, host))

    def _serves_s(self, plan: Plan, host: HostSample) -> float:
        """Until the next tick, but not longer than the host is paid for."""
        return min(self._tick_s, max(0.0, host.paid_until_s - plan.now_s))

    @property
    def _tick_s(self) -> float:
        return self.round_s if self.boot_blocks else self.interval_s

    def _make_room(
        self, plan: Plan, op: Operator, spare: Spare, leaving: str | None = None
    ) -> bool:
        """Stop the oldest instance of the operator with the best utility; it may not suffice.

        ``ProcessingNodeManagement.scaleDown`` takes the first in its list. True if one may stop.
        """
        for name, utility in spare(plan).items():
            if candidates := plan.stoppable(name):
                sentence = f"{op.name} finds no room; {name} has utility {utility:.2f}"
                plan.stop(candidates[0], Why(Reason.MAKE_ROOM, sentence), serves_s=self._tick_s)
                return True
        return False
