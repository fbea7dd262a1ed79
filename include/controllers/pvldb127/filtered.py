"""A filter in front of a threshold rule: Borkowski et al., PVLDB 12(7), sections 2 and 3.3.

Every operator is scaled for itself; a host takes instances by first fit and is given back once
its last instance has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter

import numpy as np

from include.controllers.base import Setting
from include.controllers.first_fit import release_empty_hosts, start_first_fit
from include.controllers.plan import Plan
from include.controllers.pvldb127.filters.base import Filter, FilterMemory, Measured, Pure
from include.controllers.pvldb127.filters.ekf import Ekf
from include.controllers.pvldb127.filters.weierstrass import Weierstrass
from include.controllers.pvldb127.rules import InstanceChange, Utilisation, metrics_of
from include.model.decision import Decision, Reason, Why
from include.model.errors import below_0, not_above_0
from include.model.observation import InstanceSample, Observation

FEWEST_TO_FIT = 20
"""Readings in the dead time that a and b are fitted to: what the paper has at 2 Hz in 10 s."""
MEMORY_NOISE = 0.01
"""Standard deviation of the measurement noise of the memory: a square root of R."""


@dataclass(frozen=True, slots=True)
class FilteredMemory:
    """When operators were read last, and what the filter remembers."""

    seen_s: float
    filtered: FilterMemory


@dataclass(frozen=True, kw_only=True)
class Filtered:
    """``filter`` is pure, weierstrass or ekf.

    An operator is scaled when its filter is through its bootstrapping and, with
    ``waits_for_handover``, while no instance of it is stopping: that one hands over its state,
    and what is measured then is not the load. Instances that start count in the average and do
    nothing yet, which keeps a rule without a count from starting one more in every period. With
    ``stops_by_ready`` nothing is stopped only because they idle: the average of those that are
    ready must be below the lower threshold, too.

    Without ``starting_counts`` the average is that of the ready ones alone: "As VMs are spun up",
    the upper threshold "remains exceeded" (section 4.1). So a filter without a count starts one
    more in every decision until they are there; of what one with a count asks for, those that
    start are a part.
    """

    setting: Setting
    filter: str = "pure"
    interval_s: float = 0.0
    """0: every monitoring period."""
    scale_up_above: float = 0.80
    scale_down_below: float = 0.45
    aim_between: float = 0.5
    waits_for_handover: bool = True
    stops_by_ready: bool = False
    starting_counts: bool = True
    scales_every_s: float = 0.0
    """How often an operator may be scaled; filters take in every period. 0: in every period."""
    warm_instances: int = 0
    """Instances at the start: the average of an earlier run. 0 is a cold start, by the topology."""
    variance_s2: float = 9.0
    window_s: float = 60.0
    dead_time_s: float = 10.0
    cpu_noise: float = 0.1
    """Standard deviation of the measurement noise: a square root of R."""
    q_floor: float = 0.001
    keeps_total: bool = False
    """Whether an estimate of ekf stays when an instance leaves: the others have its work to do."""
    input_per_instance: bool = False
    """Whether an instance of ekf takes in its part of the operator's rate, and of its change."""
    cpu_per_rate: float = 0.0
    cpu_per_rate_change: float = 0.0
    """a and b of the CPU, per item and second that arrive for the operator (those of the memory
    are 0); both 0: all are fitted in the dead time."""

    def __post_init__(self) -> None:
        """The paper measures and decides at the same 2 Hz."""
        if self.interval_s == 0:
            object.__setattr__(self, "interval_s", self.setting.monitor_every_s)

    def problems(self) -> Iterator[str]:
        if self.filter not in FILTERS:
            yield f"filter must be one of {', '.join(FILTERS)}, got {self.filter!r}"
        above_0 = ("variance_s2", "window_s", "cpu_noise", "q_floor")
        yield from not_above_0(self, *above_0)
        yield from below_0(self, "dead_time_s", "warm_instances", "scales_every_s")
        yield from self._rule.problems()

    @property
    def _rule(self) -> Utilisation:
        return Utilisation(self.scale_up_above, self.scale_down_below, self.aim_between)

    def initial_instances(self) -> Mapping[str, int]:
        """What an earlier run needed (warm start), else what the topology starts with."""
        return {
            op.name: self.warm_instances or op.instances_at_start
            for op in self.setting.topology.operators
            if op.name in self.setting.topology.operator_names
        }

    def initial_memory(self) -> FilteredMemory:
        return FilteredMemory(-self.interval_s, FILTERS[self.filter](self).initial())

    def decide(self, memory: FilteredMemory, seen: Observation) -> tuple[FilteredMemory, Decision]:
        """Filter every operator, then scale those whose estimate leaves its thresholds."""
        kept, changes = self._verdicts(memory, seen)
        detail = next((f"; {name}: {one.why}" for name, one in changes.items()), "")
        idle = Why(
            Reason.NOTHING_TO_DO if changes else Reason.NO_MEASUREMENT,
            f"nothing to do: of {len(seen.operators)} operators {len(changes)} have an estimate, "
            f"and none is to be scaled{detail}",
        )
        # Counts go on while nobody reads: the next ones are of all that time.
        after = FilteredMemory(seen.now_s if seen.operators else memory.seen_s, kept)
        if not self._is_due(seen.now_s):
            changes = {name: InstanceChange(0, one.why) for name, one in changes.items()}
        if not any(one.count for one in changes.values()) and self._at_rest(seen):
            return after, Decision((), idle.sentence, idle.reason)
        plan = Plan(self.setting, seen)
        release_empty_hosts(plan)
        busy = {one.operator for one in seen.instances.values() if one.stopping}
        for name in self.setting.topology.operator_names:
            if name not in seen.operators:
                continue
            if plan.count(name) == 0:
                lost = Why(Reason.INSTANCE_LOST, f"{name} has no instance left")
                start_first_fit(plan, name, lost)
            elif name in changes and not (self.waits_for_handover and name in busy):
                self._scale(plan, name, changes[name])
        plan.keep_leases(0)
        return after, plan.decision(idle)

    def _is_due(self, now_s: float) -> bool:
        """Whether operators may be scaled at this time."""
        periods = max(1, round(self.scales_every_s / self.interval_s))
        return round(now_s / self.interval_s) % periods == 0

    def _at_rest(self, seen: Observation) -> bool:
        """Whether no host is empty, no lease ends and no operator has lost its last instance."""
        used = {one.host for one in seen.instances.values()}
        return all(seen.serving(name) for name in seen.operators) and all(
            host.host in used and host.paid_until_s > seen.now_s
            for host in seen.hosts.values()
            if not host.releasing
        )

    def _verdicts(
        self, memory: FilteredMemory, seen: Observation
    ) -> tuple[FilterMemory, dict[str, InstanceChange]]:
        measured = measure(seen, seen.now_s - memory.seen_s)
        if measured is None:
            return memory.filtered, {}
        chosen, rule = FILTERS[self.filter](self), self._rule
        kept, estimate = chosen.step(memory.filtered, measured)
        ready = measured.count() - measured.starting
        rows = zip(
            measured.operators, estimate.total.tolist(), measured.count().tolist(),
            ready.tolist(), estimate.usable.tolist(), strict=True,
        )  # fmt: skip
        return kept, {
            name: self._judge(rule, total, count, ready, chosen.counts)
            for name, total, count, ready, usable in rows
            if usable
        }

    def _judge(
        self, rule: Utilisation, total: Sequence[float], count: int, ready: int, counts: bool
    ) -> InstanceChange:
        """What the rule says of an operator with ``count`` instances, ``ready`` of them at work."""
        if not self.starting_counts:
            change = rule.judge(total, ready, counts=counts)
            if counts and change.count > 0:
                return InstanceChange(max(0, change.count - (count - ready)), change.why)
            return change
        change = rule.judge(total, count, counts=counts)
        fewer = change.count < 0 and self.stops_by_ready and ready < count
        if fewer and rule.judge(total, ready, counts=counts).count >= 0:
            return InstanceChange(0, change.why)
        return change

    def _scale(self, plan: Plan, name: str, change: InstanceChange) -> None:
        why = Why(change.why.reason, f"{name}: {change.why}")
        for _ in range(change.count):
            start_first_fit(plan, name, why)
        for _ in range(-change.count):
            last = last_ready(plan, name)
            if last is not None:
                plan.stop(last, why, frees=False)


def last_ready(plan: Plan, operator: str) -> InstanceSample | None:
    """The instance to stop: the one started last, of those that are ready; one must stay.

    Instances on hosts that the monitor could not read are left alone.
    """
    ready = [one for one in plan.serving(operator) if one.ready and one.host in plan.free]
    return ready[-1] if ready and plan.may_stop(ready[-1]) else None


def _ekf(options: Filtered) -> Ekf:
    a = (options.cpu_per_rate, 0.0)
    b = (options.cpu_per_rate_change, 0.0)
    # A slow monitor leaves a and b at 0: a line through one or two readings is no model.
    fewest_s = FEWEST_TO_FIT * options.setting.monitor_every_s
    has_model = any((*a, *b)) or options.dead_time_s < fewest_s
    return Ekf(
        r=(options.cpu_noise**2, MEMORY_NOISE**2),
        a=a if has_model else (),
        b=b if has_model else (),
        dead_time_s=options.dead_time_s,
        q_floor=options.q_floor,
        keeps_total=options.keeps_total,
        input_per_instance=options.input_per_instance,
    )


FILTERS: Mapping[str, Callable[[Filtered], Filter]] = {
    "pure": lambda _: Pure(),
    "weierstrass": lambda o: Weierstrass(o.variance_s2, o.window_s),
    "ekf": _ekf,
}


_name = attrgetter("instance")


def measure(seen: Observation, since_s: float) -> Measured | None:
    """The metrics of every ready instance that was read; None when there is none (section 2.1).

    An operator without any is left out: what was not measured is not zero. So is a metric that
    one of the instances lacks. ``since_s`` is how long ago the monitor counted before.
    """
    operators: list[str] = []
    starting: list[int] = []
    rates: list[float] = []
    names: list[str] = []
    unread: set[str] = set()
    owner: list[int] = []
    rows: list[tuple[float, ...]] = []
    for name, sample in sorted(seen.operators.items()):
        serving = seen.serving(name)
        ready = sorted((one for one in serving if one.ready), key=_name)
        read = [metrics_of(instance) for instance in ready]
        complete = [row for row in read if row is not None]
        if not complete or since_s <= 0:
            continue
        both = list(zip(ready, read, strict=True))
        names += [one.instance for one, row in both if row is not None]
        unread |= {one.instance for one, row in both if row is None}
        rows += complete
        owner += [len(operators)] * len(complete)
        operators.append(name)
        starting.append(len(serving) - len(ready))
        rates.append(sample.arrived_items / since_s)
    if not operators:
        return None
    metrics = min(map(len, rows))
    if metrics < max(map(len, rows)):
        rows = [row[:metrics] for row in rows]
    return Measured(
        t_s=seen.now_s,
        operators=tuple(operators),
        starting=np.array(starting, dtype=np.int64),
        rate=np.array(rates),
        instances=tuple(names),
        operator_of=np.array(owner, dtype=np.int64),
        z=np.array([*chain.from_iterable(rows)]).reshape(len(rows), metrics),
        unread=frozenset(unread),
    )
