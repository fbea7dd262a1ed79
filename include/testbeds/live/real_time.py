"""The testbed protocol in wall time, for all testbeds with real hosts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from include.model.decision import Decision, LeaseHost, MigrateInstance, Outcome
from include.model.errors import StoreError, TestbedError
from include.model.host import btus_to_pay
from include.model.observation import HostSample, InstanceSample, Observation, OperatorSample
from include.testbeds.actions import Actuator, carry_out
from include.testbeds.base import ACTS, Testbed
from include.testbeds.columns import Coded
from include.testbeds.fleet import Fleet
from include.testbeds.live.record import H, I, RunRecord
from include.testbeds.snapshots import packed, unpacked

SNAPSHOT_VERSION = 4
ROUNDING_S = 1e-6
DEPLOY_WITHIN_S = 300.0
LEAD_S = 2.0
"""Between the deployment and second 0: whatever sends items has to start and connect."""
Watch = Mapping[str, Mapping[str, Any]]
NO_COUNTS: Watch = {"arrived": {}, "completed": {}}


class Monitor(Protocol):
    """Takes one reading per monitoring period."""

    def read(self, time_s: float) -> None:
        """Take the reading of monitoring time ``time_s``, which is now or has just passed."""
        ...

    def finish(self) -> None:
        """Write the last rows before they are stored."""
        ...


class Reconciler(Protocol):
    """Brings the state of a run up to date with its hosts and instances."""

    def reconcile(self) -> float:
        """Reconcile, and return the wall seconds until the next time."""
        ...


class RealTimeTestbed(Testbed, Actuator[H, I]):
    """A run in wall time. Its processes share a record."""

    _host_type: type[H]
    _instance_type: type[I]

    def __init__(self, record: RunRecord[H, I], monitor: Monitor, reconciler: Reconciler) -> None:
        if not record.run:
            raise TestbedError("a run in real time names everything after the run; give it one")
        self._record, self._watcher, self._settler = record, monitor, reconciler
        self._now_s = 0.0
        self._handed_over = 0
        """Bytes of the journal that earlier windows have stored."""
        self._observed: dict[str, Watch] = {}
        """Counters at the last observation, by observer."""

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
        record, period_s = self._record, self._record.config.monitor_every_s
        skipped = 0
        first = round(record.reading.time_s / period_s) + 1
        for turn in range(first, math.floor(t_s / period_s + ROUNDING_S) + 1):
            record.clock.wait_until(turn * period_s, self._settler.reconcile)
            if record.now_s() > (turn + 1) * period_s:
                skipped += 1
                record.reading.time_s, record.reading.missed = turn * period_s, True
                continue
            if skipped:
                self._skip((turn - 1) * period_s, skipped)
                skipped = 0
            self._settler.reconcile()
            self._watcher.read(turn * period_s)
        if skipped:
            self._skip(record.reading.time_s, skipped)
        record.clock.wait_until(t_s, self._settler.reconcile)
        self._now_s = max(self._now_s, t_s)

    def _skip(self, time_s: float, times: int) -> None:
        """Record that ``times`` readings up to ``time_s`` are missing."""
        detail = f"{times} readings up to second {time_s:g}: nobody was there to take them"
        self._record.event("monitoring_gap", "monitor", detail)

    # --------------------------------------------------------------- control

    def apply(self, decision: Decision) -> tuple[Outcome, ...]:
        """Order each action; what takes its time goes on while the clock does."""
        self._settler.reconcile()
        outcomes = self._carry_out(decision)
        self._settler.reconcile()
        return outcomes

    def _carry_out(self, decision: Decision) -> tuple[Outcome, ...]:
        """Put every action down; the reconciler does the rest."""
        outcomes = carry_out(decision, self)
        self._record.save()
        return outcomes

    def _carry_out_first(self, decision: Decision) -> tuple[Outcome, ...]:
        """Raises TestbedError if an action is refused: a run begins with all that it asked for."""
        outcomes = self._carry_out(decision)
        if refused := [outcome for outcome in outcomes if not outcome.accepted]:
            raise TestbedError(f"the deployment cannot be carried out: {refused[0].detail}")
        return outcomes

    def _not_up(self) -> list[str]:
        hosts = [host.name for host in self.fleet.leased() if not host.up]
        instances = self.fleet.instances.values()
        return hosts + [instance.name for instance in instances if instance.ready_s is None]

    @property
    def fleet(self) -> Fleet[H, I]:
        return self._record.fleet

    @property
    def operator_names(self) -> tuple[str, ...]:
        return self._record.config.topology.operator_names

    def start(self, operator: str, host: H) -> I:
        return self._start(operator, host, "upscaling")

    def stop(self, instance: I, serves_s: float) -> None:
        """Stop an instance gracefully, at once: nobody kills what can finish its item."""
        instance.stopped_s = self._record.now_s()
        self._record.log("downscaling", instance.operator, instance.name, f"host-{instance.host}")

    def migrate(self, instance: I, host: H, action: MigrateInstance) -> I:
        """Order a copy on a host; the instance is told to stop once that is ready."""
        copy = self._start(instance.operator, host, "migration")
        for before in self.fleet.replaced_by(instance.number):
            before.successor = copy.number
        instance.successor, instance.stopped_s = copy.number, self._record.now_s()
        return copy

    def _start(self, operator: str, host: H, activity: str) -> I:
        record = self._record
        record.fleet.instances_started += 1
        number, now_s = record.fleet.instances_started, record.now_s()
        instance = self._instance_type(
            number=number, operator=operator, host=host.number, started_s=now_s
        )
        record.fleet.instances[number] = instance
        record.save()
        record.log(activity, operator, instance.name, host.name)
        return instance

    def _keep_lease(self, action: LeaseHost, ordered_s: float, **others: Any) -> H:
        """A host was ordered; its number is the next one."""
        record = self._record
        host = self._host_type(
            number=record.fleet.hosts_leased + 1,
            flavor=action.flavor,
            ordered_s=ordered_s,
            paid_until_s=ordered_s + record.config.btu_s,
            **others,
        )
        record.fleet.hosts_leased = host.number
        record.fleet.hosts[host.number] = host
        record.save()
        record.log("host_leased", host=host.name)
        return host

    def prolong(self, host: H) -> None:
        btu_s = self._record.config.btu_s
        host.paid_until_s += btu_s * btus_to_pay(host.paid_until_s, self._now_s, btu_s)
        self._record.log("host_prolonged", host=host.name)

    def release(self, host: H) -> None:
        host.releasing = True
        self._record.log("host_released", host=host.name)

    # --------------------------------------------------------------- reading

    def observe(self, by: str = ACTS) -> Observation:
        observation, self._observed[by] = self._look(by)
        return observation

    def look(self) -> Observation:
        return self._look(ACTS)[0]

    def _look(self, by: str) -> tuple[Observation, Watch]:
        """What is seen, and what the next look would take differences from.

        A reading of another time tells nothing of this one, so operators are absent then.
        """
        record, now = self._record, self._observed.get(by, NO_COUNTS)
        reading = record.reading
        of_now = abs(reading.time_s - self._now_s) < record.config.monitor_every_s + ROUNDING_S
        operators: Mapping[str, OperatorSample] = {}
        published: Mapping[str, int] = {}
        if of_now and not reading.missed and reading.waiting:
            operators, now = self._operators(now)
            published = dict(reading.sent)
        observation = Observation(
            now_s=self._now_s,
            operators=operators,
            hosts={host.name: self._host(host) for host in record.fleet.leased()},
            instances={
                instance.name: self._instance(instance)
                for instance in record.fleet.instances.values()
            },
            published_in_all=published,
        )
        return observation, now

    def _operators(self, before: Watch) -> tuple[Mapping[str, OperatorSample], Watch]:
        """Operators since a look, as of the last reading, and what the next look starts from."""
        raise NotImplementedError

    def _host(self, host: H) -> HostSample:
        """A leased host as it is now; shares are None until read."""
        reading = self._record.reading
        return HostSample(
            host=host.name,
            flavor=host.flavor,
            ordered_s=host.ordered_s,
            paid_until_s=host.paid_until_s,
            up=host.up,
            releasing=host.releasing,
            images=self._images(host),
            cpu_share=reading.cpu_share.get(host.name),
            memory_share=reading.memory_share.get(host.name),
        )

    def _images(self, host: H) -> frozenset[str]:
        """Operators that need no download to start on the host."""
        return frozenset(host.images)

    def _instance(self, instance: I) -> InstanceSample:
        """An instance as it is now; shares are None until read."""
        reading = self._record.reading
        return InstanceSample(
            instance=instance.name,
            operator=instance.operator,
            host=f"host-{instance.host}",
            started_s=instance.started_s,
            ready=instance.ready_s is not None,
            stopping=instance.stopping,
            cpu_share=reading.cpu_share.get(instance.name),
            memory_share=reading.memory_share.get(instance.name),
        )

    # ------------------------------------------------------------- recording

    def take_measurements(self) -> dict[str, dict[str, Any]]:
        self._watcher.finish()
        tables, self._handed_over = self._record.journal.read(self._handed_over)
        if durations := tables.get("processing_duration"):
            names = self._record.config.topology.operator_names
            codes = np.array([names.index(name) for name in durations["operator"]])
            numbers = ("time_s", "duration_ms", "wait_ms", "age_ms")
            arrays = {name: np.array(durations[name], dtype=float) for name in numbers}
            coded = {**durations, **arrays, "operator": Coded(codes, names)}
            return {**tables, "processing_duration": coded}
        return {**tables}

    def leases(self) -> dict[str, list[Any]]:
        leased = list(self._record.fleet.hosts.values())
        ended_s = [self._now_s if host.ended_s is None else host.ended_s for host in leased]
        return {
            "host": [host.name for host in leased],
            "flavor": [host.flavor for host in leased],
            # The wall may be ahead of the loop.
            "ordered_s": [min(host.ordered_s, self._now_s) for host in leased],
            "ended_s": [min(end_s, self._now_s) for end_s in ended_s],
            "paid_until_s": [host.paid_until_s for host in leased],
            "released": [host.ended_s is not None for host in leased],
        }

    def take_ended_leases(self) -> dict[str, list[Any]]:
        """None: the log of a live run stays whole, for whoever gives back what it holds."""
        return {name: [] for name in self.leases()}

    def snapshot(self) -> dict[str, np.ndarray]:
        others = {by: watch for by, watch in self._observed.items() if by != ACTS}
        plain = {
            "now_s": self._now_s,
            "handed_over": self._handed_over,
            "observed": self._observed.get(ACTS, NO_COUNTS),
            **({"watches": others} if others else {}),
            **self._record.to_plain(),
        }
        return {"plain": packed(plain, SNAPSHOT_VERSION)}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on looking after the run: time and rows from the snapshot, the world as it is now.

        Raises StoreError when another version wrote it, or the run has been given back meanwhile.
        """
        plain = unpacked(arrays["plain"], SNAPSHOT_VERSION)
        record = self._record
        if not record.load() or record.clock.started_us != plain["started_us"]:
            raise StoreError(
                f"what run {record.run} had leased was given back, and what happened without it "
                "cannot be measured; remove the run's folder and run it again"
            )
        self._now_s = plain["now_s"]
        self._handed_over = plain["handed_over"]
        self._observed = {ACTS: plain["observed"], **plain.get("watches", {})}
