"""Henge: intent-driven multi-tenant stream processing (Kalim et al., section 4.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from include.controllers.base import Setting
from include.controllers.first_fit import release_empty_hosts
from include.controllers.fixed import TOPOLOGY, manual_instances, manual_problems
from include.controllers.henge.jobs import (
    CONGESTION_THRESHOLD,
    Job,
    capacities,
    congested_hosts,
    extra_instances,
    is_mute,
    jobs_of,
    utility_of,
    worst_first,
)
from include.controllers.henge.memory import HengeMemory, Trial
from include.controllers.henge.spread import Spread
from include.controllers.henge.state_machine import Move, RoundState, next_move
from include.controllers.plan import Plan
from include.model.decision import Decision, Reason, Why
from include.model.errors import below_0, not_above_0
from include.model.observation import Observation

QUIESCE_S = 60.0
"""How long utilities take to settle after an action, from when its instances are ready
(HENGE-WINDOW)."""
START_LIMIT_S = 300.0
"""Longest wait for an instance to start."""
LEAST_GAIN = 0.05
"""Smallest relative gain in utility that keeps a reconfigured job off the black list."""
SKIP_S = 3600.0
"""Time that a job stays on the black list."""
LARGE_DROP = 0.05
"""Relative drop that ends the Converged state or fails a reconfiguration (HENGE-DROP)."""
SATISFIED_WITHIN = 0.005
"""A job this close to its maximal utility meets its SLO (HENGE-SATISFIED)."""
OUTAGE_S = 60.0
"""A gap in the statistics that is longer is an outage (Fig. 21, HENGE-SILENT)."""


@dataclass(frozen=True, kw_only=True)
class Henge:
    """Gives instances to jobs that miss their SLO, and takes them from others if necessary.

    If the setting leases hosts at the start it leases no more, unless ``lease_hosts``.
    """

    setting: Setting
    interval_s: float = 10.0
    start_s: float = 900.0
    """"Initially allow topologies to run for 900 s without interference"."""
    reduction: float = 0.8
    noise: float = 0.01
    """Smallest difference in utility between two configurations."""
    window_s: float = 30.0
    """Utilities are means over this time: the second half of the wait after an action, without
    the pause that the action causes in the first half."""
    fresh_data_s: float = 300.0
    """Time without actions after an outage (Fig. 21)."""
    lease_hosts: bool = False
    instances: str = TOPOLOGY
    """Instances at the start: as the jobs' owners submitted them, or "parse=4 store=2"."""

    def problems(self) -> Iterator[str]:
        yield from not_above_0(self, "window_s")
        if not 0 < self.reduction < 1:
            yield f"reduction must be between 0 and 1, got {self.reduction}"
        yield from below_0(self, "start_s", "noise", "fresh_data_s")
        yield from manual_problems(self.instances, self.setting.topology)

    def initial_instances(self) -> Mapping[str, int]:
        return manual_instances(self.instances, self.setting.topology)

    def initial_memory(self) -> HengeMemory:
        return HengeMemory(act_from_s=self.start_s)

    def decide(self, memory: HengeMemory, observation: Observation) -> tuple[HengeMemory, Decision]:
        plan = Plan(self.setting, observation)
        if self.leases:
            release_empty_hosts(plan)
        now = _Round(self, observation, plan)
        now.replace_lost(memory)
        memory, why = now.run(memory)
        plan.keep_leases(0)
        return memory, plan.decision(why)

    @property
    def leases(self) -> bool:
        """Whether more hosts may be leased."""
        return self.lease_hosts or self.setting.hosts_at_start == 0

    @cached_property
    def jobs(self) -> tuple[Job, ...]:
        return jobs_of(self.setting.topology)


class _Round:
    """One decision: its observation and the plan that it writes."""

    def __init__(self, henge: Henge, observation: Observation, plan: Plan) -> None:
        self.henge = henge
        self.observation = observation
        self.plan = plan
        self.jobs = henge.jobs
        self.max_utility = 1.0
        self._spread: Spread | None = None

    @property
    def spread(self) -> Spread:
        """Made lazily, because most rounds change nothing."""
        if self._spread is None:
            setting = self.henge.setting
            leases = self.henge.leases
            self._spread = Spread(self.plan, setting, self.observation, may_lease=leases)
        return self._spread

    def replace_lost(self, memory: HengeMemory) -> None:
        """Replace lost instances, up to the number that Henge or the topology wants."""
        for name, first in self.henge.initial_instances().items():
            wanted = memory.wanted.get(name, first)
            have = self.plan.count(name)
            if have < wanted and name in self.observation.operators:
                why = Why(Reason.INSTANCE_LOST, f"{name} has {have} of its {wanted} instances")
                self.spread.start(name, wanted - have, why)

    def run(self, memory: HengeMemory) -> tuple[HengeMemory, Why]:
        """Read utilities, wait until they settle, then make the state machine's move."""
        now_s = self.observation.now_s
        memory, silence = self._with_readings(memory)
        if silence:
            return memory, Why(Reason.NO_MEASUREMENT, silence)
        if self._starting():
            memory = memory.waiting(now_s + QUIESCE_S)
        reporting = [job for job in self.jobs if job.name in memory.recent]
        self.max_utility = sum(job.max_utility for job in reporting)
        total = sum(memory.utilities.values())
        share = total / self.max_utility
        worth = f"utility {total:.2f} of {self.max_utility:g}"
        if now_s < memory.act_from_s:
            sentence = f"{worth}; nothing before {memory.act_from_s:.0f} s"
            return memory, Why(Reason.SETTLING, sentence)
        if memory.converged:
            memory = self._watched(memory, share)
            if memory.converged:
                return memory, Why(Reason.CONVERGED, f"converged: {worth}")
        return self._move(memory, share, worth)

    def _watched(self, memory: HengeMemory, share: float) -> HengeMemory:
        """A round in the Converged state: whether to stay in it (section 4.3.3).

        A large drop means that the workload has changed, so the history is reset. If another job
        misses its SLO the search continues from the current configuration.
        """
        expected = max(memory.expected_share, share)
        if share < expected * (1 - LARGE_DROP):
            return memory.reset()
        missing = tuple(job.name for job in self._missing(memory))
        tolerated = missing if memory.tolerated is None else memory.tolerated
        lasts = set(missing) <= set(tolerated)
        return replace(memory, expected_share=expected, tolerated=tolerated, converged=lasts)

    def _missing(self, memory: HengeMemory) -> list[Job]:
        return worst_first(self.jobs, memory.utilities, 1 - SATISFIED_WITHIN)

    def _with_readings(self, memory: HengeMemory) -> tuple[HengeMemory, str]:
        """Returns the memory with the new utilities, and why there are none (or "")."""
        henge, now_s = self.henge, self.observation.now_s
        mute = [
            job.name
            for job in self.jobs
            if is_mute(job, self.observation, has_reported=job.name in memory.recent)
        ]
        if mute:
            return memory, f"no statistics of {len(mute)} jobs, {mute[0]} among them"
        measured = {
            job.name: utility
            for job in self.jobs
            if (utility := utility_of(job, self.observation)) is not None
        }
        if not measured and not memory.recent:
            return memory, "no statistics of any job"
        if memory.heard_s is not None and now_s - memory.heard_s > OUTAGE_S:
            memory = memory.waiting(now_s + henge.fresh_data_s)
        if memory.recent and not measured.keys() <= memory.recent.keys():
            # "Reset if external factors change (input rate, set of jobs, etc.)"
            memory = memory.reset().waiting(now_s + QUIESCE_S)
        samples = max(1, round(henge.window_s / henge.interval_s))
        return replace(memory.with_utilities(measured, samples), heard_s=now_s), ""

    def _starting(self) -> bool:
        """Whether a recently started instance is not ready yet."""
        since_s = self.observation.now_s - START_LIMIT_S
        return any(
            not (instance.ready or instance.stopping) and instance.started_s >= since_s
            for instance in self.observation.instances.values()
        )

    def _move(self, memory: HengeMemory, share: float, worth: str) -> tuple[HengeMemory, Why]:
        henge = self.henge
        memory, fell, note = self._judged(memory, share)
        worth = f"{worth}{note}"
        missing, seen, limit = self._missing(memory), self.observation, CONGESTION_THRESHOLD
        candidates = [
            (job, congested)
            for job in missing
            if not memory.skips(job.name, self.observation.now_s)
            and (congested := {name: c for name, c in capacities(job, seen) if c > limit})
        ]
        loaded, hosts = congested_hosts(self.observation, henge.setting.flavor.vcpus)
        reducible = self._reducible(memory, missing) if fell else {}
        move = next_move(
            RoundState(
                fell=fell,
                at_max=not missing,
                stable_rounds=memory.stable_rounds,
                congested=loaded * 2 > hosts,
                reducible=bool(reducible),
                just_reduced=memory.just_reduced,
                candidates=bool(candidates),
            )
        )
        if move is Move.REDUCE:
            sentence = f"{worth} on {loaded} congested of {hosts} hosts"
            return self._reduce(memory, reducible, sentence)
        if move is Move.RECONFIGURE and (done := self._reconfigure(memory, candidates)):
            return done
        if move is Move.STAY:
            rounds = memory.stable_rounds + 1
            why = Why(Reason.SLO_MET, f"{worth} for {rounds} rounds")
            return replace(memory, stable_rounds=rounds), why
        if move is Move.CONVERGE:
            sentence = f"{worth} for {memory.stable_rounds} rounds: converged"
            return memory.settled(share), Why(Reason.CONVERGED, sentence)
        return self._revert(memory, share, worth)

    def _judged(self, memory: HengeMemory, share: float) -> tuple[HengeMemory, bool, str]:
        """Judge the last reconfiguration.

        Returns the memory with history and black list, whether utility fell, and a note.
        """
        trial = memory.trial
        if trial is None:
            return self._remembered(memory), False, ""
        after = memory.utilities[trial.job]
        fell = share < trial.share * (1 - LARGE_DROP)
        memory = replace(self._remembered(memory), trial=None)
        if not fell:
            memory = replace(memory, just_reduced=False)
        note = f"; {trial.job} went from {trial.utility:.2f} to {after:.2f}"
        if after < trial.utility * (1 + LEAST_GAIN) or after <= trial.utility:
            memory = memory.skipping(trial.job, self.observation.now_s + SKIP_S)
            note += f", skipped until {self.observation.now_s + SKIP_S:.0f} s"
        return memory, fell, note

    def _remembered(self, memory: HengeMemory) -> HengeMemory:
        share = sum(memory.baseline.values()) / self.max_utility
        return memory.with_best(share, self._instances(), self.henge.noise)

    def _instances(self) -> dict[str, int]:
        names = self.henge.setting.topology.operator_names
        return {name: count for name in names if (count := self.plan.count(name))}

    def _reconfigure(
        self, memory: HengeMemory, candidates: list[tuple[Job, dict[str, float]]]
    ) -> tuple[HengeMemory, Why] | None:
        """Section 4.3.1: instances for the first job that there is room for."""
        now_s = self.observation.now_s
        for job, congested in candidates:
            utility = memory.utilities[job.name]
            sentence = f"{job.name} misses its SLO: utility {utility:.2f} of {job.max_utility:g}"
            needs = Why(Reason.SLO_VIOLATED, sentence)
            started: dict[str, int] = {}
            for name, capacity in congested.items():
                extra = extra_instances(capacity)
                why = needs + f"; capacity {capacity:.2f} of {name} asks for {extra} more"
                started[name] = self.spread.start(name, extra, why)
            if any(started.values()):
                before = memory.baseline
                share = sum(before.values()) / self.max_utility
                trial = Trial(job.name, before[job.name], share)
                memory = replace(self._wanting(memory, started), trial=trial, stable_rounds=0)
                return memory.waiting(now_s + QUIESCE_S), needs
        return None

    def _reducible(self, memory: HengeMemory, missing: list[Job]) -> dict[str, dict[str, float]]:
        """Satisfied jobs that were not reduced before, and their operators with some to spare."""
        short = {job.name for job in missing}
        limit = CONGESTION_THRESHOLD
        reducible = {}
        for job in self.jobs:
            if job.name in memory.recent and job.name not in {*short, *memory.reduced}:
                spare = {
                    name: capacity
                    for name, capacity in capacities(job, self.observation)
                    if capacity <= limit and self.plan.count(name) > 1
                }
                if spare:
                    reducible[job.name] = spare
        return reducible

    def _reduce(
        self, memory: HengeMemory, reducible: dict[str, dict[str, float]], cause: str
    ) -> tuple[HengeMemory, Why]:
        """Section 4.3.2: four of five instances of what is not congested go."""
        touched = {}
        for job, operators in reducible.items():
            for name, capacity in operators.items():
                # Rounded down as the original rounds, but never the last one.
                keep = int(self.plan.count(name) * (1 - self.henge.reduction) + 1e-9)
                spare = f"{cause}: {job} meets its SLO, capacity of {name} is {capacity:.2f}"
                touched[name] = -self.spread.stop(name, keep, Why(Reason.SLO_MET, spare))
        memory = self._wanting(memory, touched).after_reduction(reducible)
        return memory.waiting(self.observation.now_s + QUIESCE_S), Why(
            Reason.SLO_MET, f"{cause}: reduction"
        )

    def _revert(self, memory: HengeMemory, share: float, worth: str) -> tuple[HengeMemory, Why]:
        """Section 4.3.3: the configuration with the highest utility, and Converged."""
        best = memory.best
        if best is None or best.instances == self._instances():
            sentence = f"{worth}: nothing would improve it, converged"
            return memory.settled(share), Why(Reason.CONVERGED, sentence)
        sentence = f"{worth}; back to the configuration with {best.share * self.max_utility:.2f}"
        why = Why(Reason.BEST_CONFIGURATION, sentence)
        touched = {}
        for name, count in best.instances.items():
            if name in self.observation.operators and self.plan.count(name) > count:
                touched[name] = -self.spread.stop(name, count, why)
        for name, count in best.instances.items():
            if name in self.observation.operators and self.plan.count(name) < count:
                short = count - self.plan.count(name)
                touched[name] = self.spread.start(name, short, why)
        memory = self._wanting(memory, touched).settled(best.share)
        return memory.waiting(self.observation.now_s + QUIESCE_S), why

    def _wanting(self, memory: HengeMemory, changed: Mapping[str, int]) -> HengeMemory:
        """What Henge wants from now on is what the plan leaves."""
        now = {name: self.plan.count(name) for name in changed}
        return replace(memory, wanted={**memory.wanted, **now})
