"""tide: places go to the operators that save most by them, hosts to those that are worth it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from include.controllers.base import Setting
from include.controllers.plan import Plan
from include.controllers.tide.estimates import Flow, TideMemory, learned, load_of
from include.controllers.tide.hosts import hosts_for, wanted_instances
from include.controllers.tide.loss import Loss
from include.controllers.tide.places import Places
from include.model.decision import Decision, Reason, Why
from include.model.observation import HostSample, Observation


@dataclass(frozen=True, kw_only=True)
class Tide:
    """Shares out paid places by marginal lateness, and leases by what a place costs."""

    setting: Setting
    interval_s: float = 15.0
    care: float = 1.0
    work_off_s: float = 40.0
    disturbed: float = 0.03
    overload: float = 4.0
    patience: int = 2
    mean_s: float = 600.0
    half_life_s: float = 600.0
    backlog_s: float = 300.0
    age_s: float = 20.0
    age_weight: float = 10.0
    swap_above: float = 1.0
    decide_before_s: float = 45.0
    leave_before_s: float = 30.0
    host_price_per_min: float = 0.1
    penalty_per_item: float = 0.0001

    def problems(self) -> Iterator[str]:
        """Options that make no sense, each with what to do."""
        for name in ("interval_s", "care", "work_off_s", "mean_s", "half_life_s", "backlog_s"):
            if getattr(self, name) <= 0:
                yield f"{name} must be above 0, got {getattr(self, name)}"

    def initial_instances(self) -> Mapping[str, int]:
        """One instance of every operator."""
        return dict.fromkeys(self.setting.topology.operator_names, 1)

    def initial_memory(self) -> TideMemory:
        """Nothing is known."""
        return TideMemory()

    @cached_property
    def _flow(self) -> Flow:
        return Flow(self.setting)

    @cached_property
    def _place_per_s(self) -> float:
        """What a place costs, in late items per second: hosts, shared by what fits on one."""
        room, operators = self.setting.flavor.capacity, self.setting.topology.operators
        mean_mb = sum(op.memory_mb for op in operators) / len(operators)
        places = max(1.0, room.memory_mb // mean_mb)
        return self.host_price_per_min / 60 / places / (self.penalty_per_item * self.care)

    def decide(self, memory: TideMemory, seen: Observation) -> tuple[TideMemory, Decision]:
        """Learn, see off hosts whose BTU ends, share out places, lease, prolong."""
        memory = learned(memory, seen, self._flow, self.half_life_s, self.mean_s)
        plan = Plan(self.setting, seen)
        load = load_of(memory, self._flow)
        weight = 1 + load.waiting / np.maximum(load.rate_per_s, 1e-9) / self.age_s
        loss = Loss(
            load,
            self.work_off_s,
            self.disturbed,
            self.overload,
            np.minimum(weight, self.age_weight),
        )
        operators = [plan.operator(name) for name in self._flow.names]
        wanted = wanted_instances(loss, self._place_per_s, self.backlog_s)
        needed = hosts_for(wanted, operators, self.setting.flavor)
        known = bool(memory.rate_per_s)
        leaving = self._leaving(memory, plan, needed) if known else []
        staying = [host for host in plan.hosts if host.host not in leaving]
        for host in plan.hosts:
            if host.host in leaving:
                del plan.free[host.host]
        if known:
            self._share_out(plan, loss, staying)
        gone = [
            host
            for host in plan.hosts
            if host.host in leaving
            and host.paid_until_s - plan.now_s <= self.leave_before_s
            and self._clear(plan, host)
        ]
        short = memory.short + 1 if needed > len(staying) else 0
        if known and short >= self.patience:
            for _ in range(needed - len(staying)):
                if len(plan.free) >= self.setting.max_hosts:
                    break
                told = f"{needed} hosts are worth their price, {len(staying)} stay"
                plan.lease(Why(Reason.NO_CAPACITY, told))
        plan.keep_leases(0.0)
        left = tuple(name for name in leaving if name not in {host.host for host in gone})
        waiting = Why(Reason.NOTHING_TO_DO, "no place is worth more to another operator")
        return replace(memory, short=short, leaving=left), plan.decision(waiting)

    def _leaving(self, memory: TideMemory, plan: Plan, needed: int) -> list[str]:
        """Hosts that go when their BTU ends; the others suffice."""
        here = {host.host for host in plan.hosts}
        leaving = [name for name in memory.leaving if name in here]
        ending = sorted(plan.hosts, key=lambda host: host.paid_until_s)
        for host in ending:
            left_s = host.paid_until_s - plan.now_s
            staying = len(here) - len(leaving)
            soon = 0 < left_s <= self.decide_before_s
            if host.host not in leaving and soon and staying > max(1, needed):
                leaving.append(host.host)
        return leaving

    def _share_out(self, plan: Plan, loss: Loss, staying: list[HostSample]) -> None:
        names = self._flow.names
        up = Places(plan, loss, names, {host.host for host in staying if host.up})
        up.fill(0.01, only_up=True)
        up.swap(self.swap_above)
        everywhere = Places(plan, loss, names, {host.host for host in staying})
        everywhere.instances = plan.counts.astype(float)
        everywhere.fill(0.01, only_up=False)

    def _clear(self, plan: Plan, host: HostSample) -> bool:
        """Stop or move what runs there and give the host back; whether that can be."""
        tried = plan.copy()
        ends = f"the BTU of {host.host} ends in {host.paid_until_s - plan.now_s:.0f} s"
        why = Why(Reason.LEASE_ENDS, f"{ends}, and the others suffice")
        for one in tried.on_host(host.host):
            if tried.may_stop(one):
                tried.stop(one, why)
                continue
            choice = tried.free.best(tried.operator(one.operator), only_up=True)
            if choice is None:
                return False
            tried.migrate(one, choice.host, why)
        tried.release(host, why)
        plan.adopt(tried)
        return True
