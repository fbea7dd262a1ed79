"""The testbed protocol on real hosts, containers and queues, by the clock on the wall."""

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
"""Between the deployment and second 0: the data provider has to start and connect."""
ROUNDING_S = 1e-6
Watch = Mapping[str, Mapping[str, Any]]
NOTHING_SEEN: Watch = {"arrived": {}, "completed": {}}


class LiveTestbed:
    """A run on leased Docker hosts. Processes come and go; ``RunState`` is what they share."""

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
        """Bytes of the journal that windows before this one have."""
        self._observed: dict[str, Watch] = {}
        """What whoever observes has seen already, by name."""

    @property
    def now_s(self) -> float:
        """Seconds since the run began, as far as the loop has come; the wall may be ahead."""
        return self._now_s

    # ------------------------------------------------------------------ time

    def advance_to(self, t_s: float) -> None:
        """Return at second ``t_s``, with a reading at every monitoring time on the way.

        When that has passed already, readings that nobody took are missing.
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
        """Queues, hosts, instances, and last the data provider; everything is up when it returns.

        What an attempt before has left of this run is given back first. Raises TestbedNotReady
        when something does not come up in time, TestbedError when it never will, and what
        ``HostProvider.check`` raises before anything is done.
        """
        state = self._state
        leases = [step for step in decision.steps if isinstance(step.action, LeaseHost)]
        state.hosts.check(state.config.flavor, len(leases))
        give_back(state.run, state.hosts)
        state.touch()
        state.broker.declare(state.config.topology.operator_names)
        state.shared.grant()
        outcomes = self.apply(decision)
        self._wait_until_up([one for one in outcomes if not one.accepted])
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
                    told = f"not up within {limit_s:g} s: {', '.join(late)}"
                    raise TestbedNotReady(f"{told}; see {state.folder}")
            state.clock.rest(rest_s)

    def _booting(self) -> list[str]:
        return [host.name for host in self._state.fleet.leased() if not host.endpoint]

    def _not_up(self) -> list[str]:
        fleet = self._state.fleet
        hosts = [host.name for host in fleet.leased() if not host.up]
        return hosts + [one.name for one in fleet.instances.values() if one.ready_s is None]

    def apply(self, decision: Decision) -> tuple[Outcome, ...]:
        """Order each action; what takes its time goes on while the clock does."""
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
        """Operators that can be started."""
        return self._state.config.topology.operator_names

    def lease(self, action: LeaseHost) -> LiveHost:
        """Order a host. Raises TestbedError when there is none to have."""
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

    def stop(self, one: LiveInstance, serves_s: float) -> None:
        """Stop an instance gracefully, at once: nobody kills what can finish its item."""
        one.stopped_s = self._state.now_s()
        self._state.log("downscaling", one.operator, one.name, f"host-{one.host}")

    def migrate(self, one: LiveInstance, host: LiveHost, action: MigrateInstance) -> LiveInstance:
        """Order a copy on a host; the instance is told to stop once that is ready."""
        copy = self._start(one.operator, host, "migration")
        for before in self.fleet.replaced_by(one.number):
            before.successor = copy.number
        one.successor, one.stopped_s = copy.number, self._state.now_s()
        one.overlaps = action.overlaps
        return copy

    def _start(self, operator: str, host: LiveHost, activity: str) -> LiveInstance:
        state = self._state
        state.fleet.instances_started += 1
        one = LiveInstance(
            number=state.fleet.instances_started,
            operator=operator,
            host=host.number,
            started_s=state.now_s(),
        )
        state.fleet.instances[one.number] = one
        state.save()
        state.log(activity, operator, one.name, host.name)
        return one

    def prolong(self, host: LiveHost) -> None:
        """Pay for one more BTU."""
        host.paid_until_s += self._state.config.btu_s
        self._state.log("host_prolonged", host=host.name)

    def release(self, host: LiveHost) -> None:
        """Give a host back once it is empty."""
        host.releasing = True
        self._state.log("host_released", host=host.name)

    # --------------------------------------------------------------- reading

    def observe(self, by: str = ACTS) -> Observation:
        """A look from which on counts start anew, when there was a reading to count."""
        seen, self._observed[by] = self._look(by)
        return seen

    def look(self) -> Observation:
        """The reading of this time, and hosts and instances as they are now.

        A reading of another time tells nothing of this one, so operators are absent then.
        """
        return self._look(ACTS)[0]

    def _look(self, by: str) -> tuple[Observation, Watch]:
        """What is seen, and what the next look would take differences from."""
        state, before = self._state, self._observed.get(by, NOTHING_SEEN)
        now = before
        reading = state.reading
        of_now = abs(reading.time_s - self._now_s) < state.config.monitor_every_s + ROUNDING_S
        operators, published = {}, {}
        if of_now and not reading.missed and reading.waiting:
            now = observed_of(reading, before, state.fleet.instances.values())
            seen_before = {**before, "busy": now["busy"]}
            operators = operator_samples(state.config.topology, reading, seen_before)
            published = dict(reading.sent)
        seen = Observation(
            now_s=self._now_s,
            operators=operators,
            hosts={one.name: host_sample(state, one) for one in state.fleet.leased()},
            instances={
                one.name: instance_sample(state, one) for one in state.fleet.instances.values()
            },
            published_in_all=published,
        )
        return seen, now

    # ------------------------------------------------------------- recording

    def take_measurements(self) -> dict[str, dict[str, Any]]:
        """Rows measured since the last call, as columns."""
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
        """The lease log so far, as columns; hosts that are still leased end now."""
        leased = list(self._state.fleet.hosts.values())
        ended_s = [self._now_s if one.ended_s is None else one.ended_s for one in leased]
        return {
            "host": [one.name for one in leased],
            "flavor": [one.flavor for one in leased],
            # The wall may be ahead of the loop.
            "ordered_s": [min(one.ordered_s, self._now_s) for one in leased],
            "ended_s": [min(one, self._now_s) for one in ended_s],
            "paid_until_s": [one.paid_until_s for one in leased],
            "released": [one.ended_s is not None for one in leased],
        }

    def take_ended_leases(self) -> dict[str, list[Any]]:
        """None: the log of a live run stays whole, for whoever gives back what it holds."""
        return {name: [] for name in self.leases()}

    def snapshot(self) -> dict[str, np.ndarray]:
        """The whole state. Take measurements first: rows are not part of it."""
        plain = {
            "now_s": self._now_s,
            "handed_over": self._handed_over,
            "observed": self._observed.get(ACTS, NOTHING_SEEN),
            **({"watches": others} if (others := self._watches_of_others()) else {}),
            **self._state.to_plain(),
        }
        return {"plain": packed(plain, SNAPSHOT_VERSION)}

    def _watches_of_others(self) -> dict[str, Watch]:
        return {by: seen for by, seen in self._observed.items() if by != ACTS}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on looking after the run: time and rows from the snapshot, the world as it is now.

        Raises StoreError when another version wrote it, or the run has been given back meanwhile.
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
        """Let this process go; everything that is leased stays for the next one."""
        self._reconciler.close()
        self._state.hosts.close()

    def give_back(self) -> None:
        """Give back everything the run holds. Raises TestbedError with what cannot be.

        The folder goes last, so a run without one holds nothing, and nobody has to be asked.
        """
        state = self._state
        if state.folder.is_dir() or state.hosts.leased():
            give_back(state.run, state.hosts)
        self.close()  # last: what was under way on a host ends with it
