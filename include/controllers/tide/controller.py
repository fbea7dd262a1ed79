"""tide: shares out places by the late items they save and leases hosts that are worth the price."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, inf

import numpy as np

from include.controllers.base import Setting
from include.controllers.plan import Plan
from include.controllers.tide.changes import LASTS_S, Pauses, pauses_of
from include.controllers.tide.estimates import (
    Flow,
    Load,
    TideMemory,
    expected,
    learned,
    load_of,
)
from include.controllers.tide.leases import (
    hosts_for,
    hosts_for_work,
    instances_worth_leasing,
    places_of,
    worth_working_off,
)
from include.controllers.tide.loss import (
    AGE_S,
    DISTURBED,
    FIRST,
    OVERLOAD,
    UNEVEN,
    WORK_OFF_S,
    Loss,
)
from include.controllers.tide.places import Places
from include.controllers.tide.reserve import compared, reserve_of
from include.model.decision import Decision, Reason, Why
from include.model.observation import HostSample, Observation

LONG_BTU_S = 2400.0
"""With a BTU of this length lateness counts twice, with twice this length three times. With long
BTUs a host that is leased too late for a peak is paid for long after it."""

STAYS_S = 100.0
"""Time that a new host stays beyond its mean boot, to work off the backlog it was ordered for."""

SWAP_ABOVE = 3.0
"""Late items per second that a swap must save. Until the stopped instance has ended both are on
the host, which then has less memory than they reserve."""
NEVER_CHEAP = 0.5
"""Upper bound of the price of a place, as a share of the items that an instance of the fastest
operator completes in a second. Without it, operators with long service times would never be worth
their price."""

MOST_CARE = 1e6
"""Hosts cost next to nothing then, beside late items; with more, decisions take ever longer."""


@dataclass(frozen=True, kw_only=True)
class Tide:
    """Shares out paid places by marginal lateness, and leases by what a place costs.

    ``docs/tide.md`` derives it and says how much each option matters.
    """

    setting: Setting
    interval_s: float = 15.0
    care: float = 1.0
    end_to_end: float = 0.0
    least_gain: float = 0.01

    def problems(self) -> Iterator[str]:
        if not 0 < self.care <= MOST_CARE:
            yield f"care must be above 0 and at most {MOST_CARE:g}, got {self.care}"
        if not 0 <= self.end_to_end <= 1:
            yield f"end_to_end must be from 0 to 1, got {self.end_to_end}"
        if not 0 <= self.least_gain < FIRST:
            yield f"least_gain must be at least 0 and below {FIRST:g}, got {self.least_gain}"

    def initial_instances(self) -> Mapping[str, int]:
        return dict.fromkeys(self.setting.topology.operator_names, 1)

    def initial_memory(self) -> TideMemory:
        return TideMemory()

    def decide(self, memory: TideMemory, observation: Observation) -> tuple[TideMemory, Decision]:
        """Update estimates, choose hosts to leave, lease, share out places, clear, prolong."""
        memory, load = self._learned(memory, observation)
        plan = Plan(self.setting, observation)
        nothing = Why(Reason.NOTHING_TO_DO, "no place is worth more to another operator")
        if not observation.operators:
            plan.keep_leases(0.0)
            return memory, plan.decision(Why(Reason.NO_MEASUREMENT, "no operator was read"))
        pauses = self._pauses(load, observation)
        load = replace(load, waiting=pauses.waiting_without)
        start_s = self._start_s + pauses.job_s
        lead_s = start_s + (self.setting.delays.host_boot_s or 0.0)
        needed = self._needed(self._soon(load, memory, lead_s), plan, pauses)
        loss = self._loss(self._soon(load, memory, start_s))
        leaving = self._leaving(plan, needed, pauses, loss) if memory.rate_per_s else ()
        staying = {host.host for host in plan.hosts} - set(leaving)
        for name in leaving:
            del plan.free[name]
        cleared = [
            host
            for host in plan.hosts
            if host.host not in staying
            and host.paid_until_s - plan.now_s <= self._clear_before_s(pauses.job_s)
        ]
        tried = plan.copy() if pauses.exist else plan
        sentence = f"{needed} hosts are worth their price, {len(staying)} stay"
        while len(staying) < needed and tried.may_lease:
            staying.add(tried.lease(Why(Reason.NO_CAPACITY, sentence)))
        if pauses.of_operators:
            among = observation.operators
            tried = self._worth_their_pauses(tried, loss, staying, leaving, among, pauses)
        else:
            self._share_out(tried, loss, staying, observation.operators, pauses)
        at_once = pauses.job_s > 0 and self._starts_with_job
        at_once = at_once and all(room.up for room in tried.free.values())
        cleared = [host for host in cleared if self._clear(tried, host, observation, at_once)]
        empty = [host for host in cleared if not plan.on_host(host.host)]
        if (
            len(empty) < len(cleared)
            or not pauses.job_s
            or _is_worth_a_pause(tried, plan, loss, pauses)
        ):
            plan.adopt(tried)
        else:
            for host in empty:  # to give it back restarts nothing
                self._clear(plan, host, observation, at_once)
        plan.keep_leases(0.0)
        return memory, plan.decision(nothing)

    @cached_property
    def _flow(self) -> Flow:
        return Flow(self.setting)

    @cached_property
    def _place_per_s(self) -> float:
        """Price of a place in late items per second: a host's, by the instances it holds."""
        return self._host_per_s(places_of(self.setting.flavor, self.setting.topology))

    @cached_property
    def _long_factor(self) -> float:
        """How many times as much lateness counts with BTUs of this length as with the shortest."""
        return 1 + self.setting.btu_s / LONG_BTU_S

    @cached_property
    def _start_s(self) -> float:
        """Until what the next decision starts is ready; a delay that is not known takes 0 s."""
        delays = self.setting.delays
        return self.interval_s + (delays.instance_start_s or 0.0) + (delays.image_pull_s or 0.0)

    @cached_property
    def _stays_s(self) -> float:
        """Time from the order of a host until it may go; a boot that is not known takes 0 s."""
        return (self.setting.delays.host_boot_s or 0.0) + STAYS_S

    @cached_property
    def _starts_with_job(self) -> bool:
        """Whether an instance is ready as soon as the job restarts."""
        return self._start_s == self.interval_s

    def _host_per_s(self, shared_by: float = 1.0) -> float:
        """Price of a host, or of one of ``shared_by`` parts, in late items per second.

        Infinite where a late item costs nothing; places then have the price of NEVER_CHEAP.
        """
        setting = self.setting
        price_per_s = setting.price_per_btu / setting.btu_s
        late_item = setting.penalty_per_item * self.care * self._long_factor
        return price_per_s / shared_by / late_item if late_item else inf

    def _drain_s(self, job_s: float) -> float:
        """Time that a stopped instance stays on its host: where the whole job pauses for ``job_s``,
        its last checkpoint is part of that."""
        drain_s = self.setting.delays.drain_s
        return (self.interval_s if drain_s is None else drain_s) + job_s

    def _clear_before_s(self, job_s: float) -> float:
        """Time before the end of a BTU to clear the host: two ticks, or a tick plus the drain."""
        return self.interval_s + max(self.interval_s, self._drain_s(job_s))

    def _may_go(self, host: HostSample, plan: Plan, job_s: float) -> bool:
        """Whether the host's BTU ends soon and the host can be empty by then.

        A new host stays at least STAYS_S. A host with less time than a drain stays, because its
        next BTU is billed anyway. If a BTU is shorter than a drain and a tick, a host may go until
        its end; if another one begins before every decision, at any time. Last instances start
        elsewhere one tick before it is cleared, except where they start with the whole job: that
        would be two restarts, and the next decision may keep the host.
        """
        if not host.up or plan.now_s - host.ordered_s < self._stays_s:
            return False
        if self.setting.btu_s < self.interval_s:
            return True
        left_s = host.paid_until_s - plan.now_s
        drain_s = self._drain_s(job_s)
        latest_s = drain_s if drain_s + self.interval_s <= self.setting.btu_s else 0.0
        early_s = 0.0 if job_s and self._starts_with_job else self.interval_s
        return latest_s <= left_s <= self._clear_before_s(job_s) + early_s

    def _learned(self, memory: TideMemory, observation: Observation) -> tuple[TideMemory, Load]:
        """Rates, service times and waiting items; late items beside those that were expected."""
        since_s = self._flow.read_s(observation.now_s) - self._flow.read_s(max(0.0, memory.seen_s))
        memory = learned(memory, observation, self._flow, self.interval_s)
        load = load_of(memory, self._flow)
        if memory.rate_per_s and since_s > 0:
            calm = self._loss(replace(load, waiting=np.zeros_like(load.waiting)))
            memory = compared(memory, observation, self._flow, calm, since_s)
        counts = 1 + self.end_to_end * self._flow.downstream
        return memory, replace(load, reserve=reserve_of(memory, self._flow), counts=counts)

    def _pauses(self, load: Load, observation: Observation) -> Pauses:
        """What a change stops, and how long it lasts: as seen so far, of operators and of the job.

        A change lasts as long as those before it did, or as the last one has lasted by now: first
        changes that come at once do not rule out those of a calm job.
        """
        changes = observation.job_changes
        since_s = observation.now_s - observation.job_started_s
        lasted_s = max(observation.now_s / changes, since_s) if changes else LASTS_S
        return Pauses(
            load.rate_per_s,
            load.waiting,
            pauses_of(self._flow.names, observation.operator_pauses),
            observation.job_paused_in_all_s / changes if changes else 0.0,
            min(LASTS_S, lasted_s),
        )

    def _loss(self, load: Load) -> Loss:
        return Loss(load, WORK_OFF_S, DISTURBED, UNEVEN, OVERLOAD, AGE_S)

    def _soon(self, load: Load, memory: TideMemory, seconds: float) -> Load:
        """The load with the highest rates of the next seconds, if it repeats."""
        return expected(load, memory, self._flow, round(seconds / self.interval_s))

    def _needed(self, load: Load, plan: Plan, pauses: Pauses) -> int:
        """Number of hosts for the instances that are worth their price.

        While a host boots the backlog counts as 0, because that host was ordered for it. A backlog
        also adds no place at operators that get one for every peak: hosts leased for it would come
        late and stay long. Where a change pauses something, which piles up more, it may take a
        whole lease. Shared cores work it off in STAYS_S, or in such a lease.
        """
        if any(not host.up for host in plan.hosts):
            load = replace(load, waiting=np.zeros_like(load.waiting))
        dearest_per_s = NEVER_CHEAP / float(load.service_s.min())
        place_per_s = min(self._place_per_s, dearest_per_s)
        # A lease that outlasts a peak by more is no reason to serve it.
        peak_per_s = min(self._place_per_s * self._long_factor, dearest_per_s)
        calm = replace(self._loss(load), work_off_s=np.inf, age_s=np.inf)
        worth_per_s = np.inf if pauses.exist else place_per_s
        lease_s = self.setting.btu_s * ceil(self._stays_s / self.setting.btu_s)
        busy = load.mean_per_s * load.service_s
        mean_busy = busy + worth_working_off(load, worth_per_s, lease_s)
        instances = instances_worth_leasing(calm, place_per_s, peak_per_s, mean_busy)
        operators = [plan.operator(name) for name in self._flow.names]
        flavor = self.setting.flavor
        hosts = hosts_for(instances, operators, flavor)
        if flavor.cpu_shared:
            in_s = lease_s if pauses.exist else STAYS_S
            cores = busy + load.waiting * load.service_s / in_s
            hosts = max(hosts, hosts_for_work(cores, flavor.vcpus))
        return hosts

    def _leaving(self, plan: Plan, needed: int, pauses: Pauses, loss: Loss) -> tuple[str, ...]:
        """Hosts to leave at the end of their BTU.

        The others that are up suffice, and moving the host's instances costs less than the host.
        """
        staying, leaving = sum(host.up for host in plan.hosts), list[str]()
        counts = plan.counts.astype(np.float64)
        of_job = pauses.cost_per_s(loss, counts, pauses.job_s).sum()
        going = [host for host in plan.hosts if self._may_go(host, plan, pauses.job_s)]
        for host in sorted(going, key=lambda host: host.paid_until_s):
            here = plan.counts_on({host.host})
            moved = pauses.cost_per_s(loss, np.maximum(1.0, counts - here), 2 * pauses.change_s)
            cost_per_s = of_job + moved[here > 0].sum() if here.any() else 0.0
            if staying > max(1, needed) and cost_per_s <= self._host_per_s():
                leaving.append(host.host)
                staying -= 1
        return tuple(leaving)

    def _worth_their_pauses(
        self,
        leased: Plan,
        loss: Loss,
        staying: Collection[str],
        leaving: Collection[str],
        among: Collection[str],
        pauses: Pauses,
    ) -> Plan:
        """Share out places, but not to operators that a pause costs more than they save.

        One that has no instance where hosts stay always gets it.
        """
        before = (leased.counts - leased.counts_on(leaving)).astype(np.float64)
        swaps = True
        while True:
            tried = leased.copy()
            self._share_out(tried, loss, staying, among, pauses, swaps=swaps)
            after = before + tried.counts - leased.counts
            saved = pauses.saved(loss, before, after)
            getting = (after > before) & (before > 0) & (pauses.rate_per_s * pauses.change_s > 0)
            refused = np.flatnonzero(getting & (saved <= 0))
            if refused.size:
                among = set(among) - {self._flow.names[row] for row in refused}
            elif swaps and saved[before > 0].sum() < 0:
                swaps = False
            else:
                return tried

    def _share_out(
        self,
        plan: Plan,
        loss: Loss,
        staying: Collection[str],
        among: Collection[str],
        pauses: Pauses,
        *,
        swaps: bool = True,
    ) -> None:
        """Fill hosts that are up first, where a place helps at once; then hosts that boot."""
        now = Places(plan, loss, among, plan.free.up.intersection(staying))
        now.fill(self.least_gain, only_up=True)
        if swaps:
            counts = plan.counts.astype(np.float64)
            pause_cost = pauses.cost_per_s(loss, counts, pauses.change_s)
            now.swap(max(SWAP_ABOVE, self.least_gain), pause_cost)
        later = Places(plan, loss, among, staying, plan.counts)
        later.fill(self.least_gain)

    def _clear(self, plan: Plan, host: HostSample, observation: Observation, at_once: bool) -> bool:
        """Stop or move all instances of the host and release it; False if one of them cannot go.

        The last instance of an operator stops only when another one is ready, or ``at_once`` if
        another one starts.
        """
        here = plan.on_host(host.host)
        if any(instance.operator not in observation.operators for instance in here):
            return False
        names = [instance.instance for instance in here]
        # Only a move can fail: where all may stop, thousands of steps need not be copied.
        tried = plan if all(plan.may_stop(each, names) for each in here) else plan.copy()
        ends = f"the BTU of {host.host} ends in {host.paid_until_s - plan.now_s:.0f} s"
        why = Why(Reason.LEASE_ENDS, f"{ends}, and the others suffice")
        for instance in here:
            replaced = at_once and tried.count(instance.operator) > 1
            if replaced or tried.may_stop(instance):
                tried.stop(instance, why)
                continue
            to = tried.most_suitable(tried.operator(instance.operator), only_up=True)
            if to is None:
                return False
            tried.migrate(instance, to, why, overlaps=tried.leaves_in_time(instance, to))
        tried.release(host, why)
        plan.adopt(tried)
        return True


def _is_worth_a_pause(tried: Plan, plan: Plan, loss: Loss, pauses: Pauses) -> bool:
    """Whether fewer items are late with what was tried, after a pause of the whole job."""
    if (tried.counts[plan.counts == 0] > 0).any():
        return True
    before, after = plan.counts.astype(np.float64), tried.counts.astype(np.float64)
    return bool(pauses.saved(loss, before, after).sum() > 0)
