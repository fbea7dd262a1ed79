"""The BTU-based controller: PeerJ CS 141, "Optimization approach", and its preprint."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from include.controllers.base import Setting
from include.controllers.host_selection import CACHE_FACTOR
from include.controllers.peerj141.procedures import (
    Downscaling,
    Spare,
    btu_ends,
    downscaling_procedure,
    upscaling_procedure,
)
from include.controllers.peerj141.reclaim import (
    UTILITIES,
    AllOperators,
    Candidate,
    Weights,
)
from include.controllers.peerj141.upscaling import (
    OBSERVATIONS,
    SCALING_THRESHOLD_ITEMS,
    UpTrigger,
    in_seeded_order,
    predicted_duration_ms,
    up_trigger,
)
from include.controllers.plan import Plan
from include.model.decision import Decision, Reason, Why
from include.model.errors import unknown_name
from include.model.observation import HostSample, Observation, OperatorSample
from include.model.topology import Operator

TWICE_AT_THRESHOLDS = 5
"""How many times ``scaling_threshold_items`` wait when a late operator gets two instances at once
(BTU-TWICE; ``Monitor``, line 134)."""
RELEASE_WINDOW_SHARE = 0.05
"""Part of the BTU, at its end, in which a host may be given back ("Optimize resource usage") ..."""
RELEASE_WINDOW_LEAST_S = 60.0
"""... and the least that this is (BTU-WINDOW)."""


@dataclass(frozen=True, slots=True)
class BtuMemory:
    """Per operator: o_s, the scalings decided so far, and the time of the last upscaling.

    A migration is no scaling. The first deployment counts in neither.
    """

    scalings: dict[str, int] = field(default_factory=dict)
    upscaled_s: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Need:
    """Instances that an operator needs in addition."""

    instances: int
    why: Why


@dataclass(frozen=True, slots=True, kw_only=True)
class Standings:
    """Operators that may shrink, an array entry each; ``places`` are those in the topology.

    ``scalings_before`` has an entry for every operator of the topology.
    """

    names: Sequence[str]
    places: NDArray[np.int64]
    durations_ms: NDArray[np.float64]
    slos_ms: NDArray[np.float64]
    waiting_items: NDArray[np.int64]
    scalings_before: NDArray[np.int64]
    scalings_of_hosts: int = 0


@dataclass(frozen=True, kw_only=True)
class BtuBased(ABC):
    """Scales up when an operator is late; scales down and gives hosts back as their BTU ends.

    Subclasses say how an instance starts and how a host is given back. ``formula`` is final or
    preprint.
    """

    setting: Setting
    interval_s: float = 60.0
    scaling_threshold_items: int = SCALING_THRESHOLD_ITEMS
    observations: int = OBSERVATIONS
    formula: str = "final"
    penalty_per_item: float = 0.0001
    scale_down_guard_s: float = 180.0
    release_guard_s: float = 180.0
    upscale_first: bool = True
    keeps_guarded: bool = False

    predict = staticmethod(predicted_duration_ms)
    """The next duration after some, in ms."""

    def problems(self) -> Iterator[str]:
        if not 2 <= self.observations <= OBSERVATIONS:
            yield (
                "observations must be at least 2 to show a trend, and at most the "
                f"{OBSERVATIONS} that an observation has, got {self.observations}"
            )
        if self.formula not in UTILITIES:
            yield unknown_name("formula", self.formula, UTILITIES)

    def initial_instances(self) -> Mapping[str, int]:
        return dict.fromkeys(self.setting.topology.operator_names, 1)

    def initial_memory(self) -> BtuMemory:
        return BtuMemory()

    def decide(self, memory: BtuMemory, observation: Observation) -> tuple[BtuMemory, Decision]:
        """Fig. 4 for operators that are late, Fig. 5 for hosts whose BTU ends, then the leases."""
        plan = Plan(self.setting, observation)
        needs = self.needs(plan, observation)
        spare = self.spare(self.standings(observation, memory, needs))
        if self.upscale_first:
            self._scale_up(plan, needs, spare)
        self._retire(plan, observation, spare)
        if not self.upscale_first:
            self._scale_up(plan, needs, spare)
        plan.keep_leases(self.interval_s)
        return self.remembered(memory, plan), plan.decision(self._why_wait(observation))

    def needs(self, plan: Plan, observation: Observation) -> dict[str, Need]:
        """Algorithm 1 for every operator the monitor could read, in seeded random order."""
        needs: dict[str, Need] = {}
        for name in in_seeded_order(observation.operators, self.setting.seed, observation.now_s):
            sample, op = observation.operators[name], plan.operator(name)
            if plan.count(name) == 0:
                lost = Why(Reason.INSTANCE_LOST, f"{name} has no instance left")
                needs[name] = Need(1, lost)
                continue
            trigger = self.trigger(sample, op)
            if trigger.upscaling:
                needs[name] = Need(2 if self.twice(sample, op) else 1, trigger.why)
        return needs

    @property
    def twice_above_items(self) -> int:
        return TWICE_AT_THRESHOLDS * self.scaling_threshold_items

    def twice(self, sample: OperatorSample, op: Operator) -> bool:
        """Whether the operator gets two instances at once (BTU-TWICE)."""
        return sample.waiting_items > self.twice_above_items

    def trigger(self, sample: OperatorSample, op: Operator) -> UpTrigger:
        above, last = self.scaling_threshold_items, self.observations
        return up_trigger(sample, op.slo_ms, above, last, self.predict)

    def standings(
        self, observation: Observation, memory: BtuMemory, needs: Mapping[str, Need]
    ) -> Standings:
        """Inputs of Algorithm 3 that do not change during this decision.

        Without operators that have no sample or duration, that need an instance themselves, or
        that were scaled up less than ``scale_down_guard_s`` ago.
        """
        before = [memory.scalings.get(name, 0) for name in self.setting.topology.operator_names]
        rows = []
        for place, name in enumerate(self.setting.topology.operator_names):
            op = self.setting.topology.operator[name]
            sample = observation.operators.get(op.name)
            duration_ms = None if sample is None else sample.duration_ms
            since_up_s = observation.now_s - memory.upscaled_s.get(op.name, -math.inf)
            guarded = since_up_s < self.scale_down_guard_s or op.name in needs
            if sample is not None and duration_ms is not None and not guarded:
                rows.append((op.name, place, duration_ms, op.slo_ms, sample.waiting_items))
        names, places, durations_ms, slos_ms, waiting_items = (
            zip(*rows, strict=True) if rows else [()] * 5
        )
        return Standings(
            names=names,
            places=np.array(places, dtype=np.int64),
            durations_ms=np.array(durations_ms),
            slos_ms=np.array(slos_ms),
            waiting_items=np.array(waiting_items),
            scalings_before=np.array(before),
        )

    def spare(self, standings: Standings) -> Spare:
        """What is counted of the utilities after the steps of a plan."""
        return lambda plan: self.counted(self.utilities(plan, standings))

    def utilities(self, plan: Plan, standings: Standings) -> dict[str, float]:
        """Positive utilities (Algorithm 3) after the steps of the plan, in topology order."""
        scalings = standings.scalings_before + plan.scalings
        in_all = int(scalings.sum()) + standings.scalings_of_hosts
        among = self.all_operators(plan.counts, in_all)
        values = UTILITIES[self.formula](
            Candidate(
                instances=plan.counts[standings.places],
                duration_ms=standings.durations_ms,
                slo_ms=standings.slos_ms,
                waiting_items=standings.waiting_items,
                scalings=scalings[standings.places],
            ),
            among,
            Weights(penalty_per_item=self.penalty_per_item),
        )
        both = zip(standings.names, values.tolist(), strict=True)
        return {name: value for name, value in both if value > 0}

    def remembered(self, memory: BtuMemory, plan: Plan) -> BtuMemory:
        """Add the scalings of this decision to the memory."""
        scalings = dict(memory.scalings)
        for name, count in sorted(plan.scaled().items()):
            scalings[name] = scalings.get(name, 0) + count
        upscaled_s = {**memory.upscaled_s, **dict.fromkeys(sorted(plan.started), plan.now_s)}
        return replace(memory, scalings=scalings, upscaled_s=upscaled_s)

    def all_operators(self, instances: NDArray[np.int64], scalings: int) -> AllOperators:
        """Minimum and maximum of o_# and the sum of o_s, as Algorithm 3 reads them."""
        fewest, most = int(instances.min()), int(instances.max())
        return AllOperators(fewest_instances=fewest, most_instances=most, scalings=scalings)

    def counted(self, utilities: Mapping[str, float]) -> Mapping[str, float]:
        """Utilities of the operators that may shrink."""
        return utilities

    @abstractmethod
    def start_one(self, plan: Plan, op: Operator, why: Why, spare: Spare) -> None:
        """Start one more instance of an operator, as far as there is room or some can be made."""

    @abstractmethod
    def retire_one(self, plan: Plan, host: HostSample, spare: Spare) -> None:
        """Give back a host whose BTU ends, or prolong it."""

    def _scale_up(self, plan: Plan, needs: Mapping[str, Need], spare: Spare) -> None:
        for name, need in needs.items():
            op = plan.operator(name)
            for _ in range(need.instances):
                self.start_one(plan, op, need.why, spare)

    def ending(self, plan: Plan) -> Iterator[HostSample]:
        """Hosts in the last part of their BTU, the earliest end first, while there are two."""
        for host in sorted(plan.hosts, key=lambda host: host.paid_until_s):
            if not self.ends(plan, host) or len(plan.free) < 2:
                return
            yield host

    def ends(self, plan: Plan, host: HostSample) -> bool:
        """Whether the BTU of the host is in its last part."""
        window_s = max(RELEASE_WINDOW_SHARE * self.setting.btu_s, RELEASE_WINDOW_LEAST_S)
        return host.paid_until_s - plan.now_s <= window_s

    def _retire(self, plan: Plan, observation: Observation, spare: Spare) -> None:
        """Retire hosts that end.

        For ``release_guard_s`` after the order of a host none is given back: leases that end are
        prolonged at their last tick. With ``keeps_guarded`` the first such host is prolonged at
        once and the others wait.
        """
        for host in self.ending(plan):
            if plan.last_order_was_within(self.release_guard_s):
                if self.keeps_guarded:
                    why = btu_ends(plan, host) + "; a host was ordered a moment ago"
                    plan.prolong(host, why)
                    return
                continue
            if all(
                instance.operator in observation.operators for instance in plan.on_host(host.host)
            ):
                self.retire_one(plan, host, spare)

    def _why_wait(self, observation: Observation) -> Why:
        sentence = (
            f"nothing to do: none of {len(observation.operators)} operators is late or about to "
            f"be with more than {self.scaling_threshold_items} items waiting, and no lease of "
            f"{len(observation.hosts)} has to be decided on now"
        )
        return Why(Reason.NOTHING_TO_DO, sentence)


@dataclass(frozen=True, kw_only=True)
class Btu(BtuBased):
    """The final version of the paper where it speaks, and mostly the original runtime elsewhere.

    docs/deviations.md, BTU-*, says where the paper is silent.
    """

    cache_factor: float = CACHE_FACTOR
    release_limit_share: float = 0.2
    reclaim_for_migrations: bool = False

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if not 0 < self.cache_factor <= 1:
            yield f"cache_factor must be above 0 and at most 1, got {self.cache_factor}"
        if not 0 <= self.release_limit_share <= 1:
            yield f"release_limit_share must lie in 0..1, got {self.release_limit_share}"

    def start_one(self, plan: Plan, op: Operator, why: Why, spare: Spare) -> None:
        """Fig. 4."""
        upscaling_procedure(plan, op, why, spare, self.cache_factor)

    def retire_one(self, plan: Plan, host: HostSample, spare: Spare) -> None:
        """Fig. 5."""
        rules = Downscaling(
            limit_share=self.release_limit_share,
            cache_factor=self.cache_factor,
            reclaim=self.reclaim_for_migrations,
        )
        downscaling_procedure(plan, host, spare, rules)
