"""Reads queues, ledger, samples, CPU and memory, and keeps the readings as rows."""

from __future__ import annotations

import math
from collections import Counter
from contextlib import suppress

import redis

from include.model.errors import TestbedError
from include.testbeds.live.broker import TROUBLE, why_blocked
from include.testbeds.live.hosts.provider import Usage
from include.testbeds.live.operators.wire import Sample
from include.testbeds.live.reading import LiveReading, busy_share, not_before
from include.testbeds.live.replay import ReplayProcess, plan_of, targets_of
from include.testbeds.live.shared_state import ItemCounts
from include.testbeds.live.state import RunState

BLOCKED_FOR_S = 60.0
"""Wall time after which blocked publishers end the run; while it writes a backlog to disk, a broker
blocks them for some seconds."""


class LiveMonitor:
    """Takes a reading per monitoring period, in the process that runs the current window."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._targets = targets_of(state.config.topology)

    def read(self, time_s: float) -> None:
        """Raises TestbedError if the broker blocks publishers for longer than BLOCKED_FOR_S."""
        state, before = self._state, self._state.reading
        state.reading = reading = before.next(time_s)
        try:
            self._read_items(reading, before)
        except (*TROUBLE, redis.RedisError) as error:
            reading.missed, reading.busy_of = True, {}
            if not before.missed:
                state.event("monitoring_gap", "monitor", f"{type(error).__name__}: {error}"[:200])
        self._read_utilisation(reading, before)
        self._look_after_provider(time_s)
        state.save()

    # ------------------------------------------------------------------ items

    def _read_items(self, reading: LiveReading, before: LiveReading) -> None:
        state = self._state
        names = state.config.topology.operator_names
        with state.broker.channel() as channel:
            self._look_after_publishers(reading)  # before anything is taken, as it may end the run
            state.broker.take_samples(channel, lambda samples: self._keep(samples, reading))
            reading.waiting = state.broker.depths(channel, names)
        counts = state.shared.counts(self._targets, names)
        self._keep_queues(counts, reading, before)
        self._keep_busy(counts, reading)
        new = {
            name: max(0, counts.sent[name] - before.sent.get(name, 0))
            for name in state.config.levels_of
        }
        reading.sent = {name: max(n, before.sent.get(name, 0)) for name, n in counts.sent.items()}
        state.arrivals(reading.time_s, new)

    def _keep(self, samples: list[Sample], reading: LiveReading) -> None:
        state, operators = self._state, self._state.config.topology.operator
        rows = []
        for sample in samples:
            done_s = round(state.clock.at(sample.done_us), 6)
            if 0 <= done_s <= state.config.duration_s:
                wait_ms = not_before((sample.started_us - sample.published_us) / 1000)
                age_ms = not_before((sample.done_us - sample.emitted_us) / 1000)
                duration_ms = not_before(sample.duration_ms)
                about = (done_s, sample.operator, sample.instance)
                rows.append((*about, duration_ms, wait_ms, age_ms, sample.number))
        state.journal.append("processing_duration", rows)
        for sample in sorted(samples, key=lambda sample: sample.done_us):
            reading.record(operators[sample.operator], [sample.duration_ms])

    def _keep_queues(self, counts: ItemCounts, reading: LiveReading, before: LiveReading) -> None:
        serving = self._state.fleet.serving()
        running = Counter(one.operator for one in serving)
        ready = Counter(one.operator for one in serving if one.ready_s is not None)
        rows = []
        for name in self._state.config.topology.operator_names:
            was = (before.arrived.get(name, 0), before.completed.get(name, 0))
            arrived = max(was[0], counts.received.get(name, 0))
            completed = max(was[1], counts.done.get(name, 0))
            reading.arrived[name], reading.completed[name] = arrived, completed
            changes = (arrived - was[0], completed - was[1], running[name], ready[name])
            rows.append((reading.time_s, name, reading.waiting[name], *changes))
        self._state.journal.append("queue", rows)

    def _keep_busy(self, counts: ItemCounts, reading: LiveReading) -> None:
        """Of operators; and of instances that are ready, which may have had nothing to do yet."""
        scale_s = self._state.clock.scale / 1e6
        for name, of in counts.busy_us.items():
            reading.busy_s[name] = sum(of.values()) * scale_s
        reading.busy_of = {
            instance.name: counts.busy_us[instance.operator].get(instance.name, 0) * scale_s
            for instance in self._state.fleet.instances.values()
            if instance.ready_s is not None
        }

    def _look_after_publishers(self, reading: LiveReading) -> None:
        try:
            why = why_blocked(self._state.services)
        except TestbedError:
            return  # the next reading finds out
        blocked_s = (reading.wall_us - reading.blocked_since_us) / 1e6
        if why and not reading.blocked_since_us:
            reading.blocked_since_us = reading.wall_us
            self._state.event("publishers_blocked", "broker", why)
        elif why and blocked_s >= BLOCKED_FOR_S:
            raise TestbedError(f"the run has waited for {blocked_s:.0f} s: {why}")
        elif not why and reading.blocked_since_us:
            reading.blocked_since_us = 0
            self._state.event("publishers_back", "broker", f"they waited for {blocked_s:.0f} s")

    # ------------------------------------------------------------ utilisation

    def _read_utilisation(self, reading: LiveReading, before: LiveReading) -> None:
        fleet, flavor = self._state.fleet, self._state.config.flavor
        operators = self._state.config.topology.operator
        reading.cpu_s, reading.cpu_share, reading.memory_share = {}, {}, {}
        host_rows, instance_rows = [], []
        passed_s = (reading.wall_us - before.wall_us) / 1e6
        for host in fleet.leased():
            here = fleet.on_host(host.number)
            reserved_mb = sum(operators[instance.operator].memory_mb for instance in here)
            memory_share = round(reserved_mb / flavor.capacity.memory_mb, 4)
            used = self._state.hosts.usage(host.id) if host.up else None
            cpu = self._cpu(host.name, used, passed_s * flavor.vcpus, reading, before)
            if cpu is not None:
                reading.memory_share[host.name] = memory_share
                host_rows.append((reading.time_s, host.name, cpu, memory_share, len(here)))
            for instance in here if host.up else ():
                if not instance.container:
                    continue
                used = self._state.hosts.usage(host.id, instance.container)
                run_s = passed_s * self._state.clock.scale
                cpu = busy_share(instance.name, reading.busy_of, before.busy_of, run_s)
                if used is not None:
                    share = used.memory_mb / operators[instance.operator].memory_mb
                    reading.memory_share[instance.name] = round(min(1.0, share), 4)
                if cpu is not None:
                    reading.cpu_share[instance.name] = cpu
                    row = (reading.time_s, instance.name, instance.operator, host.name, cpu)
                    instance_rows.append(row)
        self._state.journal.append("host_utilisation", host_rows)
        self._state.journal.append("instance_utilisation", instance_rows)

    @staticmethod
    def _cpu(
        name: str, used: Usage | None, most_s: float, reading: LiveReading, before: LiveReading
    ) -> float | None:
        """Share of the ``most_s`` that a host could use since the previous reading.

        None for the first reading, and if usage has fallen, as ended containers may not count.
        """
        if used is None:
            return None
        reading.cpu_s[name] = used.cpu_s
        if used.cpu_s < before.cpu_s.get(name, math.inf) or most_s <= 0:
            return None
        share = (used.cpu_s - before.cpu_s[name]) / most_s
        reading.cpu_share[name] = round(min(1.0, share), 4)
        return reading.cpu_share[name]

    # --------------------------------------------------------------- provider

    def _look_after_provider(self, time_s: float) -> None:
        """Restart the data provider if it died before its work was done."""
        state = self._state
        replay = ReplayProcess(state.run)
        if time_s >= state.config.duration_s or replay.alive:
            return
        plan = plan_of(state.config, state.clock)
        if any(
            state.reading.sent.get(stream.source, 0) < stream.schedule.items
            for stream in plan.streams
        ):
            replay.go_on()
            state.event("provider_restarted", "data provider", "it had died; it goes on from there")

    def finish(self) -> None:
        """How many of the items that were due have been sent, as events; and the samples that
        nobody was there to take with the last reading."""
        state = self._state
        if state.reading.missed and state.reading.time_s >= state.config.duration_s - 1e-6:
            with suppress(*TROUBLE), state.broker.channel() as channel:
                state.broker.take_samples(channel, lambda some: self._keep(some, state.reading))
        plan = plan_of(state.config, state.clock)
        try:
            rate = state.shared.provider()
            counts = state.shared.counts(self._targets)
        except redis.RedisError:
            return
        if not rate:
            return
        late = ""
        if half_ms := rate.get("late_ms_median"):  # there is none before the first item
            most_ms = rate["late_ms_p99"]
            late = f", half within {half_ms} ms and 99 % within {most_ms} ms of their times"
        as_of_s = state.clock.at(int(rate["as_of_us"]))
        for stream in plan.streams:
            if due := stream.schedule.due_by(as_of_s):
                items = counts.sent.get(stream.source, 0)
                error = f"{100 * (items - due) / due:+.2f} % ({items} of {due} items)"
                state.event("replay_rate", stream.source, error + late)
