"""Reconciles what was ordered with what runs: brings up hosts and instances, notices their end."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

from include.model.errors import TestbedError
from include.testbeds.live.engine import TROUBLE, Container, Engine
from include.testbeds.live.fleet import LiveHost, LiveInstance
from include.testbeds.live.launch import StartedContainer, launch
from include.testbeds.live.state import RunState

AT_ONCE = 8
BUSY_EVERY_S, IDLE_EVERY_S = 0.2, 1.0
"""How often to reconcile: while something starts or stops, and otherwise (wall seconds)."""
PATIENCE_S = 0.5
"""How long that waits for hosts; who answers later counts the next time."""
FIRST_ITEM_WITHIN_S = 60.0
AGAIN_AFTER_S = 2.0


class Reconciler:
    """``reconcile`` settles everything that has happened since the last time."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="host")
        self._asking = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="ask")
        self._launches: dict[int, Future[StartedContainer]] = {}
        self._not_before_s: dict[int, float] = {}
        self._leaving: dict[str, Future[None]] = {}
        self._asked: dict[int, Future[dict[str, Container]]] = {}

    def reconcile(self) -> float:
        """Settle, and return in how many seconds to do so again."""
        state = self._state
        before = state.fleet.to_plain()
        found = self._found()
        for host in list(state.fleet.leased()):
            self._settle_host(host)
            if host.number in found:
                self._settle_answer(host, answered=found[host.number] is not None)
        for one in list(state.fleet.instances.values()):
            containers = found.get(one.host)
            if containers is not None:
                self._settle_instance(one, containers.get(one.name))
        for host in list(state.fleet.leased()):
            if host.releasing and not state.fleet.on_host(host.number):
                self._end(host)
        if state.fleet.to_plain() != before:
            state.save()
        state.touch()
        self._forget_what_is_gone()
        return BUSY_EVERY_S if self._busy() else IDLE_EVERY_S

    def give_back_strays(self) -> None:
        """What a process has leased that died before it could note it, or could not give back."""
        kept = {host.id for host in self._state.fleet.leased()}
        try:
            leased = self._state.hosts.leased()
        except TestbedError:
            return  # whoever comes next tries again
        for host in leased:
            if host not in kept:
                self._leaving[host] = self._pool.submit(self._state.hosts.give_back, host)

    def close(self) -> None:
        """Wait for what is under way; every call in it has a time-out."""
        self._asking.shutdown()
        self._pool.shutdown()

    def _busy(self) -> bool:
        fleet = self._state.fleet
        return any(not host.endpoint for host in fleet.leased()) or any(
            one.ready_s is None or one.stopping for one in fleet.instances.values()
        )

    # ------------------------------------------------------------------ hosts

    def _found(self) -> dict[int, dict[str, Container] | None]:
        """The containers on every host that answers, by number of the host.

        A host that takes its time does not hold up the others: it is asked again when it has
        answered or its time is up.
        """
        for host in self._state.fleet.leased():
            if host.endpoint and host.number not in self._asked:
                engine = Engine(host.endpoint)
                asked = self._asking.submit(engine.containers, self._state.run)
                self._asked[host.number] = asked
        wait(self._asked.values(), timeout=PATIENCE_S)
        found: dict[int, dict[str, Container] | None] = {}
        for number, answer in list(self._asked.items()):
            if answer.done():
                del self._asked[number]
                found[number] = None if answer.exception() else answer.result()
        return found

    def _settle_host(self, host: LiveHost) -> None:
        state, now_s = self._state, self._state.now_s()
        limits, scale = state.calibration, state.clock.scale
        silent_s = now_s - (now_s if host.silent_since_s is None else host.silent_since_s)
        if silent_s > limits.silent_for_s * scale:
            self._lose(host, "host_lost", f"no answer for {limits.silent_for_s:g} s")
        elif not host.endpoint:
            host.endpoint = state.hosts.endpoint(host.id)
            if host.endpoint and host.ordered_s > 0:
                took_s = (now_s - host.ordered_s) / scale
                state.event("host_up", host.name, f"answers {took_s:.2f} s after its order")
            failed = state.hosts.boot_failed(host.id)
            if not host.endpoint and now_s - host.ordered_s > limits.boot_within_s * scale:
                failed = f"not up within {limits.boot_within_s:g} s"
            if failed and not host.endpoint:
                self._lose(host, "host_boot_failure", failed)

    def _settle_answer(self, host: LiveHost, *, answered: bool) -> None:
        state, now_s = self._state, self._state.now_s()
        if not answered and host.silent_since_s is None:
            host.silent_since_s = now_s
            state.event("host_silent", host.name, "its daemon does not answer")
        elif answered and host.silent_since_s is not None:
            silent_s = (now_s - host.silent_since_s) / state.clock.scale
            host.silent_since_s = None
            state.event("host_back", host.name, f"it was silent for {silent_s:.1f} s")

    def _lose(self, host: LiveHost, event: str, why: str) -> None:
        """The lease ends now, and so does what may still run there: it could wake up."""
        gone = self._state.fleet.on_host(host.number)
        for one in gone:
            del self._state.fleet.instances[one.number]
        names = ", ".join(one.name for one in gone) or "none"
        self._state.event(event, host.name, f"{why}; instances lost: {names}")
        self._end(host)

    def _end(self, host: LiveHost) -> None:
        host.ended_s = self._state.now_s()
        self._leaving[host.id] = self._pool.submit(self._state.hosts.give_back, host.id)

    # -------------------------------------------------------------- instances

    def _settle_instance(self, one: LiveInstance, container: Container | None) -> None:
        if not one.container:
            self._bring_up(one)
        elif container is None or container.state not in ("running", "created", "restarting"):
            self._bury(one, container)
        elif one.stopping:
            self._send_away(one, container)
        elif one.first_item_s is None:
            self._listen(one, container)

    def _bring_up(self, one: LiveInstance) -> None:
        under_way = self._launches.get(one.number)
        if under_way is None:
            if not one.serves:
                self._drop(one)
            elif time.monotonic() >= self._not_before_s.get(one.number, 0.0):
                host = self._state.fleet.hosts[one.host]
                work = launch(self._state, host, one)
                self._launches[one.number] = self._pool.submit(work)
            return
        if not under_way.done():
            return
        del self._launches[one.number]
        try:
            launched = under_way.result()
        except TROUBLE as error:
            if one.number not in self._not_before_s:
                self._state.event("instance_start_retried", one.name, str(error)[:200])
            self._not_before_s[one.number] = time.monotonic() + AGAIN_AFTER_S
            limit_s = self._state.calibration.start_within_s * self._state.clock.scale
            if self._state.now_s() - one.started_s > limit_s:
                self._state.event("instance_start_failed", one.name, str(error)[:200])
                self._drop(one)
            return
        one.container, one.pull_s = launched.container, launched.pull_s
        host = self._state.fleet.hosts[one.host]
        if launched.image not in host.images:
            host.images.append(launched.image)

    def _listen(self, one: LiveInstance, container: Container) -> None:
        """When it became ready, and when it had done its first item."""
        state = self._state
        if one.ready_s is not None:
            since_s = (state.now_s() - one.ready_s) / state.clock.scale
            if since_s > FIRST_ITEM_WITHIN_S:
                return
        events = self._ask(one, lambda engine: engine.logged_events(container.id)) or []
        for event in events:
            at_s = state.second_of(event["at_us"])
            if event["event"] == "ready" and one.ready_s is None:
                one.ready_s = at_s
            elif event["event"] == "first item":
                one.first_item_s = at_s
        if one.first_item_s is not None and one.started_s > 0:
            took_s = (one.first_item_s - one.started_s) / state.clock.scale
            ready_s = ((one.ready_s or 0.0) - one.started_s) / state.clock.scale
            pulled = f", of which pulling its image took {one.pull_s:.2f} s" if one.pull_s else ""
            detail = f"ready {ready_s:.2f} s after the decision{pulled}; first item {took_s:.2f} s"
            state.event("instance_started", one.name, f"{detail} after it")

    def _send_away(self, one: LiveInstance, container: Container) -> None:
        state = self._state
        now_s, limit_s = state.now_s(), state.calibration.drain_s * state.clock.scale
        successor = state.fleet.instances.get(one.successor)
        if one.signalled_s is None:
            if successor is None and one.overlaps:
                self._undo_migration(one)
            elif successor is None or successor.ready_s is not None:
                self._ask(one, lambda engine: engine.signal(container.id, "SIGTERM"))
                one.signalled_s = now_s
        elif now_s - one.signalled_s > limit_s:
            self._ask(one, lambda engine: engine.signal(container.id, "SIGKILL"))
            state.event("drain_timeout", one.name, f"killed after {limit_s:g} s")
            one.signalled_s = now_s

    def _undo_migration(self, one: LiveInstance) -> None:
        one.successor, one.stopped_s, one.overlaps = 0, None, False
        self._state.fleet.hosts[one.host].releasing = False
        detail = "its copy ended before it was ready"
        self._state.event("migration_undone", one.name, detail)

    def _bury(self, one: LiveInstance, container: Container | None) -> None:
        """It has ended: as it was told to, or not."""
        if one.signalled_s is None:
            why = "its container is gone"
            if container is not None:
                why = self._ask(one, lambda engine: engine.why_ended(container.id)) or "ended"
            self._state.event("instance_crash", one.name, why)
        if container is not None:
            engine = Engine(self._state.fleet.hosts[one.host].endpoint)
            self._pool.submit(partial(_quietly, partial(engine.remove, container.id)))
        self._drop(one)

    def _drop(self, one: LiveInstance) -> None:
        self._state.fleet.instances.pop(one.number, None)

    def _ask(self, one: LiveInstance, work: Callable[[Engine], Any]) -> Any:
        try:
            return work(Engine(self._state.fleet.hosts[one.host].endpoint))
        except TROUBLE:
            return None  # the next time says what has become of the host

    def _forget_what_is_gone(self) -> None:
        names = {host.id: host.name for host in self._state.fleet.hosts.values()}
        for host, future in list(self._leaving.items()):
            if future.done():
                del self._leaving[host]
                if error := future.exception():
                    name = names.get(host, host)
                    self._state.event("host_not_removed", name, str(error)[:200])


def _quietly(work: Callable[[], None]) -> None:
    try:
        work()
    except (*TROUBLE, TestbedError):
        return  # it goes with its host
