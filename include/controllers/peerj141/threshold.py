"""The threshold baseline: PeerJ CS 141, "Baseline"."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from include.controllers.base import Setting
from include.controllers.first_fit import (
    least_colocated,
    release_empty_hosts,
    start_first_fit,
)
from include.controllers.peerj141 import rounds
from include.controllers.peerj141.rounds import Round, until_a_lease
from include.controllers.plan import NoMemory, Plan
from include.model.decision import Decision, Reason, Why
from include.model.errors import not_above_0, unknown_name
from include.model.observation import InstanceSample, Observation, OperatorSample

Victim = Callable[[Plan, Sequence[InstanceSample]], InstanceSample]


def first_or_freer(plan: Plan, candidates: Sequence[InstanceSample]) -> InstanceSample:
    """The first, unless another's host has more CPU and more memory free: ``ReasonerBasic``.

    Stopping instances take no room there (``ReasonerUtility``).
    """
    chosen = candidates[0]
    most = plan.free_without_stopping(chosen.host)
    for candidate in candidates[1:]:
        room = plan.free_without_stopping(candidate.host)
        if room.memory_mb > most.memory_mb and room.cpu_cores > most.cpu_cores:
            chosen, most = candidate, room
    return chosen


def newest(plan: Plan, candidates: Sequence[InstanceSample]) -> InstanceSample:
    """The instance that started last: what ``ReasonerBasic`` may do when it runs.

    It looks hosts up in a map with ``DockerHost`` as key, which compares its list of images. If
    Hibernate compares that by identity (``PersistentBag``), the look-up finds nothing, and each
    instance takes the place of the one before. Inferred from libraries; nobody has run it.
    """
    return candidates[-1]


@dataclass(frozen=True, slots=True)
class BaselineReading:
    """Which item count the baseline uses, and how it stops an instance.

    ``of_broker``: the longest incoming queue with the items its consumers hold; otherwise all
    waiting items. ``serves_on``: a stopped instance works, and keeps its place, until the next
    tick; otherwise it drains, and its place is free in the same decision.
    """

    of_broker: bool
    victim: Victim
    serves_on: bool


READINGS: Mapping[str, BaselineReading] = {
    "runtime": BaselineReading(of_broker=True, victim=first_or_freer, serves_on=True),
    "runtime-newest": BaselineReading(of_broker=True, victim=newest, serves_on=True),
    "paper": BaselineReading(of_broker=False, victim=least_colocated, serves_on=False),
}


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """Scales on the number of items in queues alone, whatever a BTU costs.

    The defaults are those of the authors' runtime (visp-streaming/runtime): thresholds of
    ``ReasonerBasic``, counts of ``Monitor.analyzeBasic``, and an instance that serves on after
    it was stopped, because ``Receiver`` (visp-streaming/processingNodes) looks for a file below
    "~", which Java does not expand, until ``ProcessingNodeManagement`` removes it at the next
    tick. ``reading`` "paper" goes by the text. With ``boot_blocks`` a boot holds up the round,
    there is one every ``round_s``, and ``interval_s`` is how often it looks whether a host is up.
    """

    setting: Setting
    interval_s: float = 60.0
    reading: str = "runtime"
    scale_up_above_items: int = 250
    scale_up_twice_above_items: int = 1250
    scale_down_below_items: int = 20
    boot_blocks: bool = False
    round_s: float = 60.0

    def problems(self) -> Iterator[str]:
        if self.reading not in READINGS:
            yield unknown_name("reading", self.reading, READINGS)
        if self.boot_blocks:
            yield from rounds.problems(self.interval_s, self.round_s)
        else:
            yield from not_above_0(self, "round_s")
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
        return dict.fromkeys(self.setting.topology.operator_names, 1)

    def initial_memory(self) -> NoMemory | Round:
        return Round() if self.boot_blocks else NoMemory()

    def decide(
        self, memory: NoMemory | Round, observation: Observation
    ) -> tuple[NoMemory | Round, Decision]:
        """Release empty hosts, then scale by every queue, then prolong the leases that end."""
        if isinstance(memory, Round):
            return self._go_on(memory, observation)
        plan = Plan(self.setting, observation)
        release_empty_hosts(plan)
        for name in self.setting.topology.operator_names:
            if name in observation.operators:
                self._scale(plan, observation.operators[name])
        plan.keep_leases(0)
        sentence = (
            f"nothing to do: every queue of {len(observation.operators)} is between its thresholds "
            f"or at one instance"
        )
        return memory, plan.decision(Why(Reason.NOTHING_TO_DO, sentence))

    def _go_on(self, memory: Round, observation: Observation) -> tuple[Round, Decision]:
        """Look at operators until a host is leased; ``ReasonerBasic``, lines 85 to 153.

        Hosts are released, and leases prolonged, at the start of a round.
        """
        if waiting := memory.wait(observation):
            return memory, waiting
        plan = Plan(self.setting, observation)
        if memory.left is None:
            memory = memory.begin(self.setting.topology.operator_names, self.round_s)
            release_empty_hosts(plan)
            plan.keep_leases(0)

        def look(name: str) -> None:
            if name in observation.operators:
                self._scale(plan, observation.operators[name])

        left = until_a_lease(plan, memory.left or (), look)
        return memory.at(left) if left else memory.end(), plan.decision(rounds.NOTHING)

    def _scale(self, plan: Plan, sample: OperatorSample) -> None:
        name, waiting = sample.operator, self._items(sample)
        if waiting > self.scale_up_twice_above_items:
            sentence = f"{name} has {waiting} > {self.scale_up_twice_above_items} items waiting"
            start_first_fit(plan, name, Why(Reason.QUEUE_LONG, sentence))
            start_first_fit(plan, name, Why(Reason.QUEUE_LONG, sentence))
        elif waiting > self.scale_up_above_items:
            sentence = f"{name} has {waiting} > {self.scale_up_above_items} items waiting"
            start_first_fit(plan, name, Why(Reason.QUEUE_LONG, sentence))
        elif plan.count(name) == 0:
            sentence = f"{name} has no instance left"
            start_first_fit(plan, name, Why(Reason.INSTANCE_LOST, sentence))
        elif waiting < self.scale_down_below_items:
            sentence = f"{name} has {waiting} < {self.scale_down_below_items} items waiting"
            self._stop_one(plan, name, Why(Reason.QUEUE_SHORT, sentence))

    def _items(self, sample: OperatorSample) -> int:
        """Items to compare; all waiting items if the testbed does not count by queue."""
        longest = sample.longest_queue_items
        return sample.waiting_items if longest is None or not self._how.of_broker else longest

    def _stop_one(self, plan: Plan, operator: str, why: Why) -> None:
        candidates = plan.stoppable(operator)
        if not candidates:
            return
        victim = self._how.victim(plan, candidates)
        if self._how.serves_on:
            plan.stop(
                victim,
                why,
                frees=False,
                serves_s=self.round_s if self.boot_blocks else self.interval_s,
            )
        else:
            plan.stop(victim, why)

    @property
    def _how(self) -> BaselineReading:
        return READINGS[self.reading]
