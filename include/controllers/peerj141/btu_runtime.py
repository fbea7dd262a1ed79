"""The BTU-based controller as the authors' runtime has it, where that differs from the paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from include.controllers.peerj141 import rounds
from include.controllers.peerj141.btu import BtuBased, BtuMemory, Need, Standings
from include.controllers.peerj141.procedures import Spare, btu_ends, most_suitable
from include.controllers.peerj141.reclaim import AllOperators, record_highs
from include.controllers.peerj141.rounds import Round, leased, until_a_lease
from include.controllers.peerj141.upscaling import OBSERVATIONS, UpTrigger, in_seeded_order
from include.controllers.placement import HostChoice
from include.controllers.plan import Plan
from include.model.decision import (
    Decision,
    LeaseHost,
    ProlongLease,
    Reason,
    ReleaseHost,
    Why,
)
from include.model.errors import not_above_0
from include.model.observation import HostSample, InstanceSample, Observation, OperatorSample
from include.model.topology import Operator

MOST_STOPS = 2
"""Instances of one operator that make room for another: ``selectSuitableDockerHost``, line 334."""
NO_LOAD_ABOVE = 5.0
"""Utility from which instances move although not all find a place: ``simulateMigration``, 290."""
ROWS_OF_A_MOVE = 3
"""``ScalingActivity``: a migration is saved beside a scaleup and a scaledown (line 231 to 233)."""
BUCKETS = 16
"""Of a ``HashMap`` with up to twelve entries."""
NAMES_IN_SOURCE = {
    "O6": "temperature",
    "O2": "availability",
    "O1": "distributedata",
    "O4": "calculateavailability",
    "O3": "calculateperformance",
    "O5": "calculatequality",
    "O7": "calculateoee",
    "O9": "generatereport",
    "O8": "warning",
}
"""``machineData_v2.vtdl`` of c3f9999, in its order; types are equal to names there."""


@dataclass(frozen=True, slots=True)
class RuntimeMemory(BtuMemory):
    """``scalings`` are rows of ``ScalingActivity`` by operator; also those about hosts.

    ``round`` is where the round is with ``boot_blocks``.
    """

    round: Round = field(default_factory=Round)
    of_hosts: int | None = None
    """Before the first decision None: as many as there are hosts then."""


def through_the_origin(durations_ms: Sequence[float]) -> float:
    """``SimpleRegression(false)`` of five durations or fewer at 6, the latest of them at 4.

    ``Monitor.upscalingDuration``, lines 145 to 156. A constant duration predicts twice itself.
    """
    places = range(OBSERVATIONS - len(durations_ms), OBSERVATIONS)
    product = sum(place * each for place, each in zip(places, durations_ms, strict=True))
    return 6 * product / sum(place**2 for place in places)


def in_source(operator: str) -> str:
    """The name of an operator in the authors' topology, if it is one of theirs."""
    return NAMES_IN_SOURCE.get(operator, operator)


@cache
def bucket(name: str) -> int:
    """Where a Java ``HashMap`` of few entries keeps a string: it lists them in this order."""
    code = 0
    for letter in name:
        code = (31 * code + ord(letter)) % 2**32
    return (code ^ code >> 16) % BUCKETS


def by_free_cpu(numbers: NDArray[np.float64], op: Operator) -> NDArray[np.float64]:
    """Algorithm 2 in whole numbers of memory: what is left of it is 0 hosts, so CPU decides.

    ``numbers`` and the result as those of :func:`uncached`. No image matters: a new
    ``DockerContainer`` has none.
    """
    total_cpu_cores, _, cpu_cores, memory_mb = numbers[:4]
    threshold = np.minimum(cpu_cores / op.cpu_cores, memory_mb // op.memory_mb)
    fits = threshold >= 1
    difference = (cpu_cores - op.cpu_cores) / total_cpu_cores
    return np.where(fits, difference / np.where(fits, threshold, 1.0), np.inf)


@dataclass(frozen=True, kw_only=True)
class BtuRuntime(BtuBased):
    """``ReasonerBTU``, ``ReasonerUtility`` and ``Monitor`` of visp-streaming/runtime c3f9999.

    Each method says how it differs from the paper; docs/deviations.md, BTU-RUNTIME-LEFT, names what
    it leaves out. A stopped or moved instance works until the next tick: it would end when a file
    below "~" exists (``Receiver`` of visp-streaming/processingNodes), which Java does not expand,
    and is killed by ``ProcessingNodeManagement``. Where ``startVM`` would wait until the new host
    of an instance that moves is up, the instance stays and its host is kept. With ``boot_blocks`` a
    boot holds up the round, there is one every ``round_s``, and ``interval_s`` is how often it
    looks whether a host is up.
    """

    penalty_per_item: float = 0.01
    keeps_guarded: bool = True
    boot_blocks: bool = False
    round_s: float = 60.0

    predict = staticmethod(through_the_origin)

    def problems(self) -> Iterator[str]:
        """Those of the paper's controller, and of the rounds."""
        yield from super().problems()
        if self.boot_blocks:
            yield from rounds.problems(self.interval_s, self.round_s)
        else:
            yield from not_above_0(self, "round_s")

    def initial_memory(self) -> BtuMemory:
        """The first deployment saves a row for every operator, and counts as its upscaling."""
        first = self.initial_instances()
        return RuntimeMemory(dict(first), dict.fromkeys(first, 0.0))

    def decide(self, memory: BtuMemory, observation: Observation) -> tuple[BtuMemory, Decision]:
        """With the queue lengths that ``Monitor`` reads: the longest, with what instances hold.

        The first hosts have a row each, too.
        """
        if isinstance(memory, RuntimeMemory) and memory.of_hosts is None:
            memory = replace(memory, of_hosts=len(observation.hosts))
        counted = self._of_broker(observation)
        if self.boot_blocks and isinstance(memory, RuntimeMemory):
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

    def _go_on(self, memory: RuntimeMemory, observation: Observation) -> tuple[BtuMemory, Decision]:
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
        """A queue above ``twice_above_items`` suffices, late or not (BTU-TWICE)."""
        trigger = super().trigger(sample, op)
        above = self.twice_above_items
        if not trigger.upscaling and sample.waiting_items > above:
            sentence = f"{op.name} has {sample.waiting_items} > {above} items waiting"
            return UpTrigger(True, Why(Reason.QUEUE_LONG, sentence))
        return trigger

    def twice(self, sample: OperatorSample, op: Operator) -> bool:
        """Only if it is late now: ``Monitor``, lines 132 to 137."""
        late = sample.duration_ms is not None and sample.duration_ms > op.slo_ms
        return late and super().twice(sample, op)

    def remembered(self, memory: BtuMemory, plan: Plan) -> BtuMemory:
        """Also counts what is saved about hosts and moves; a move counts as an upscaling."""
        after = super().remembered(memory, plan)
        scalings = dict(after.scalings)
        for name, times in sorted(plan.moves.items()):
            scalings[name] = scalings.get(name, 0) + ROWS_OF_A_MOVE * times
        upscaled_s = after.upscaled_s | dict.fromkeys(sorted(plan.moves), plan.now_s)
        after = replace(after, scalings=scalings, upscaled_s=upscaled_s)
        if isinstance(after, RuntimeMemory):
            of_hosts = plan.steps_of(LeaseHost, ProlongLease, ReleaseHost)
            after = replace(after, of_hosts=(after.of_hosts or 0) + of_hosts)
        return after

    def standings(
        self, observation: Observation, memory: BtuMemory, needs: Mapping[str, Need]
    ) -> Standings:
        """An operator that needs an instance may give one, and rows about hosts count."""
        standings = super().standings(observation, memory, {})
        of_hosts = memory.of_hosts if isinstance(memory, RuntimeMemory) else 0
        return replace(standings, scalings_of_hosts=of_hosts or 0)

    def all_operators(self, instances: NDArray[np.int64], scalings: int) -> AllOperators:
        """The minimum starts at 0 and so stays 0."""
        most = int(instances.max())
        return AllOperators(fewest_instances=0, most_instances=most, scalings=scalings)

    def utilities(self, plan: Plan, standings: Standings) -> dict[str, float]:
        """Without operators that were scaled up or moved a moment ago, in this decision.

        Its rows so far count; of a host that is given back there is one only once it has ended.
        """
        of_moves = [ROWS_OF_A_MOVE * plan.moves[name] for name in plan.operator_names]
        so_far = replace(
            standings,
            scalings_before=standings.scalings_before + np.array(of_moves),
            scalings_of_hosts=standings.scalings_of_hosts + plan.steps_of(LeaseHost, ProlongLease),
        )
        every = super().utilities(plan, so_far)
        guarded = plan.started.union(plan.moves)
        return {name: value for name, value in every.items() if name not in guarded}

    def counted(self, utilities: Mapping[str, float]) -> Mapping[str, float]:
        """Those above all before them in a ``HashMap``, then in a ``TreeMap``.

        So the first by its name in the source gives first, not the best. Those of one bucket come
        as they were put in, which is the order of the file (``TopologyListener`` of
        visp-streaming/topologyParser 0ce9152, line 28).
        """
        own = [*(name for name in NAMES_IN_SOURCE if name in utilities), *utilities]
        hashed = sorted(dict.fromkeys(own), key=lambda name: bucket(in_source(name)))
        highs = record_highs({name: utilities[name] for name in hashed})
        return dict(sorted(highs.items(), key=lambda item: in_source(item[0])))

    def ending(self, plan: Plan) -> Iterator[HostSample]:
        """In the order of their lease; that there are two is asked before the first."""
        if len(plan.free) > 1:
            yield from (host for host in plan.hosts if self.ends(plan, host))

    def start_one(self, plan: Plan, op: Operator, why: Why, spare: Spare) -> None:
        """If no host has room, make some, and lease a host all the same (``ReasonerBTU``, 369)."""
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
        """Simulate the moves first; what makes room for a move is done all the same."""
        ends = btu_ends(plan, host)
        if plan.is_given_work(host.host):
            detail = f"{ends}, and it has just been given an instance"
            plan.prolong(host, Why(Reason.HOST_NEEDED, detail))
            return
        self._stop_spare(plan, host, plan.on_host(host.host), spare(plan))
        may_move = self._may_move(plan, host, spare)
        for instance in plan.on_host(host.host):
            op = plan.operator(instance.operator)
            choice = self._suitable(plan, op, leaving=host.host)
            if choice is None:
                gave = self._make_room(plan, op, spare, leaving=host.host)
                if not gave and plan.fits_an_empty_host(op):
                    sentence = f"no operator gives {instance.instance} a place"
                    plan.lease(Why(Reason.NO_CAPACITY, sentence))
            if choice is None or not may_move:
                break
            why = ends + f"; {instance.operator} fits on {choice.host}"
            plan.migrate(instance, choice.host, why, serves_s=self._serves_s(plan, host))
        if left := plan.on_host(host.host):
            detail = f"{ends}; {left[0].instance} and others would not find room elsewhere"
            plan.prolong(host, Why(Reason.HOST_NEEDED, detail))
        elif len(plan.free) < 2:
            plan.prolong(host, Why(Reason.HOST_NEEDED, f"{ends}, and there is no other host"))
        else:
            plan.release(host, ends + "; its instances were stopped or moved")

    def _suitable(self, plan: Plan, op: Operator, leaving: str | None = None) -> HostChoice | None:
        """``selectSuitableHostforContainer``; to move, only hosts that are up (BTU-MIGRATE-UP)."""
        return plan.free.best(op, 1.0, by_free_cpu, only_up=leaving is not None, leaving=leaving)

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
        """Stop instances of the first operator by name until ``op`` fits or none may go.

        False where none may from the beginning, or each has given its two.
        """
        stopped = Counter[str]()
        utilities = dict(spare(plan))
        while utilities:
            name = next(iter(utilities))
            if stopped[name] == MOST_STOPS:
                del utilities[name]
                continue
            stopped[name] += 1
            if candidates := plan.stoppable(name):
                sentence = f"{op.name} finds no room; {name} has utility {utilities[name]:.2f}"
                plan.stop(candidates[0], Why(Reason.MAKE_ROOM, sentence), serves_s=self._tick_s)
            utilities = dict(spare(plan))
            if not utilities or self._suitable(plan, op, leaving) is not None:
                return True
        return False

    def _may_move(self, plan: Plan, host: HostSample, spare: Spare) -> bool:
        """``simulateMigration``: whether all find a place, or others may give enough.

        An instance takes room on every host where it fits, as the inner loop does not end, and
        those that were just stopped want a place, too.
        """
        moving = (plan.operator(each.operator) for each in plan.was_on_host(host.host))
        without = plan.free.without_place(moving, leaving=host.host)
        if not without:
            return True
        utilities = spare(plan)
        first = next(iter(utilities.values()), 0.0)
        return len(utilities) > without or first > NO_LOAD_ABOVE
