"""The testbed protocol on real hosts, containers and queues, in wall time."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from include.model.decision import Decision, LeaseHost, MigrateInstance, Outcome
from include.model.errors import StoreError, TestbedError, TestbedNotReady
from include.model.observation import Observation
from include.testbeds.actions import carry_out
from include.testbeds.base import ACTS, TestbedConfig
from include.testbeds.columns import Coded
from include.testbeds.live.calibration import LiveCalibration
from include.testbeds.live.fleet import LiveFleet, LiveHost, LiveInstance
from include.testbeds.live.give_back import give_back
from include.testbeds.live.hosts.local.hosts import LocalHosts
from include.testbeds.live.hosts.provider import HostProvider
from include.testbeds.live.monitor import LiveMonitor
from include.testbeds.live.reconciler import Reconciler
from include.testbeds.live.replay import ReplayProcess, plan_of
from include.testbeds.live.samples import (
    host_sample,
    instance_sample,
    observed_of,
    operator_samples,
)
from include.testbeds.live.state import RunState
from include.testbeds.snapshots import packed, unpacked

SNAPSHOT_VERSION = 2
DEPLOY_WITHIN_S = 300.0
LEAD_S = 2.0
"""Wall time from the deployment to second 0, for the data provider to start and connect."""
ROUNDING_S = 1e-6
Watch = Mapping[str, Mapping[str, Any]]
NO_COUNTS: Watch = {"arrived": {}, "completed": {}}


class LiveTestbed:
    """A run on leased Docker hosts. Its processes share a :class:`RunState`."""

    def __init__(
        self,
        config: TestbedConfig,
        hosts: HostProvider | None = None,
        calibration: LiveCalibration | None = None,
    ) -> None:
        if not config.run:
            raise TestbedError("a live testbed names everything after the run; give it one")
        calibration = calibration or LiveCalibration.model_validate(config.calibration)
        hosts = hosts or LocalHosts(config.run)
        self._state = RunState(config, calibration.complete(config.topology), hosts)
        self._monitor = LiveMonitor(self._state)
        self._reconciler = Reconciler(self._state)
        self._now_s = 0.0
        self._handed_over = 0
        """Bytes of the journal that earlier windows have stored."""
        self._observed: dict[str, Watch] = {}
        """Counters at the last observation, by observer."""

    @property
    def now_s(self) -> float:
        """Seconds of the run that the loop has reached; wall time may be ahead."""
        return self._now_s

    # ------------------------------------------------------------------ time

    def advance_to(self, t_s: float) -> None:
        """Wait until second ``t_s``, taking a reading at every monitoring time.

        If that time has passed already, readings are missing.
        """
        if t_s < self._now_s - ROUNDING_S:
            raise ValueError(f"time cannot go back from {self._now_s:g} s to {t_s:g} s")
        state, period_s = self._state, self._state.config.monitor_every_s
        skipped = 0
        first = round(state.reading.time_s / period_s) + 1
        for turn in range(first, math.floor(t_s / period_s + ROUNDING_S) + 1):
            state.clock.wait_until(turn * period_s, self._reconciler.reconcile)
            if state.now_s() > (turn + 1) * period_s:
                skipped += 1
                state.reading.time_s = turn * period_s
                continue
            if skipped:
                self._monitor.skip((turn - 1) * period_s, skipped)
                skipped = 0
            self._reconciler.reconcile()
            self._monitor.read(turn * period_s)
        if skipped:
            self._monitor.skip(state.reading.time_s, skipped)
        state.clock.wait_until(t_s, self._reconciler.reconcile)
        self._now_s = max(self._now_s, t_s)

    # --------------------------------------------------------------- control

    def deploy(self, decision: Decision) -> tuple[Outcome, ...]:
        """Create queues, hosts and instances, wait until all are up, start the data provider.

        Gives back resources of an earlier attempt first. Raises TestbedNotReady if something is
        not up in time, TestbedError if it will never be, and the errors of ``HostProvider.check``
        before anything is started.
        """
        state = self._state
        leases = [step for step in decision.steps if isinstance(step.action, LeaseHost)]
        state.hosts.check(state.config.flavor, len(leases))
        give_back(state.run, state.hosts)
        state.touch()
        state.broker.declare(state.config.topology.operator_names)
        state.shared.grant()
        outcomes = self.apply(decision)
        self._wait_until_up([outcome for outcome in outcomes if not outcome.accepted])
        state.begin(LEAD_S)
        state.save()
        plan = plan_of(state.run, state.config, state.clock.started_us, state.clock.scale)
        ReplayProcess(state.run).start(plan)
        return outcomes

    def _wait_until_up(self, refused: list[Outcome]) -> None:
        state = self._state
        if refused:
            raise TestbedError(f"the deployment cannot be carried out: {refused[0].detail}")
        wanted = len(state.fleet.instances), len(list(state.fleet.leased()))
        limits = state.calibration
        within_s = max(DEPLOY_WITHIN_S, limits.boot_within_s + limits.start_within_s)
        began_s = time.monotonic()
        while self._not_up():
            rest_s = self._reconciler.reconcile()
            now = len(state.fleet.instances), len(list(state.fleet.leased()))
            if now != wanted:
                events, _ = state.journal.read(0)
                raise TestbedError(f"the deployment failed: {events['event']['detail'][-1]}")
            waited_s = time.monotonic() - began_s
            for late, limit_s in (
                (self._booting(), limits.boot_within_s),
                (self._not_up(), within_s),
            ):
                if late and waited_s > limit_s:
                    problem = f"not up within {limit_s:g} s: {', '.join(late)}"
                    raise TestbedNotReady(f"{problem}; see {state.folder}")
            state.clock.rest(rest_s)

    def _booting(self) -> list[str]:
        return [host.name for host in self._state.fleet.leased() if not host.endpoint]

    def _not_up(self) -> list[str]:
        fleet = self._state.fleet
        hosts = [host.name for host in fleet.leased() if not host.up]
        return hosts + [
            instance.name for instance in fleet.instances.values() if instance.ready_s is None
        ]

    def apply(self, decision: Decision) -> tuple[Outcome, ...]:
        """Order each action; slow ones complete while time passes."""
        self._reconciler.reconcile()
        outcomes = carry_out(decision, self)
        self._state.save()
        self._reconciler.reconcile()
        return outcomes

    @property
    def fleet(self) -> LiveFleet:
        return self._state.fleet

    @property
    def operator_names(self) -> tuple[str, ...]:
        return self._state.config.topology.operator_names

    def lease(self, action: LeaseHost) -> LiveHost:
        state, now_s = self._state, self._state.now_s()
        leased = state.hosts.lease(state.config.flavor)
        state.fleet.hosts_leased += 1
        host = LiveHost(
            number=state.fleet.hosts_leased,
            id=leased,
            flavor=action.flavor,
            ordered_s=now_s,
            paid_until_s=now_s + state.config.btu_s,
        )
        state.fleet.hosts[host.number] = host
        state.save()
        state.log("host_leased", host=host.name)
        return host

    def start(self, operator: str, host: LiveHost) -> LiveInstance:
        return self._start(operator, host, "upscaling")

    def stop(self, instance: LiveInstance, serves_s: float) -> None:
        """Stop an instance gracefully and at once; ``serves_s`` is ignored."""
        instance.stopped_s = self._state.now_s()
        self._state.log("downscaling", instance.operator, instance.name, f"host-{instance.host}")

    def migrate(
        self, instance: LiveInstance, host: LiveHost, action: MigrateInstance
    ) -> LiveInstance:
        """Start a copy on ``host``; the instance stops when the copy is ready."""
        copy = self._start(instance.operator, host, "migration")
        for before in self.fleet.replaced_by(instance.number):
            before.successor = copy.number
        instance.successor, instance.stopped_s = copy.number, self._state.now_s()
        instance.overlaps = action.overlaps
        return copy

    def _start(self, operator: str, host: LiveHost, activity: str) -> LiveInstance:
        state = self._state
        state.fleet.instances_started += 1
        instance = LiveInstance(
            number=state.fleet.instances_started,
            operator=operator,
            host=host.number,
            started_s=state.now_s(),
        )
        state.fleet.instances[instance.number] = instance
        state.save()
        state.log(activity, operator, instance.name, host.name)
        return instance

    def prolong(self, host: LiveHost) -> None:
        host.paid_until_s += self._state.config.btu_s
        self._state.log("host_prolonged", host=host.name)

    def release(self, host: LiveHost) -> None:
        host.releasing = True
        self._state.log("host_released", host=host.name)

    # --------------------------------------------------------------- reading

    def observe(self, by: str = ACTS) -> Observation:
        """Return the current reading and reset the observer's counters, if it can be used."""
        observation, self._observed[by] = self._look(by)
        return observation

    def look(self) -> Observation:
        """Return the current reading, without operators if it is too old, hosts and instances."""
        return self._look(ACTS)[0]

    def _look(self, by: str) -> tuple[Observation, Watch]:
        """The observation, and the observer's counters after it."""
        state, before = self._state, self._observed.get(by, NO_COUNTS)
        now = before
        reading = state.reading
        of_now = abs(reading.time_s - self._now_s) < state.config.monitor_every_s + ROUNDING_S
        operators, published = {}, {}
        if of_now and not reading.missed and reading.waiting:
            now = observed_of(reading, before, state.fleet.instances.values())
            counters = {**before, "busy": now["busy"]}
            operators = operator_samples(state.config.topology, reading, counters)
            published = dict(reading.sent)
        observation = Observation(
            now_s=self._now_s,
            operators=operators,
            hosts={host.name: host_sample(state, host) for host in state.fleet.leased()},
            instances={
                instance.name: instance_sample(state, instance)
                for instance in state.fleet.instances.values()
            },
            published_in_all=published,
        )
        return observation, now

    # ------------------------------------------------------------- recording

    def take_measurements(self) -> dict[str, dict[str, Any]]:
        self._monitor.report_rate()
        tables, self._handed_over = self._state.journal.read(self._handed_over)
        if durations := tables.get("processing_duration"):
            names = self._state.config.topology.operator_names
            codes = np.array([names.index(name) for name in durations["operator"]])
            numbers = ("time_s", "duration_ms", "wait_ms", "age_ms")
            arrays = {name: np.array(durations[name], dtype=float) for name in numbers}
            coded = {**durations, **arrays, "operator": Coded(codes, names)}
            return {**tables, "processing_duration": coded}
        return {**tables}

    def leases(self) -> dict[str, list[Any]]:
        leased = list(self._state.fleet.hosts.values())
        ended_s = [self._now_s if host.ended_s is None else host.ended_s for host in leased]
        return {
            "host": [host.name for host in leased],
            "flavor": [host.flavor for host in leased],
            # Wall time may be ahead of the loop.
            "ordered_s": [min(host.ordered_s, self._now_s) for host in leased],
            "ended_s": [min(end_s, self._now_s) for end_s in ended_s],
            "paid_until_s": [host.paid_until_s for host in leased],
            "released": [host.ended_s is not None for host in leased],
        }

    def take_ended_leases(self) -> dict[str, list[Any]]:
        """None: a live run keeps all leases, so that its hosts can be given back."""
        return {name: [] for name in self.leases()}

    def snapshot(self) -> dict[str, np.ndarray]:
        """State for the next window; measured rows must be taken first."""
        plain = {
            "now_s": self._now_s,
            "handed_over": self._handed_over,
            "observed": self._observed.get(ACTS, NO_COUNTS),
            **({"watches": others} if (others := self._watches_of_others()) else {}),
            **self._state.to_plain(),
        }
        return {"plain": packed(plain, SNAPSHOT_VERSION)}

    def _watches_of_others(self) -> dict[str, Watch]:
        return {by: counts for by, counts in self._observed.items() if by != ACTS}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Continue the run: time and stored rows from the snapshot, hosts as they are now.

        Raises StoreError for another version's snapshot, or if the run was given back meanwhile.
        """
        plain = unpacked(arrays["plain"], SNAPSHOT_VERSION)
        state = self._state
        if not state.load() or state.clock.started_us != plain["started_us"]:
            raise StoreError(
                f"what run {state.run} had leased was given back, and what happened without it "
                "cannot be measured; remove the run's folder and run it again"
            )
        self._reconciler.give_back_strays()
        self._now_s = plain["now_s"]
        self._handed_over = plain["handed_over"]
        self._observed = {ACTS: plain["observed"], **plain.get("watches", {})}

    # ------------------------------------------------------------------- end

    def close(self) -> None:
        """Release this process's resources; hosts stay for the next one."""
        self._reconciler.close()
        self._state.hosts.close()

    def give_back(self) -> None:
        """Give back all resources of the run. Raises TestbedError naming what remains.

        The folder is deleted last, so a run without a folder holds nothing.
        """
        state = self._state
        if state.folder.is_dir() or state.hosts.leased():
            give_back(state.run, state.hosts)
        self.close()  # last, because calls under way end with their hosts
