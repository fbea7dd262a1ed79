"""Reads what the instances have counted, and keeps rows: of items, once they certainly count."""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

from include.files.whole import changed_s
from include.model.errors import TestbedError
from include.testbeds.flink.instances import (
    LAG_MS,
    Counted,
    JobStart,
    Subtask,
    counted,
    newest_whole,
    whole_line,
)
from include.testbeds.flink.job import schedules_of
from include.testbeds.flink.placement import slots_of
from include.testbeds.flink.rest import NoAnswerError, too_early
from include.testbeds.flink.restarts import RestartRows
from include.testbeds.flink.rows import ItemRow, RowFile, bounds_of, counts, row_files
from include.testbeds.flink.state import FlinkReading, FlinkState
from include.testbeds.live.operators.wire import now_us
from include.testbeds.live.processes import process_stat
from include.testbeds.live.reading import busy_share, not_before

TICKS_S = os.sysconf("SC_CLK_TCK")
LAST_CHECKPOINT_WITHIN_S = 60.0
WRITES_EVERY_US = 250_000
"""A source that can write its line does so at least as often."""


class FlinkMonitor:
    """One reading per monitoring period, by whichever process looks after the run then."""

    def __init__(self, state: FlinkState) -> None:
        self._state = state
        self._schedules = schedules_of(state.config)
        self._restarts = RestartRows(state)
        self._rows_read: dict[Path, int] = {}
        """By file, how many of its rows were told."""
        self._unanswered = False

    def read(self, time_s: float) -> None:
        state, before = self._state, self._state.reading
        state.reading = reading = before.next(time_s)
        start = newest_whole(state.starts.look(), state.operators)
        lines = {each: line for each in start.subtasks if (line := counted(each)) is not None}
        queues = self._read_counts(lines, reading, before)
        busy = self._read_busy(start, lines, reading, before)
        self._read_durations(reading, before)
        self._read_utilisation(busy, reading, before)
        if self._at_end and state.graph:
            self._take_last_checkpoint()
        certain, rows = self._hand_over(), []
        for name, waiting, arrived, instances in queues:
            arrived += reading.count_certain(name, certain[name])
            rows.append((time_s, name, waiting, arrived, certain[name], *instances))
        state.journal.append("queue", rows)
        self._restarts.write(state.starts.look())
        state.save()

    # ---------------------------------------------------------------------- items

    def _read_counts(
        self, lines: Mapping[Subtask, Counted], reading: FlinkReading, before: FlinkReading
    ) -> list[tuple[str, int, int, tuple[int, int]]]:
        """Counters go back by what a restart undoes; what controllers see does not.

        Returns each operator with its waiting items, those that arrived since the reading before,
        and its instances, all and ready.
        """
        state, topology = self._state, self._state.config.topology
        of: dict[str, list[Counted]] = {name: [] for name in topology.operator_names}
        for each, line in lines.items():
            of[each.operator].append(line)
        emitted, due = self._read_sources()
        sent: Counter[str] = Counter()
        pending: Counter[str] = Counter()
        for name in topology.operator_names:
            for place, edge in enumerate(e for e in topology.edges if e.origin == name):
                sent[edge.target] += sum(line.sent[place] for line in of[name])
        for edge in topology.edges:
            if edge.origin in due:
                left = [n[edge.origin] * edge.items_out // edge.items_in for n in (emitted, due)]
                sent[edge.target] += left[1]
                pending[edge.target] += left[1] - left[0]
        serving = state.fleet.serving()
        running = Counter(one.operator for one in serving)
        ready = Counter(one.operator for one in serving if one.ready_s is not None)
        queues = []
        for name in topology.operator_names:
            received = sum(line.received for line in of[name])
            queued = sum(line.waiting for line in of[name])
            if state.calibration.queue == "engine":
                queued = max(0, sent[name] - pending[name] - received)
            waiting = queued + pending[name]
            was = before.arrived.get(name, 0), before.completed.get(name, 0)
            reading.arrived[name] = max(was[0], sent[name], received)
            reading.completed[name] = max(was[1], sum(line.done for line in of[name]))
            reading.waiting[name] = waiting
            reading.longest[name] = max((line.waiting for line in of[name]), default=0)
            oldest_us = max((line.oldest_us for line in of[name]), default=0)
            reading.oldest_s[name] = oldest_us / 1e6 * state.clock.scale
            arrived = reading.arrived[name] - was[0]
            queues.append((name, waiting, arrived, (running[name], ready[name])))
        self._keep_arrivals(reading, before)
        return queues

    def _read_sources(self) -> tuple[dict[str, int], dict[str, int]]:
        """Items that each source has emitted, and that were due then: arrivals go on by the clock,
        whoever takes them, also while the source cannot write because the job is down or full."""
        emitted, due = {}, {}
        for name, schedule in self._schedules.items():
            line = whole_line(self._state.folder / "sources" / name)
            us, count = line or (0, 0)
            emitted[name] = count
            at_us = max(us, now_us() - WRITES_EVERY_US)
            due[name] = max(count, schedule.due_by(self._state.second_of(at_us)) if us else 0)
        return emitted, due

    def _keep_arrivals(self, reading: FlinkReading, before: FlinkReading) -> None:
        sent = {name: each.due_by(reading.time_s) for name, each in self._schedules.items()}
        new = {name: n - before.sent.get(name, 0) for name, n in sent.items()}
        reading.sent |= sent
        self._state.arrivals(reading.time_s, new)

    def _read_busy(
        self,
        start: JobStart,
        lines: Mapping[Subtask, Counted],
        reading: FlinkReading,
        before: FlinkReading,
    ) -> dict[str, float]:
        """Of operators since the run began, and how late timers were.

        Returns the share since the last reading of each instance that was read then. What a subtask
        wrote later than another counts for its own time.
        """
        scale = self._state.clock.scale
        passed_s = (reading.wall_us - before.wall_us) / 1e6 * scale
        busy: Counter[str] = Counter()
        shares = {}
        reading.busy_of, reading.busiest = {}, {}
        for each, line in lines.items():
            busy[each.operator] += line.busy_us
            key = f"{start.graph} {each.operator} {each.number}"
            reading.lags[key] = list(line.lags)
            reading.busy_of[key] = line.busy_us / 1e6 * scale
            share = busy_share(key, reading.busy_of, before.busy_of, passed_s)
            if share is not None:
                reading.busiest[each.operator] = max(share, reading.busiest.get(each.operator, 0.0))
                shares[self._instance(start.graph, each.operator, each.number)] = share
        for name in self._state.operators:
            now_s = busy[name] / 1e6 * scale
            reading.busy_s[name] = max(before.busy_s.get(name, 0.0), now_s)
        return shares

    def _instance(self, graph: str, operator: str, subtask: int) -> str:
        """Whose place a subtask of a start of the job is; nobody's is that of operator-0."""
        names = self._state.names.get(graph, {}).get(operator, [])
        return names[subtask] if subtask < len(names) else f"{operator}-0"

    def _read_durations(self, reading: FlinkReading, before: FlinkReading) -> None:
        """What was done since the last reading, whether it will count or not, also before a start
        of the job."""
        state, scale = self._state, self._state.clock.scale
        since_s, read = before.wall_us / 1e6, self._rows_read
        new: defaultdict[str, list[ItemRow]] = defaultdict(list)
        self._rows_read = {}
        for file in row_files(state.folder, state.operators):
            if changed_s(file.path) >= since_s:
                rows = file.rows()
                # Rows come late, so what is new is by place, and by time after another process.
                new[file.operator] += (
                    rows[read[file.path] :]
                    if file.path in read
                    else [row for row in rows if row.done_us > before.wall_us]
                )
                self._rows_read[file.path] = len(rows)
            elif file.path in read:
                self._rows_read[file.path] = read[file.path]
        for name, rows in new.items():
            rows.sort(key=lambda row: row.done_us)
            durations_ms = [(row.done_us - row.sent_us) / 1000 * scale for row in rows]
            reading.record(state.config.topology.operator[name], durations_ms)

    def _hand_over(self) -> Counter[str]:
        """Keep rows that are certain to count: a checkpoint after them is complete.

        Returns how many items of each operator these stand for.
        """
        state, certain = self._state, Counter[str]()
        try:
            newest = state.rest.checkpoints()
        except NoAnswerError as error:
            if not self._unanswered:
                state.event("monitoring_gap", "job-manager", str(error)[:200])
            self._unanswered = True
            return certain
        self._unanswered = False
        # One that a start of the job cut short has no reason.
        reason = newest.why_failed
        if newest.failed > state.failed_checkpoints and reason and not too_early(reason):
            number = newest.failed - state.failed_checkpoints
            detail = f"{number} of them since the last reading: {newest.why_failed}"
            state.event("checkpoint_failed", "job", detail[:300])
        state.failed_checkpoints = newest.failed
        if newest.id <= state.counted_below:
            return certain
        bounds = bounds_of(state.starts.look())
        for file in row_files(state.folder, state.operators):
            if state.counted_below <= file.after < newest.id and counts(file, bounds):
                rows = self._keep_rows(file)
                certain[file.operator] += rows * state.calibration.sample_every_items
        state.counted_below = newest.id
        return certain

    def _keep_rows(self, file: RowFile) -> int:
        """Returns how many they are."""
        state, scale = self._state, self._state.clock.scale
        instance = self._instance(file.graph, file.operator, file.subtask)
        rows = []
        for row in file.rows():
            done_s = round(state.clock.at(row.done_us), 6)
            if not 0 <= done_s <= state.config.duration_s:
                continue
            times_us = (
                row.done_us - row.sent_us,
                row.started_us - row.sent_us,
                row.done_us - row.emitted_us,
            )
            times_ms = [not_before(round(us / 1000 * scale, 6)) for us in times_us]
            rows.append((done_s, file.operator, instance, *times_ms, f"{row.path}.{row.number}"))
        state.journal.append("processing_duration", rows)
        return len(rows)

    # ---------------------------------------------------------------- utilisation

    def _read_utilisation(
        self, busy: Mapping[str, float], reading: FlinkReading, before: FlinkReading
    ) -> None:
        """Slots in use, among which a TaskManager divides its memory; CPU of the process where
        items burn it. Where they only wait, what they would use stands in: the time that an
        instance works, of what it reserves. Flink's places may reserve more than a host has."""
        state, flavor = self._state, self._state.config.flavor
        operators = state.config.topology.operator
        burns = state.calibration.work == "burn"
        slots = slots_of(state.config, state.calibration)
        reading.cpu_share, reading.memory_share = {}, {}
        passed_s = (reading.wall_us - before.wall_us) / 1e6
        hosts, instances = [], []
        for host in state.fleet.leased():
            here = state.fleet.on_host(host.number)
            for one in here:
                if one.name in busy:
                    reading.cpu_share[one.name] = busy[one.name]
                    reading.memory_share[one.name] = 1.0
                    about = one.name, one.operator, host.name
                    instances.append((reading.time_s, *about, busy[one.name]))
            if not host.up:
                continue
            used = sum(busy.get(one.name, 0.0) * operators[one.operator].cpu_cores for one in here)
            cpu = used / flavor.vcpus
            if not burns and here and not any(instance.name in busy for instance in here):
                continue  # the job has started since: nobody was read before
            if burns:
                reading.cpu_s[host.name] = cpu_s(host.process.pid)
                last = before.cpu_s.get(host.name)
                if last is None or passed_s <= 0:
                    continue
                cpu = (reading.cpu_s[host.name] - last) / (passed_s * flavor.vcpus)
            reading.cpu_share[host.name] = round(min(1.0, max(0.0, cpu)), 4)
            memory = round(min(1.0, len(here) / slots), 4)
            reading.memory_share[host.name] = memory
            shares = reading.cpu_share[host.name], memory
            hosts.append((reading.time_s, host.name, *shares, len(here)))
        state.journal.append("host_utilisation", hosts)
        state.journal.append("instance_utilisation", instances)

    # ------------------------------------------------------------------------ end

    def finish(self) -> None:
        """At the end of the run: how late timers were.

        Raises TestbedError when they were too late for the run to be taken as one.
        """
        state = self._state
        if not self._at_end or not state.graph:
            return
        if state.reading.missed:  # nobody was there for the last one
            self._take_last_checkpoint()
            self._hand_over()
        self._restarts.write(state.starts.look(), at_end=True)
        state.save()
        late_ms = lag_ms(state.reading.lags)
        limit_ms = state.calibration.lag_limit_ms
        load = os.getloadavg()[0]
        detail = f"99 % of items within {late_ms:g} ms of their time, load average {load:.1f}"
        state.event("timer_lag", "job", detail)
        if late_ms > limit_ms:
            raise TestbedError(
                f"run {state.run} does not count: {detail}, and lag_limit_ms is {limit_ms:g}; "
                "measure it again on a quieter machine"
            )

    @property
    def _at_end(self) -> bool:
        return self._state.reading.time_s >= self._state.config.duration_s - 1e-6

    def _take_last_checkpoint(self) -> None:
        state, end_s = self._state, time.monotonic() + LAST_CHECKPOINT_WITHIN_S
        trigger, why = "", "it took too long"
        while time.monotonic() < end_s:
            try:
                trigger = trigger or state.rest.trigger_checkpoint()
                failure = state.rest.checkpoint_failure(trigger)
            except NoAnswerError as error:
                failure = str(error)
            if failure == "":
                return
            trigger, why = ("", failure) if failure else (trigger, why)
            time.sleep(0.1 if failure is None else 1.0)
        state.event("checkpoint_failed", "job", f"the last of the run: {why}"[:300])


def lag_ms(lags: Mapping[str, list[int]]) -> float:
    """Below which bound 99 % of timers were late; twice the last one where they were not."""
    bins = [sum(column) for column in zip(*lags.values(), strict=True)]
    total, passed = sum(bins), 0
    for bound, count in zip((*LAG_MS, 2 * LAG_MS[-1]), bins, strict=False):
        passed += count
        if passed >= 0.99 * total:
            return float(bound)
    return 0.0


def cpu_s(pid: int) -> float:
    """CPU time of a process so far; 0 when there is none."""
    fields = process_stat(pid)
    return (int(fields[11]) + int(fields[12])) / TICKS_S if fields else 0.0
