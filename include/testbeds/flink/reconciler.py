"""Reconciles what was ordered with what Flink runs.

All that is ordered at a time becomes one rescale: one request, one checkpoint, one start of the
job. What runs after it is read from the instances, not assumed, and asked for again where it is
less; what Flink then still does not run is lost.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from signal import SIGKILL, SIGTERM

from include.files.whole import write_bytes
from include.model.errors import TestbedError
from include.testbeds.flink.fleet import FlinkHost, FlinkInstance, by_operator, wanted
from include.testbeds.flink.instances import JobStart, counted
from include.testbeds.flink.job import write_job
from include.testbeds.flink.placement import Placement, heap_mb, placed, plan_lines, slots_of
from include.testbeds.flink.rest import Checkpoints, NoAnswerError, too_early
from include.testbeds.flink.state import CONTROLLER, PROVIDER, FlinkState, PendingRescale, Rescale

BUSY_EVERY_S, IDLE_EVERY_S = 0.1, 0.5
"""How often to reconcile: while something is under way, and otherwise (wall seconds)."""
AHEAD_S = 3.0
"""A TaskManager starts so long (wall) before its host's boot is over."""
AGAIN_AFTER_S = 4.0
"""Flink has so long to run by itself what it was asked for, after a start of the job (wall)."""
TRIGGER_EVERY_S = 0.5
"""How soon after a checkpoint that failed the next one is tried (wall)."""
LOST_AFTER = 3
"""What it does not run after it was asked so often is lost."""
FIND_AGAIN_S = 30.0
"""TaskManagers have so long to find a JobManager that was started again, or to come back, and it to
answer (wall)."""


class FlinkReconciler:
    """``reconcile`` settles everything that has happened since the last time."""

    def __init__(self, state: FlinkState) -> None:
        self._state = state
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="end")
        self._registered: set[str] = set()
        self._registered_at = 0.0
        self._provider_missing_since = math.inf
        self._settled_at = time.monotonic()
        self._manager_at = self._answered_at = time.monotonic()
        self._asked_again = 0
        self._triggered_at = 0.0
        self._misplaced = 0

    def reconcile(self) -> float:
        state = self._state
        before = state.to_plain()
        self._look_after_job_manager()
        self._read_registered()
        self._look_after_provider()
        for host in state.fleet.leased():
            self._settle_host(host)
        self._settle_start()
        self._end_released()  # else the next start may fill what is empty
        if state.rescale is not None:
            self._go_on()
        else:
            self._begin()
        if state.to_plain() != before:
            state.save()
        state.touch()
        return BUSY_EVERY_S if self._busy() else IDLE_EVERY_S

    def end_strays(self) -> None:
        """End TaskManagers whose lease has ended: who ended it may have died before they did, and
        Flink goes on to use them."""
        for host in self._state.fleet.hosts.values():
            if host.ended:
                self._pool.submit(host.process.end, first=SIGKILL)

    def close(self) -> None:
        """Wait for processes that end."""
        self._pool.shutdown()

    @property
    def settled(self) -> bool:
        """Whether everything runs that is to run, where it was looked for last."""
        state = self._state
        hosts = all(host.up for host in state.fleet.leased())
        instances = all(one.ready_s is not None for one in state.fleet.instances.values())
        return hosts and instances and state.rescale is None

    def _busy(self) -> bool:
        return not self.settled or any(one.stopping for one in self._instances())

    def _instances(self) -> list[FlinkInstance]:
        return list(self._state.fleet.instances.values())

    # ------------------------------------------------------------------ processes

    def _look_after_job_manager(self) -> None:
        """Start it again on the newest complete checkpoint if it died or hangs."""
        state = self._state
        silent_s = time.monotonic() - max(self._answered_at, self._manager_at)
        hangs = state.clock.started_us and silent_s > FIND_AGAIN_S
        ended = not state.job_manager.alive
        if not state.job_manager.pid or not (ended or hangs):
            return
        checkpoint = state.cluster.newest_checkpoint()
        write_job(state.folder, state.config, state.calibration, state.asked)
        state.job_manager = state.cluster.start_job_manager(checkpoint)
        state.rescale, state.crashed = None, True
        self._manager_at = self._settled_at = time.monotonic()
        name = checkpoint.name if checkpoint else "the beginning"
        why = "its process had ended" if ended else f"it did not answer for {FIND_AGAIN_S:g} s"
        detail = f"{why}; it was started again, and the job goes on from {name}"
        state.event("job_manager_restarted", "job-manager", detail)
        state.save()

    def _look_after_provider(self) -> None:
        """Start it again if it died or hangs: sources would take a slot that an instance needs."""
        state = self._state
        hangs = time.monotonic() - self._provider_missing_since > FIND_AGAIN_S
        ended = not state.provider.alive
        if not state.provider.pid or not state.clock.started_us or not (ended or hangs):
            return
        self._provider_missing_since = math.inf
        heap = heap_mb(state.config, state.calibration)
        state.provider = state.cluster.start_task_manager(PROVIDER, 1, heap)
        why = "its process had ended" if ended else "Flink did not hear of it any more"
        state.event("provider_restarted", PROVIDER, f"{why}; it was started again")
        state.crashed = True
        state.save()

    def _read_registered(self) -> None:
        """Who is registered, at most once a second while nothing boots."""
        booting = any(not host.up and host.process.pid for host in self._state.fleet.leased())
        now = time.monotonic()
        if now - self._registered_at < (0.0 if booting else 1.0):
            return
        try:
            self._registered = self._state.rest.task_managers()
            self._registered_at = self._answered_at = now
        except NoAnswerError:
            self._registered_at = 0.0  # nobody can be missed by whom does not answer
        missing = self._registered_at > 0 and PROVIDER not in self._registered
        since = min(self._provider_missing_since, now)
        self._provider_missing_since = since if missing else math.inf

    def _settle_host(self, host: FlinkHost) -> None:
        state, now_s = self._state, self._state.now_s()
        limits, scale = state.calibration, state.clock.scale
        boot_s = limits.host_boot_s[0] if host.ordered_s > 0 else 0.0
        due_s = host.ordered_s + boot_s
        if not host.process.pid:
            if now_s >= due_s - AHEAD_S * scale and self._planned():
                self._boot(host)
        elif not host.process.alive:
            event = "host_lost" if host.up else "host_boot_failure"
            self._lose(host, event, "its process ended")
        elif not host.up:
            if host.name in self._registered and now_s >= due_s:
                host.up_s = now_s
                if state.clock.started_us:
                    took_s = (now_s - host.ordered_s) / scale
                    detail = f"registered {took_s:.2f} s after its order"
                    state.event("host_up", host.name, detail)
            elif now_s - due_s > limits.boot_within_s * scale:
                why = f"not registered within {limits.boot_within_s:g} s"
                self._lose(host, "host_boot_failure", why)
        elif self._missed(host):
            self._lose(host, "host_lost", "its process hangs: Flink does not hear of it any more")

    def _planned(self) -> bool:
        """Whether the slot assigner, where it is ours, has a plan for what is deployed."""
        if self._steered and not (self._state.folder / "placement").is_file():
            self._write_plan(self._instances())
            return (self._state.folder / "placement").is_file()
        return True

    @property
    def _steered(self) -> bool:
        return self._state.calibration.placement == "steered"

    def _missed(self, host: FlinkHost) -> bool:
        is_due = time.monotonic() - self._manager_at > FIND_AGAIN_S
        return is_due and self._registered_at > 0 and host.name not in self._registered

    def _boot(self, host: FlinkHost) -> None:
        state = self._state
        slots = slots_of(state.config, state.calibration)
        host.process = state.cluster.start_task_manager(
            host.name, slots, heap_mb(state.config, state.calibration)
        )
        state.save()

    def _lose(self, host: FlinkHost, event: str, why: str) -> None:
        """The lease ends now, and so does what may still run there: it could wake up.

        Flink starts its instances on others, so they are booked there until it says where. Where it
        had done so before, or ran nothing here, no start is to come that would.
        """
        state = self._state
        gone, start = state.fleet.on_host(host.number), self._start()
        starts = start is None or any(each.host == host.name for each in start.subtasks)
        others = [each for each in state.fleet.leased() if each is not host and each.up]
        others.sort(key=lambda each: each.releasing)
        for one in gone:
            if one.stopping or not others:
                del state.fleet.instances[one.number]
            else:
                one.host, one.ready_s = others[0].number, None if starts else one.ready_s
        names = ", ".join(one.name for one in gone) or "none"
        state.event(event, host.name, f"{why}; instances that ran there: {names}")
        state.crashed = state.crashed or starts
        self._settled_at = time.monotonic()
        self._end(host, at_once=True)

    def _end(self, host: FlinkHost, *, at_once: bool = False) -> None:
        host.ended_s = self._state.now_s()
        self._pool.submit(host.process.end, first=SIGKILL if at_once else SIGTERM)

    def _end_released(self) -> None:
        state = self._state
        if state.rescale is not None:
            return
        start = self._start()
        there = {each.host for each in start.subtasks} if start else set()
        for host in state.fleet.leased():
            empty = host.releasing and not state.fleet.on_host(host.number)
            if empty and host.name not in there:
                self._end(host)

    def _start(self) -> JobStart | None:
        """The start of the job that was settled last."""
        starts = self._state.starts.look()
        return next((each for each in starts if each.graph == self._state.graph), None)

    # ------------------------------------------------------------------ starts of the job

    def _settle_start(self) -> None:
        """The job is up again: see what runs where, and whose place each subtask is."""
        state = self._state
        starts = state.starts.look()
        if not starts or starts[-1].graph == state.graph:
            return
        start = starts[-1]
        if not start.complete(state.operators):
            return
        previous = state.graph
        named = placed(self._instances(), start, state.fleet)
        self._verify(start, named)
        self._keep_names(start, named)
        if state.clock.started_us and previous:
            state.restarts.append(self._restart(start, previous))
            state.job_started_s = state.second_of(start.up_us)
        state.graph, state.rescale, state.crashed = start.graph, None, False
        self._settled_at, self._asked_again = time.monotonic(), 0
        self._say_where(start, named)

    def _verify(self, start: JobStart, named: Placement) -> None:
        """Raises TestbedError when our slot assigner is not obeyed, again and again.

        After a loss, and with fewer slots than instances, things go where there is room.
        """
        state = self._state
        all_there = start.parallelism() == state.asked
        if not (self._steered and named.moved and all_there) or state.crashed:
            self._misplaced = 0
            return
        self._misplaced += 1
        moved = ", ".join(named.moved)
        state.event("placement_refused", "job", f"not where planned: {moved}"[:300])
        if self._misplaced >= LOST_AFTER:
            raise TestbedError(f"Flink does not run instances where it was told to: {moved}")

    def _keep_names(self, start: JobStart, named: Placement) -> None:
        state = self._state
        state.names[start.graph] = named.names
        up_s = state.second_of(start.up_us)
        for number, host in named.hosts.items():
            one = state.fleet.instances[number]
            there = state.fleet.hosts.get(host)
            if there and not there.releasing and (not self._steered or state.crashed):
                one.host = host  # on one that is released nobody would ever move it
            one.ready_s = up_s if one.ready_s is None else one.ready_s
        for one in self._instances():
            if one.stopping and not one.runs:
                del state.fleet.instances[one.number]
            elif one.number not in named.hosts:
                one.ready_s = None

    def _restart(self, start: JobStart, previous: str) -> PendingRescale:
        state, rescale = self._state, self._state.rescale
        try:
            newest = state.rest.checkpoints()
        except NoAnswerError:
            newest = Checkpoints()
        cause = "crash" if state.crashed else rescale.cause if rescale else "engine"
        return PendingRescale(
            asked_s=rescale.asked_s if rescale and not state.crashed else -1.0,
            cause=cause,
            before=rescale.before if rescale else sum(state.asked.values()),
            after=len(start.subtasks),
            graph=start.graph,
            previous=previous,
            checkpoint_s=newest.took_s if newest.id == start.restored else 0.0,
            checkpoint_bytes=newest.state_bytes if newest.id == start.restored else 0,
            up_s=state.second_of(start.up_us),
        )

    def _say_where(self, start: JobStart, named: Placement) -> None:
        """Where Flink has put what, where that is not where it was booked."""
        state = self._state
        counts = Counter(each.host for each in start.subtasks)
        where = ", ".join(f"{host} {counts[host]}" for host in sorted(counts))
        moved = f"; elsewhere than booked: {', '.join(named.moved)}" if named.moved else ""
        state.event("placement", "job", f"instances by host: {where}{moved}"[:500])
        try:
            ids = state.rest.vertices()
            sources = [source.name for source in state.config.topology.sources]
            hosts = {host for name in sources for host in state.rest.hosts_of(ids[name])}
        except (NoAnswerError, KeyError):
            return
        if hosts != {PROVIDER}:
            shared = ", ".join(sorted(hosts)) or "nowhere yet"
            state.event("sources_placed", "sources", f"they are not alone: on {shared}")

    # ------------------------------------------------------------------ rescales

    def _want(self) -> list[FlinkInstance]:
        state = self._state
        start_s = state.calibration.instance_start_s[0] if state.clock.started_us else 0.0
        return wanted(state.fleet, state.now_s() - start_s)

    def _begin(self) -> None:
        """Ask for what is to run, where that is not what runs."""
        state, start = self._state, self._start()
        if start is None:
            return
        want = self._want()
        counts = by_operator(want, state.operators)
        leaving = self._leaving(start, want)
        less = counts != start.parallelism()
        # What has no slot is not where it is to be, however often it is asked for.
        moved = self._steered and not less and self._moves(start, want)
        ordered = leaving or moved or counts != state.asked
        if not (ordered or less or state.crashed):  # as many, though perhaps others
            there = {one.number for one in self._instances() if one.runs or one.stopping}
            ordered = there != {one.number for one in want}
        late = time.monotonic() - self._settled_at > AGAIN_AFTER_S
        if not (ordered or (less and late)):
            return
        if not (leaving or moved or less):
            self._agree(start, want, counts)
            return
        if not ordered and self._asked_again >= LOST_AFTER:
            self._give_up(start)
            return
        self._asked_again = 0 if ordered else self._asked_again + 1
        self._settled_at = time.monotonic()
        self._settle(want, counts)
        state.rescale = Rescale(
            asked_s=state.now_s(),
            cause=CONTROLLER if ordered else "engine",
            before=len(start.subtasks),
            graph=start.graph,
            leaving=[host.name for host in leaving],
            again=moved,
        )
        if self._steered:
            self._write_plan(want)
        self._ask()

    def _settle(self, want: list[FlinkInstance], counts: dict[str, int]) -> None:
        """These are the instances that run from now on, as many as are asked for."""
        self._state.asked = counts
        for instance in self._instances():
            instance.runs = instance in want

    def _agree(self, start: JobStart, want: list[FlinkInstance], counts: dict[str, int]) -> None:
        """Ask for what runs already. Flink does not start the job for it, so nothing is awaited."""
        state = self._state
        try:
            state.rest.ask_for(counts)
        except NoAnswerError:
            return  # it is asked again
        self._settle(want, counts)
        self._keep_names(start, placed(self._instances(), start, state.fleet))

    def _ask(self) -> None:
        """The request, and a checkpoint, after which Flink carries it out.

        Where hosts go that have instances the request comes after the checkpoint, with their end.
        """
        state, rescale = self._state, self._state.rescale
        assert rescale is not None
        self._triggered_at = time.monotonic()
        try:
            if not rescale.leaving:
                state.rest.ask_for(state.asked)
            rescale.trigger = state.rest.trigger_checkpoint()
        except NoAnswerError as error:
            rescale.trigger = ""
            if not rescale.troubled:
                rescale.troubled = True
                state.event("rescale_retried", "job", str(error)[:200])

    def _go_on(self) -> None:
        """Look after what was asked, until the job is up again."""
        state, rescale = self._state, self._state.rescale
        assert rescale is not None
        if not rescale.trigger:
            if time.monotonic() - self._triggered_at > TRIGGER_EVERY_S:
                self._ask()
        elif not rescale.done:
            self._await_checkpoint(rescale)
        passed_s = (state.now_s() - rescale.asked_s) / state.clock.scale
        limit_s = state.calibration.rescale_within_s
        if passed_s > limit_s:
            detail = f"the job was not up {limit_s:g} s after it was asked for {rescale.cause}"
            held_up = 2 * (rescale.held_up_until_s - rescale.asked_s) > limit_s * state.clock.scale
            if held_up:
                names = ", ".join(rescale.held_up_by)
                detail += f"; Flink handed {names} what the start before had left in buffers"
            state.event("rescale_held_up" if held_up else "rescale_late", "job", detail)
            self._settled_at = time.monotonic()
            state.rescale = None
        elif rescale.done and passed_s > AGAIN_AFTER_S and self._refused(rescale):
            state.rescale = None

    def _note_held_up(self, rescale: Rescale) -> None:
        """Whose tasks are not through what was in buffers: until then no checkpoint can begin.

        They work it off, or wait for those after them to do so and take what they put out: Flink
        calls both initializing (2.2.1, `StreamTask.restoreStateAndGates`).
        """
        with suppress(NoAnswerError):
            if names := self._state.rest.initializing():
                rescale.held_up_by, rescale.held_up_until_s = names, self._state.now_s()

    def _refused(self, rescale: Rescale) -> bool:
        """Whether Flink leaves the job as it is: it was asked again, or slots are missing."""
        state, start = self._state, self._start()
        if start is None or any(line.closed for line in map(counted, start.subtasks) if line):
            return False  # the job is being started
        slots = slots_of(state.config, state.calibration)
        there = slots * sum(host.up for host in state.fleet.leased())
        scarce = sum(state.asked.values()) > there and not rescale.leaving
        return scarce or rescale.cause == "engine"

    def _await_checkpoint(self, rescale: Rescale) -> None:
        state = self._state
        try:
            failure = state.rest.checkpoint_failure(rescale.trigger)
        except NoAnswerError:
            failure = "it was forgotten"
        if failure is None:
            return
        if failure:
            if too_early(failure):
                self._note_held_up(rescale)
            elif not rescale.troubled:
                rescale.troubled = True
                state.event("checkpoint_failed", "job", failure[-200:])
            rescale.trigger = ""
            return
        rescale.done = True
        if rescale.leaving:
            self._let_go(rescale)
        elif rescale.again:
            state.again += 1
            write_bytes(state.folder / "again", str(state.again).encode())

    def _let_go(self, rescale: Rescale) -> None:
        """The request for what stays, and the end of hosts: one start of the job for both."""
        state = self._state
        try:
            state.rest.ask_for(state.asked)
        except NoAnswerError as error:
            state.event("rescale_retried", "job", str(error)[:200])
        for name in rescale.leaving:
            host = state.fleet.host(name)
            if host is not None:
                for one in state.fleet.on_host(host.number):
                    if not one.runs:
                        state.fleet.instances.pop(one.number)
                self._end(host)

    def _leaving(self, start: JobStart, want: list[FlinkInstance]) -> list[FlinkHost]:
        """Released hosts on which nothing is to run, and Flink has something."""
        there = {each.host for each in start.subtasks}
        stay = {one.host for one in want}
        going = [
            host
            for host in self._state.fleet.leased()
            if host.releasing and host.number not in stay and host.name in there
        ]
        return [] if self._steered else going

    def _moves(self, start: JobStart, want: list[FlinkInstance]) -> bool:
        """Whether anything is to run elsewhere than it does."""
        booked = Counter((one.operator, f"host-{one.host}") for one in want)
        there = Counter((each.operator, each.host) for each in start.subtasks)
        return booked != there

    def _write_plan(self, want: list[FlinkInstance]) -> None:
        state = self._state
        try:
            ids = state.rest.vertices()
        except NoAnswerError:
            return
        sources = [source.name for source in state.config.topology.sources]
        if not {*state.operators, *sources} <= ids.keys():
            return  # the job is not there yet
        text = plan_lines(want, ids, sources, PROVIDER)
        write_bytes(state.folder / "placement", text.encode())

    def _give_up(self, start: JobStart) -> None:
        """What Flink does not run although it was asked is lost; whoever decides sees it."""
        state = self._state
        detail = f"asked for {sum(state.asked.values())} instances, runs {len(start.subtasks)}"
        state.event("slots_missing", "job", detail)
        lost = [one for one in self._instances() if one.runs and one.ready_s is None]
        for one in lost:
            del state.fleet.instances[one.number]
            detail = f"Flink runs {start.parallelism()[one.operator]} of {one.operator}: no slot"
            state.event("instance_lost", one.name, detail)
        self._asked_again = 0
        self._settled_at = time.monotonic() + (0 if lost else 10 * AGAIN_AFTER_S)
