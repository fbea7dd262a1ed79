"""The testbed protocol on a real Flink, by the clock on the wall."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from msgspec import structs

from include.files.whole import write_bytes
from include.model.decision import Decision, LeaseHost, Outcome
from include.model.errors import TestbedError, TestbedNotReady
from include.model.observation import Observation, OperatorSample
from include.testbeds.base import TestbedConfig
from include.testbeds.flink.calibration import FlinkCalibration
from include.testbeds.flink.cluster import Ports
from include.testbeds.flink.fleet import FlinkHost, FlinkInstance, by_operator
from include.testbeds.flink.job import write_job, write_schedules
from include.testbeds.flink.monitor import FlinkMonitor
from include.testbeds.flink.placement import heap_mb
from include.testbeds.flink.reap import give_back_run
from include.testbeds.flink.reconciler import FlinkReconciler
from include.testbeds.flink.state import PROVIDER, FlinkState, kept_logs
from include.testbeds.live.reading import operator_samples
from include.testbeds.live.real_time import DEPLOY_WITHIN_S, LEAD_S, RealTimeTestbed, Watch
from include.testbeds.virtual.key_groups import KEY_GROUPS

LOST = ("host_lost", "host_boot_failure")


class FlinkTestbed(RealTimeTestbed[FlinkHost, FlinkInstance]):
    """A run on TaskManagers of this machine."""

    _host_type = FlinkHost
    _instance_type = FlinkInstance

    def __init__(self, config: TestbedConfig) -> None:
        calibration = FlinkCalibration.model_validate(config.calibration)
        self._state = FlinkState(config, calibration.complete(config.topology))
        self._reconciler = FlinkReconciler(self._state)
        super().__init__(self._state, FlinkMonitor(self._state), self._reconciler)

    # --------------------------------------------------------------- control

    def deploy(self, decision: Decision) -> tuple[Outcome, ...]:
        """JobManager, TaskManagers and the job; all of it runs when this returns.

        What an attempt before has left of this run is given back first. Raises SetupError where
        Flink is not installed, TestbedNotReady when something does not come up in time, and
        TestbedError when it never will.
        """
        state = self._state
        cluster = state.cluster  # raises before anything is done
        give_back_run(state.run)
        state.touch()
        state.ports = Ports.free()
        cluster = state.cluster
        cluster.write_configuration()
        scale = state.calibration.time_scale
        write_schedules(state.folder, state.config, scale)
        outcomes = self._carry_out_first(decision)
        instances = list(state.fleet.instances.values())
        for one in instances:
            one.runs = True
        state.asked = by_operator(instances, state.operators)
        write_job(state.folder, state.config, state.calibration, state.asked)
        state.job_manager = cluster.start_job_manager(None)
        state.save()
        state.provider = cluster.start_task_manager(
            PROVIDER, 1, heap_mb(state.config, state.calibration)
        )
        state.save()
        self._wait_until_up()
        state.begin(LEAD_S)
        state.job_started_s = 0.0
        state.save()
        write_bytes(state.folder / "start", str(state.clock.started_us).encode())
        return outcomes

    def _wait_until_up(self) -> None:
        state, end_s = self._state, time.monotonic() + DEPLOY_WITHIN_S
        hosts = len(state.fleet.leased())
        while True:
            rest_s = self._reconciler.reconcile()
            if self._reconciler.settled and state.graph:
                return
            if len(state.fleet.leased()) != hosts or not state.provider.alive:
                raise TestbedError(f"the deployment failed: {self._why_failed()}")
            if time.monotonic() > end_s:
                problem = f"not up within {DEPLOY_WITHIN_S:g} s: {', '.join(self._not_up())}"
                raise TestbedNotReady(f"{problem}; see {kept_logs(state.run)}")
            time.sleep(rest_s)

    def _why_failed(self) -> str:
        """Events go with the folder of the run; its logs stay."""
        rows = self._state.journal.read(0)[0].get("event", {})
        events = zip(*(rows.get(name, ()) for name in ("event", "subject", "detail")), strict=True)
        lost = [f"{host}: {why}" for event, host, why in events if event in LOST]
        why = lost[-1] if lost else f"{PROVIDER}: its process ended"
        return f"{why}; see {kept_logs(self._state.run)}"

    def lease(self, action: LeaseHost) -> FlinkHost:
        state = self._state
        if len(state.fleet.leased()) >= state.config.max_hosts:
            raise TestbedError(f"all {state.config.max_hosts} hosts are leased")
        return self._keep_lease(action, state.now_s(), images=list(state.operators))

    def start(self, operator: str, host: FlinkHost) -> FlinkInstance:
        """Raises TestbedError where Flink would refuse the request for it, and all others in it."""
        fleet = self._state.fleet.instances.values()
        there = sum(one.operator == operator and not one.stopping for one in fleet)
        if there >= KEY_GROUPS:
            raise TestbedError(f"{operator} has {there} instances, one for each key group of Flink")
        return super().start(operator, host)

    # --------------------------------------------------------------- reading

    def _operators(self, before: Watch) -> tuple[Mapping[str, OperatorSample], Watch]:
        reading = self._state.reading
        samples = operator_samples(self._state.config.topology, reading, before)
        seen = {name: self._of_engine(one, before) for name, one in samples.items()}
        return seen, reading.counted("busy_s")

    def _of_engine(self, sample: OperatorSample, before: Watch) -> OperatorSample:
        """With what an engine says beside what a broker does."""
        name, reading = sample.operator, self._state.reading
        waits_known = self._state.calibration.queue == "heap"
        return structs.replace(
            sample,
            longest_queue_items=reading.longest[name] if waits_known else None,
            capacity=reading.busiest.get(name),
            busy_share=self._busy_share(name, before),
            busiest_share=reading.busiest.get(name),
            oldest_waits_s=reading.oldest_s[name] if waits_known else None,
        )

    def _busy_share(self, name: str, before: Watch) -> float | None:
        """Of all instances that serve; absent where nobody looked before."""
        state, reading = self._state, self._state.reading
        since_us = before.get("wall", {}).get("us", state.clock.started_us)
        passed_s = (reading.wall_us - since_us) / 1e6 * state.clock.scale
        ready = [one for one in state.fleet.serving(name) if one.ready_s is not None]
        if passed_s <= 0 or not ready:
            return None
        busy_s: float = reading.busy_s[name] - before.get("busy_s", {}).get(name, 0.0)
        share: float = busy_s / passed_s / len(ready)
        return round(min(1.0, max(0.0, share)), 4)

    def _look(self, by: str) -> tuple[Observation, Watch]:
        observation, watch = super()._look(by)
        state = self._state
        observation = replace(
            observation,
            job_started_s=state.job_started_s,
            job_starts=state.job_starts,
            job_changes=state.job_changes,
            job_paused_in_all_s=state.job_paused_in_all_s,
        )
        return observation, watch

    # ------------------------------------------------------------------- end

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        super().restore(arrays)
        self._reconciler.end_strays()

    def close(self) -> None:
        self._reconciler.close()

    def give_back(self) -> None:
        self.close()
        give_back_run(self._state.run)
