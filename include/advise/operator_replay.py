"""A recorded load on a model of every operator, under any controller: the fluid testbed.

Where operators were recorded, a controller that decides on each of them sees each of them. A
scaling takes the whole job down, as in the experiment of `export.write_experiment`, and its
operators work off what waited. Latency is that of the job at rest and what records of a step take
longer to the end where they take longest than the work on their way there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import yaml

from include.advise.cluster import ReplayLease, leases_of
from include.advise.export import RATES, restart_down_s
from include.advise.job import JobModel
from include.advise.operators import JobGraph, graph_calibration, graph_topology
from include.advise.readings import dip_steps, lasting_counts
from include.advise.replay import ReplayConditions, Replayed, setting_for, setting_on
from include.controllers.base import Controller, Setting
from include.controllers.deployment import first_deployment
from include.experiment.controller_setting import delays_of
from include.model.errors import TestbedError
from include.model.topology import Topology, slowest_paths
from include.runs.loop import Loop
from include.testbeds.base import ACTS, TestbedConfig
from include.testbeds.columns import as_text
from include.testbeds.flow.calibration import FlowCalibration
from include.testbeds.flow.testbed import FlowTestbed
from include.testbeds.virtual.fleet import VirtualHost, VirtualInstance
from include.workloads.pattern import Levels
from include.workloads.recordings.recording import FloatArray
from include.workloads.topologies import parse_topology

SAMPLES_PER_STEP, MOST_SAMPLES = 8, 256
"""Of records: at the end of the job that gets the fewest, and at most of any operator."""
SAME_LOAD = 1.02
"""Readings of the job and of its operators are means over different times."""

Tables = Mapping[str, Mapping[str, Any]]
_NO_ITEMS: Mapping[str, Any] = {"operator": (), "time_s": (), "age_ms": ()}


def setting_under(
    job: JobModel, load_per_s: FloatArray, conditions: ReplayConditions, controller: str
) -> Setting:
    """What a controller is told in a replay: of every operator, or of the job as a whole."""
    graph = job.operators_under(controller)
    if graph is None:
        return setting_for(job.demand_ms.value, conditions)
    return _World(job, graph, load_per_s, conditions).setting


def replay_operators(
    job: JobModel,
    graph: JobGraph,
    load_per_s: FloatArray,
    conditions: ReplayConditions,
    build: Callable[[Setting], Controller],
) -> Replayed:
    """Run a controller over the load, a value per step of the job's model.

    Operators begin with instances in proportion to those that they were recorded with most of the
    time. Hosts are those of the controller, and those that other slots take which find no free
    place there; or where operators share slots those that the slots take.
    """
    world = _World(job, graph, load_per_s, conditions)
    testbed = _SlotTestbed(world.config)
    testbed.most, testbed.of_each = world.most_instances, graph.shares_slots
    controller = build(world.setting)
    loop = Loop(testbed, controller, world.setting)
    testbed.deploy(first_deployment(world.setting, world.at_start))
    testbed.take_measurements()
    for _ in loop.turns({ACTS: controller.initial_memory()}, 0.0, world.config.duration_s):
        pass
    tables, leases = testbed.take_measurements(), testbed.leases()
    testbed.close()
    return world.replayed(tables, leases)


@dataclass(slots=True)
class _SlotTestbed(FlowTestbed):
    """Starts ``most`` instances in all, or ``of_each`` operator; more are refused."""

    most: int = field(init=False, default=0)
    of_each: bool = field(init=False, default=False)

    def start(self, operator: str, host: VirtualHost) -> VirtualInstance:
        if len(self.fleet.serving(operator if self.of_each else "")) >= self.most:
            raise TestbedError(f"all {self.most} slots are taken")
        return FlowTestbed.start(self, operator, host)

    def stop(self, one: VirtualInstance, serves_s: float) -> None:
        """An engine keeps the last instance of an operator, where another one was refused."""
        if all(each is one for each in self.fleet.serving(one.operator)):
            raise TestbedError(f"{one.operator} keeps its last instance")
        FlowTestbed.stop(self, one, serves_s)


@dataclass(frozen=True)
class _World:
    """The job as a run of the fluid testbed has it, and what comes of the run."""

    job: JobModel
    graph: JobGraph
    load_per_s: FloatArray
    conditions: ReplayConditions

    @cached_property
    def topology(self) -> Topology:
        """Operators of the longest path share the time that a record may take."""
        graph = self.graph
        text = yaml.safe_dump({"name": "recorded", **RATES, **graph_topology(graph)})
        topology = parse_topology(text, source=graph.name)
        edges = ((origin, target) for origin, target, _ in graph.edges)
        longest = max(slowest_paths(dict.fromkeys(topology.operator, 1.0), edges).values())
        slo_ms = 1000 * self.conditions.latency_limit_s / longest
        return replace(
            topology,
            operators=tuple(
                replace(one, slo_ms=max(slo_ms, one.service_ms or 0.0))
                for one in topology.operators
            ),
        )

    @cached_property
    def setting(self) -> Setting:
        most = self.most_instances
        most *= len(self.topology.operators) if self.graph.shares_slots else 1
        setting = setting_on(self.topology, self.conditions, most)
        return replace(setting, delays=delays_of(self._calibration()))

    @property
    def most_instances(self) -> int:
        """In all, or where operators share slots of each."""
        return self.conditions.max_instances - self.graph.others

    @property
    def at_start(self) -> dict[str, int]:
        """Instances of each operator when the replay begins."""
        recorded, others = self.graph.recorded, self.graph.others
        taken = (max if self.graph.shares_slots else sum)(recorded.values())
        factor = max(1, self.conditions.instances_at_start - others) / taken
        return {name: max(1, round(factor * count)) for name, count in recorded.items()}

    @property
    def config(self) -> TestbedConfig:
        steps, step_s, setting = self.load_per_s.size, self.job.step_s, self.setting
        levels = Levels(
            tuple((np.arange(steps) * step_s).tolist()),
            tuple((self.load_per_s * self.graph.per_record).tolist()),
        )
        end_s, down_s = steps * step_s, self._down_s(1.0)
        incidents = [(at_s, down_s) for at_s in self.job.incidents_s if at_s < end_s]
        return TestbedConfig(
            topology=self.topology,
            levels_of=dict.fromkeys(self.topology.source, levels),
            flavor=setting.flavor,
            max_hosts=setting.max_hosts,
            btu_s=setting.btu_s,
            duration_s=end_s,
            seed=setting.seed,
            monitor_every_s=step_s,
            calibration=self._calibration(),
            faults={"restarts": incidents},
        )

    def _down_s(self, share: float) -> float:
        each_per_s = float(self.load_per_s.mean()) / self.conditions.instances_at_start
        return restart_down_s(self.job, each_per_s, share)

    def _calibration(self) -> dict[str, Any]:
        """Instances start first, and then the job does again what it does in a restart; a
        deployment that is asked for takes its time at once."""
        conditions, graph = self.conditions, self.graph
        takes_s, down_s = conditions.takes_s, self._down_s(self.job.restart.planned_share)
        if conditions.redeploy_s:
            takes_s, down_s = 0.0, max(takes_s, conditions.redeploy_s)
        items = {one: float(of.mean()) * self.job.step_s for one, of in self._reach.items()}
        every = min(items[one] for one in graph.ends) / SAMPLES_PER_STEP
        every = max(every, *(one / MOST_SAMPLES for one in items.values()))
        settings = {
            **graph_calibration(graph),
            "service_cv": 0,
            "latency_ms": 0,
            "cpu_noise": self.job.cpu_noise,
            "cpu_window_s": conditions.metrics_every_s,
            "restart": {"down_s": (down_s, down_s)},
            "drain_s": 0,
            "host_boot_s": (0, 0),
            "image_pull_s": (0, 0),
            "instance_start_s": (takes_s, takes_s),
            "sample_every_items": max(1, round(every)),
        }
        if conditions.parts:
            settings["key_groups"] = {one.name: conditions.parts for one in graph.operators}
        return FlowCalibration.model_validate(settings).model_dump(mode="json")

    @cached_property
    def _reach(self) -> dict[str, FloatArray]:
        """Records per second that reach each operator, by step."""
        graph_per_s = self.load_per_s * self.graph.per_record
        return {
            name: graph_per_s * factor for name, factor in self.topology.items_per_level().items()
        }

    def replayed(self, tables: Tables, leases: Mapping[str, list[Any]]) -> Replayed:
        """The run, as it would have been recorded."""
        steps, queue = self.load_per_s.size, as_text(tables["queue"])
        instances, waiting = dict[str, FloatArray](), np.zeros(steps)
        busy, beyond = np.zeros(steps), np.zeros(steps, dtype=np.bool_)
        for one in self.graph.operators:
            of = queue["operator"] == one.name
            count = instances[one.name] = np.asarray(queue["instances"][of], dtype=np.float64)
            waiting += queue["waiting_items"][of]
            each = self._reach[one.name] / np.maximum(1.0, count)
            busy = np.maximum(busy, one.overhead.value + each * one.demand_ms.value / 1000)
            beyond |= (each > SAME_LOAD * one.known_to_per_s) | (count < 1)
        slots = self.graph.slots(instances)
        return Replayed(
            instances=slots,
            cpu_share=np.clip(busy, 0.0, 1.0),
            lag_items=waiting,
            latency_s=self.job.quiet_latency_s + self._late_s(tables),
            leases=tuple(self._leases(slots, leases)),
            by_operator=np.array([*instances.values()]),
            beyond=beyond,
        )

    def _leases(self, slots: FloatArray, leases: Mapping[str, list[Any]]) -> list[ReplayLease]:
        per_host, step_s = self.conditions.instances_per_host, self.job.step_s
        if self.graph.shares_slots:
            return leases_of(np.ceil(slots / per_host), step_s)
        times = zip(leases["ordered_s"], leases["paid_until_s"], leases["ended_s"], strict=True)
        own = [ReplayLease(max(0.0, at_s), paid_s, end_s) for at_s, paid_s, end_s in times]
        if not self.graph.others:
            return own
        begin_s, held = np.arange(slots.size) * step_s, np.zeros(slots.size)
        for lease in own:
            held += (lease.ordered_s < begin_s + step_s) & (begin_s < lease.ends_s)
        more = np.maximum(0.0, np.ceil(slots / per_host) - held)  # for slots of no free place
        lasting = np.fmax(more, lasting_counts(more, dip_steps(step_s, step_s)))
        return [*own, *leases_of(lasting, step_s)]

    def _late_s(self, tables: Tables) -> FloatArray:
        """By step how much longer its records take than the work on their way, to the end of the
        job that is latest. Those that have not come out when the replay ends are late by the time
        until then.
        """
        steps, step_s = self.load_per_s.size, self.job.step_s
        left_s = np.linspace(steps, 1, steps) * step_s
        items = as_text(tables.get("processing_duration", _NO_ITEMS))
        age_s = np.asarray(items["age_ms"]) / 1000
        step = np.floor((np.asarray(items["time_s"]) - age_s) / step_s).astype(np.int64)
        graph = self.graph
        work_s = {one.name: one.demand_ms.value / 1000 for one in graph.operators}
        work_s = slowest_paths(work_s, [(origin, target) for origin, target, _ in graph.edges])
        latest: FloatArray = np.zeros(steps)
        for end in sorted(graph.ends):
            out = (np.asarray(items["operator"]) == end) & (step >= 0) & (step < steps)
            count = np.bincount(step[out], minlength=steps)
            known = np.flatnonzero(count)
            if not known.size:
                return left_s
            means = np.bincount(step[out], age_s[out], steps)[known] / count[known]
            late_s = np.interp(np.arange(steps), known, means - work_s[end])
            late_s[known[-1] + 1 :] = left_s[known[-1] + 1 :]
            latest = np.maximum(latest, late_s)
        return latest
