"""A recorded load over the model of a job, under any controller."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from include.advise.cluster import OPERATOR, ReplayCluster, ReplayLease
from include.advise.job import JobModel
from include.advise.readings import STEP_S, Flags
from include.controllers.base import Controller, Setting
from include.controllers.deployment import first_deployment
from include.controllers.failures import WHATEVER, deadline, decide_failed
from include.model.decision import StartInstance, StopInstance
from include.model.host import HostFlavor, PriceBook
from include.model.observation import Observation, OperatorSample
from include.model.topology import Edge, Operator, Source, Topology
from include.testbeds.virtual.key_groups import loads_of_instances
from include.workloads.recordings.recording import FloatArray

SCALINGS = (StartInstance, StopInstance)
SHORTEST_BTU_S = 60.0
"""A book that bills by the second tells controllers that they pay by the minute: they plan leases,
and one of a second is over before a host is up."""


@cache
def _fullest(parts: int, instances: int) -> float:
    return float(loads_of_instances(np.ones(parts), instances).max())


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayConditions:
    """What a replay takes for granted. CPU is read as a mean of ``metrics_every_s``, once in that
    time; a change takes ``takes_s``; there are at most ``max_instances``.

    With ``redeploy_s`` above 0 a change takes the whole job down and deploys it again, as the Flink
    operator does (``ApplicationReconciler``): no instance is there until the new ones have started,
    nothing is processed for ``redeploy_s``, and the controller is not asked.

    With ``parts`` above 0 the records come in so many equal parts (key groups, partitions), and an
    instance takes whole ones: the one with the most of them is the busiest, and the limit."""

    instances_at_start: int
    max_instances: int
    takes_s: float = 15.0
    redeploy_s: float = 0.0
    parts: int = 0
    metrics_every_s: float = 60.0
    instances_per_host: int = 1
    btu_s: float = 3600.0
    price_per_btu: float = 1.0
    penalty_per_item: float = 0.0001
    latency_limit_s: float = 2.0
    seed: int = 0


def priced(conditions: ReplayConditions, book: PriceBook) -> ReplayConditions:
    """The conditions with the prices that controllers weigh a host and a late record by."""
    book = book.by_at_least(SHORTEST_BTU_S)
    return replace(
        conditions,
        btu_s=book.btu_s,
        price_per_btu=book.price_per_btu,
        penalty_per_item=book.penalty_per_item,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What a controller would have done: readings by step, and leases."""

    instances: FloatArray
    cpu_share: FloatArray
    lag_items: FloatArray
    latency_s: FloatArray
    leases: tuple[ReplayLease, ...]
    by_operator: FloatArray | None = None
    """Instances of each operator, shape (operators, steps), where they were replayed one by one."""
    beyond: Flags | None = None
    """Steps at which a load of an instance came of which nothing was recorded; None: as
    `JobModel.is_beyond` has it."""


def setting_for(demand_ms: float, conditions: ReplayConditions) -> Setting:
    """What a controller is told: one operator, of which a host takes so many instances."""
    operator = Operator(
        name=OPERATOR,
        label="the whole job",
        slo_ms=1000 * conditions.latency_limit_s,
        cpu_cores=1.0,
        memory_mb=1000.0,
        storage_mb=0.0,
        service_ms=max(1e-6, demand_ms),
    )
    topology = Topology(
        name="recorded",
        level_unit="records",
        emission_period_s=1.0,
        operators=(operator,),
        sources=(Source(name="load", label="the load", items_per_level=1.0, size_bytes=0),),
        edges=(Edge(origin="load", target=OPERATOR),),
    )
    return setting_on(topology, conditions, conditions.max_instances)


def setting_on(topology: Topology, conditions: ReplayConditions, most: int) -> Setting:
    """The same on any topology, with ``most`` instances in all."""
    each = conditions.instances_per_host
    return Setting(
        topology=topology,
        flavor=HostFlavor(name="host", vcpus=float(each), memory_mb=1000.0 * each),
        btu_s=conditions.btu_s,
        seed=conditions.seed,
        price_per_btu=conditions.price_per_btu,
        penalty_per_item=conditions.penalty_per_item,
        monitor_every_s=STEP_S,
        max_hosts=math.ceil(most / each),
    )


class _Replay:
    """The state of a replay from one step to the next."""

    def __init__(self, job: JobModel, load: FloatArray, conditions: ReplayConditions) -> None:
        self.job, self.load, self.conditions = job, load, conditions
        self.setting = setting_for(job.demand_ms.value, conditions)
        self.cluster = ReplayCluster(
            flavor=self.setting.flavor.name,
            btu_s=conditions.btu_s,
            takes_s=conditions.takes_s,
            max_hosts=self.setting.max_hosts,
            max_instances=conditions.max_instances,
        )
        self.noise = np.random.default_rng(conditions.seed).normal(0, job.cpu_noise, load.size)
        self.incidents = {round(one / job.step_s) for one in job.incidents_s}
        self.columns = np.zeros((4, load.size))
        self.waits = 0.0
        self.arrived = self.done = 0.0
        self.looked = (0, 0)
        self.restarted, self.weight = -(10**9), 1.0
        self.there_s = self.runs_s = self.started_s = 0.0

    def take_down(self, now_s: float) -> None:
        """Deploy the job again: when instances are there, and when it runs."""
        self.there_s = now_s + self.conditions.takes_s
        self.runs_s = max(self.there_s, now_s + self.conditions.redeploy_s)

    def runs(self, now_s: float) -> bool:
        """Whether the job is not about to be deployed."""
        return now_s >= self.runs_s

    def step(self, step: int) -> None:
        """Let the load of one step flow."""
        job, step_s = self.job, self.job.step_s
        now_s = step * step_s
        self.cluster.settle(now_s)
        instances = self.cluster.running(now_s)
        arrived = float(self.load[step]) * step_s
        self.arrived += arrived
        if not self.runs(now_s):
            self.waits += arrived
            self._record_down(step, instances if now_s >= self.there_s else 0)
            return
        was_scaled = step and instances != self.columns[0, step - 1]
        if was_scaled and not self.conditions.redeploy_s:
            self.restarted, self.weight = step, job.restart.planned_share
        if step in self.incidents:
            self.restarted, self.weight, self.started_s = step, 1.0, now_s
        can = max(1, instances) / self._most_to_mean(instances) * job.most_per_s * step_s
        offered = self.waits + arrived
        done = min(offered, can)
        self.waits = offered - done  # exactly 0 where all is done: by that a job is behind or not
        self.done += done
        self._record(step, instances, done / step_s)

    def _record_down(self, step: int, instances: int) -> None:
        """Nothing is processed; what comes waits for the job, and for what waits before it."""
        later = self.cluster.running(self.runs_s)
        can_per_s = max(1, later) / self._most_to_mean(later) * self.job.most_per_s
        late_s = self.runs_s - step * self.job.step_s + self.waits / can_per_s
        self.columns[:, step] = (instances, 0.0, self.waits, self.job.quiet_latency_s + late_s)

    def _record(self, step: int, instances: int, rate_per_s: float) -> None:
        job, load, since = self.job, float(self.load[step]), step - self.restarted
        restart, weight = job.restart, self.weight  # a longer one is busy for longer, not more
        excess = restart.cpu_excess[since] if since < len(restart.cpu_excess) else 0.0
        each = np.array([rate_per_s / max(1, instances)])
        cpu = float(job.cpu_share(each)[0]) + min(1.0, weight) * excess + float(self.noise[step])
        if self.waits:
            cpu = max(cpu, job.cpu_at_most)
        lag_s, late_s = job.quiet_lag_s, 0.0
        if since < len(restart.lag_s):
            lag_s = max(lag_s, weight * restart.lag_s[since])
            late_s = weight * restart.latency_excess_s[since]
        behind_s = self.waits / rate_per_s if self.waits else 0.0
        self.columns[:, step] = (
            instances,
            min(1.0, max(0.0, cpu)),
            load * (0.0 if math.isnan(lag_s) else lag_s) + self.waits,
            job.quiet_latency_s + late_s + behind_s,
        )

    def _most_to_mean(self, instances: int) -> float:
        """Parts of the instance that has the most, over those of an instance in the mean."""
        parts = self.conditions.parts
        return _fullest(parts, instances) if parts and instances else 1.0

    def observation(self, step: int, cpu_share: float | None, read_s: float) -> Observation:
        """What a controller sees at the end of a step."""
        now_s = (step + 1) * self.job.step_s
        before, self.looked = self.looked, (round(self.arrived), round(self.done))
        latency_ms = 1000 * float(self.columns[3, step])
        waiting = round(float(self.columns[2, step]))
        busiest = cpu_share
        if cpu_share is not None:
            busiest = min(1.0, cpu_share * self._most_to_mean(int(self.columns[0, step])))
        operator = OperatorSample(
            operator=OPERATOR,
            waiting_items=waiting,
            durations_ms=() if math.isnan(latency_ms) else (latency_ms,),
            arrived_items=self.looked[0] - before[0],
            completed_items=self.looked[1] - before[1],
            longest_queue_items=waiting,
            busy_share=cpu_share,
            busiest_share=busiest,
            arrived_in_all=self.looked[0],
            completed_in_all=self.looked[1],
        )
        return Observation(
            now_s=now_s,
            operators={OPERATOR: operator},
            hosts=self.cluster.host_samples(),
            instances=self.cluster.instance_samples(
                now_s, cpu_share, read_s - self.conditions.metrics_every_s
            ),
            job_started_s=max(self.runs_s, self.started_s),
        )


def replay(
    job: JobModel,
    load_per_s: FloatArray,
    conditions: ReplayConditions,
    build: Callable[[Setting], Controller],
) -> Replayed:
    """Run a controller over the load, a value per step of the job's model, on a model of it.

    The job begins with ``instances_at_start``, whatever the controller would have begun with.
    """
    state = _Replay(job, load_per_s, conditions)
    controller = build(state.setting)
    at_start = {OPERATOR: conditions.instances_at_start}
    state.cluster.apply(first_deployment(state.setting, at_start), -conditions.takes_s)
    for lease in state.cluster.leases:
        lease.ordered_s, lease.paid_until_s = 0.0, conditions.btu_s
    memory = controller.initial_memory()
    per_look = max(1, round(controller.interval_s / job.step_s))
    per_read = max(1, round(conditions.metrics_every_s / job.step_s))
    read, read_s = 0.0, 0.0
    for step in range(load_per_s.size):
        state.step(step)
        if step == 0 or step % per_read == 0:
            read = float(state.columns[1, max(0, step + 1 - per_read) : step + 1].mean())
            read_s = (step + 1) * job.step_s
        now_s = (step + 1) * job.step_s
        if (step + 1) % per_look == 0 and state.runs(now_s):
            observation = state.observation(step, read, read_s)
            try:
                with deadline():
                    memory, decision = controller.decide(memory, observation)
                state.cluster.apply(decision, now_s)
            except WHATEVER as error:
                raise decide_failed(controller, now_s, error) from error
            if conditions.redeploy_s and any(isinstance(a, SCALINGS) for a in decision.actions):
                state.take_down(now_s)
    end_s = load_per_s.size * job.step_s
    for lease in state.cluster.leases:
        lease.ends_s = min(lease.ends_s, end_s)
    instances, cpu, lag, latency = state.columns
    return Replayed(
        instances=instances,
        cpu_share=cpu,
        lag_items=lag,
        latency_s=latency,
        leases=tuple(state.cluster.leases),
    )
