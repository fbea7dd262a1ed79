"""Reconciles ordered with running hosts and instances: starts them and notices their end."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from include.model.errors import TestbedError
from include.testbeds.live.engine import (
    EXPERIMENT_LABEL,
    INSTANCE_LABEL,
    OPERATOR_LABEL,
    RUN_LABEL,
    TROUBLE,
    Container,
    ContainerSpec,
    Engine,
    StartedContainer,
)
from include.testbeds.live.fleet import LiveHost, LiveInstance
from include.testbeds.live.operators.settings import Settings, Target
from include.testbeds.live.services import image_of
from include.testbeds.live.state import RunState

SHARES_PER_CORE = 1024


def container_name(state: RunState, instance: LiveInstance) -> str:
    """Name of an instance's container on its host."""
    return f"{state.run}.{instance.name}"


def container_spec(state: RunState, instance: LiveInstance) -> ContainerSpec:
    """Parameters of an instance's container."""
    topology, calibration = state.config.topology, state.calibration
    op = topology.operator[instance.operator]
    settings = Settings(
        operator=instance.operator,
        instance=instance.name,
        run=state.run,
        amqp_url=state.services.amqp_url(state.run),
        redis_url=state.services.redis_url(state.run),
        targets=tuple(
            Target(edge.target, edge.items_out, edge.items_in)
            for edge in topology.edges
            if edge.origin == instance.operator
        ),
        sample_every_items=calibration.sample_every_items,
        timestamp_resolution_s=calibration.timestamp_resolution_s,
        prefetch=calibration.prefetch,
        burn=calibration.work == "burn",
        service_ms=calibration.service_ms[instance.operator],
        heartbeat_s=calibration.heartbeat_s,
    )
    return ContainerSpec(
        name=container_name(state, instance),
        image=image_of(state.images, instance.operator),
        settings=settings,
        labels={
            RUN_LABEL: state.run,
            OPERATOR_LABEL: instance.operator,
            INSTANCE_LABEL: instance.name,
            EXPERIMENT_LABEL: state.config.experiment,
        },
        cpu_shares=max(2, round(op.cpu_cores * SHARES_PER_CORE)),
        memory_bytes=round(op.memory_mb * 2**20),
    )


AT_ONCE = 8
BUSY_EVERY_S, IDLE_EVERY_S = 0.2, 1.0
"""Wall time between reconciliations: while hosts or instances start or stop, and otherwise."""
PATIENCE_S = 0.5
"""Longest wait for hosts' answers; later answers count in the next reconciliation."""
FIRST_ITEM_WITHIN_S = 60.0
AGAIN_AFTER_S = 2.0
GIVE_BACK_AGAIN_AFTER_S = 10.0


class LiveReconciler:
    """Brings the state of a run up to date with its hosts and containers."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="host")
        self._asking = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="ask")
        self._launches: dict[int, Future[StartedContainer]] = {}
        self._not_before_s: dict[int, float] = {}
        self._leaving: dict[str, Future[None]] = {}
        self._remaining: dict[str, float] = {}
        """Hosts that could not be given back, and when they are tried again."""
        self._asked: dict[int, Future[dict[str, Container]]] = {}
        self._untold: set[int] = set()
        """Instances that are to stop, and whose hosts did not answer to that."""

    def reconcile(self) -> float:
        state = self._state
        before = state.to_plain()
        answers = self._containers()
        for host in state.fleet.leased():
            if host.number in answers:
                self._settle_answer(host, answered=answers[host.number] is not None)
            self._settle_host(host)
        for instance in list(state.fleet.instances.values()):
            containers = answers.get(instance.host)
            if containers is not None:
                self._settle_instance(instance, containers.get(instance.name))
        for host in state.fleet.leased():
            if host.releasing and not state.fleet.on_host(host.number):
                self._end(host)
        if state.to_plain() != before:
            state.save()
        state.touch()
        self._forget_removed_hosts()
        return BUSY_EVERY_S if self._busy() else IDLE_EVERY_S

    def give_back_strays(self) -> None:
        """Give back hosts that a dead process leased without saving them, or failed to return."""
        kept = {host.id for host in self._state.fleet.leased()}
        try:
            leased = self._state.hosts.leased()
        except TestbedError:
            return  # the next process tries again
        for host in leased:
            if host not in kept:
                self._give_back(host)

    def close(self) -> None:
        """Wait for running calls, which all have a time-out."""
        self._asking.shutdown()
        self._pool.shutdown()

    def _busy(self) -> bool:
        fleet = self._state.fleet
        return any(not host.endpoint for host in fleet.leased()) or any(
            instance.ready_s is None or instance.stopping for instance in fleet.instances.values()
        )

    # ------------------------------------------------------------------ hosts

    def _containers(self) -> dict[int, dict[str, Container] | None]:
        """Containers by number of host, for hosts that have answered; None for failed calls.

        A slow host does not delay the others: it is asked again after its answer or time-out.
        """
        for host in self._state.fleet.leased():
            if host.endpoint and host.number not in self._asked:
                engine = Engine(host.endpoint)
                future = self._asking.submit(engine.containers, self._state.run)
                self._asked[host.number] = future
        wait(self._asked.values(), timeout=PATIENCE_S)
        containers: dict[int, dict[str, Container] | None] = {}
        for number, answer in list(self._asked.items()):
            if answer.done():
                del self._asked[number]
                containers[number] = None if answer.exception() else answer.result()
        return containers

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
        """End the lease and the host, which could otherwise wake up."""
        gone = self._state.fleet.on_host(host.number)
        for instance in gone:
            del self._state.fleet.instances[instance.number]
        names = ", ".join(instance.name for instance in gone) or "none"
        self._state.event(event, host.name, f"{why}; instances lost: {names}")
        self._end(host)

    def _end(self, host: LiveHost) -> None:
        host.ended_s = self._state.now_s()
        self._give_back(host.id)

    # -------------------------------------------------------------- instances

    def _settle_instance(self, instance: LiveInstance, container: Container | None) -> None:
        if not instance.container:
            self._bring_up(instance, container)
        elif container is None or container.state not in ("running", "created", "restarting"):
            self._remove(instance, container)
        elif instance.stopping:
            self._stop(instance, container)
        elif instance.first_item_s is None:
            self._read_log(instance, container)

    def _bring_up(self, instance: LiveInstance, container: Container | None) -> None:
        under_way = self._launches.get(instance.number)
        if under_way is None:
            if container is not None and container.state == "running":
                self._take_up(instance, container)
            elif not instance.serves:
                self._give_up(instance)
            elif time.monotonic() >= self._not_before_s.get(instance.number, 0.0):
                engine = Engine(self._state.fleet.hosts[instance.host].endpoint)
                spec = container_spec(self._state, instance)
                self._launches[instance.number] = self._pool.submit(engine.launch, spec)
            return
        if not under_way.done():
            return
        del self._launches[instance.number]
        try:
            launched = under_way.result()
        except TROUBLE as error:
            if instance.number not in self._not_before_s:
                self._state.event("instance_start_retried", instance.name, str(error)[:200])
            self._not_before_s[instance.number] = time.monotonic() + AGAIN_AFTER_S
            limit_s = self._state.calibration.start_within_s * self._state.clock.scale
            if container is not None and container.state == "running":
                self._take_up(instance, container)
            elif self._state.now_s() - instance.started_s > limit_s:
                self._state.event("instance_start_failed", instance.name, str(error)[:200])
                self._give_up(instance)
            return
        self._take(instance, launched)

    def _take_up(self, instance: LiveInstance, container: Container) -> None:
        """One of a process that ended, or of a call that timed out, before its id was saved."""
        image = image_of(self._state.images, instance.operator)
        self._take(instance, StartedContainer(container.id, image, pull_s=0.0))

    def _give_up(self, instance: LiveInstance) -> None:
        """One of which no container is known; it may start all the same."""
        engine = Engine(self._state.fleet.hosts[instance.host].endpoint)
        self._pool.submit(engine.remove, container_name(self._state, instance))
        self._drop(instance)

    def _take(self, instance: LiveInstance, launched: StartedContainer) -> None:
        instance.container, instance.pull_s = launched.container, launched.pull_s
        host = self._state.fleet.hosts[instance.host]
        if launched.image not in host.images:
            host.images.append(launched.image)

    def _read_log(self, instance: LiveInstance, container: Container) -> None:
        """Read from its log when it was ready and when it had processed its first item."""
        state = self._state
        if instance.ready_s is not None:
            since_s = (state.now_s() - instance.ready_s) / state.clock.scale
            if since_s > FIRST_ITEM_WITHIN_S:
                return
        events = self._ask(instance, lambda engine: engine.logged_events(container.id)) or []
        for event in events:
            at_s = state.second_of(event["at_us"])
            if event["event"] == "ready" and instance.ready_s is None:
                instance.ready_s = at_s
            elif event["event"] == "first item":
                instance.first_item_s = at_s
        if instance.first_item_s is not None and instance.started_s > 0:
            took_s = (instance.first_item_s - instance.started_s) / state.clock.scale
            ready_s = ((instance.ready_s or 0.0) - instance.started_s) / state.clock.scale
            pulled = (
                f", of which pulling its image took {instance.pull_s:.2f} s"
                if instance.pull_s
                else ""
            )
            detail = f"ready {ready_s:.2f} s after the decision{pulled}; first item {took_s:.2f} s"
            state.event("instance_started", instance.name, f"{detail} after it")

    def _stop(self, instance: LiveInstance, container: Container) -> None:
        state = self._state
        now_s, limit_s = state.now_s(), state.calibration.kill_after_s
        successor = state.fleet.instances.get(instance.successor)
        if instance.signalled_s is None:
            if successor is None and instance.successor:
                self._undo_migration(instance)
            elif successor is None or successor.ready_s is not None:
                instance.signalled_s = now_s
                self._tell_to_stop(instance, container)
        elif now_s - instance.signalled_s > limit_s * state.clock.scale:
            self._ask(instance, lambda engine: engine.signal(container.id, "SIGKILL"))
            state.event("drain_timeout", instance.name, f"killed after {limit_s:g} s")
            instance.signalled_s = now_s
        elif instance.number in self._untold:
            self._tell_to_stop(instance, container)

    def _tell_to_stop(self, instance: LiveInstance, container: Container) -> None:
        """Where its host does not answer, it is told again."""
        self._untold.add(instance.number)
        try:
            engine = Engine(self._state.fleet.hosts[instance.host].endpoint)
            engine.signal(container.id, "SIGTERM")
        except TROUBLE:
            return  # the next reconciliation finds out about the host
        self._untold.discard(instance.number)

    def _undo_migration(self, instance: LiveInstance) -> None:
        instance.successor, instance.stopped_s, instance.overlaps = 0, None, False
        self._state.fleet.hosts[instance.host].releasing = False
        detail = "its copy ended before it was ready"
        self._state.event("migration_undone", instance.name, detail)

    def _remove(self, instance: LiveInstance, container: Container | None) -> None:
        """Remove an instance whose container has ended, by order or not."""
        if instance.signalled_s is None:
            why = "its container is gone"
            if container is not None:
                why = self._ask(instance, lambda engine: engine.why_ended(container.id)) or "ended"
            self._state.event("instance_crash", instance.name, why)
        if container is not None:
            engine = Engine(self._state.fleet.hosts[instance.host].endpoint)
            self._pool.submit(engine.remove, container.id)  # else it is removed with its host
        self._drop(instance)

    def _drop(self, instance: LiveInstance) -> None:
        self._state.fleet.instances.pop(instance.number, None)

    def _ask(self, instance: LiveInstance, work: Callable[[Engine], Any]) -> Any:
        try:
            return work(Engine(self._state.fleet.hosts[instance.host].endpoint))
        except TROUBLE:
            return None  # the next reconciliation finds out about the host

    def _forget_removed_hosts(self) -> None:
        names = {host.id: host.name for host in self._state.fleet.hosts.values()}
        for host, future in list(self._leaving.items()):
            if future.done():
                del self._leaving[host]
                if error := future.exception():
                    if host not in self._remaining:
                        name = names.get(host, host)
                        self._state.event("host_not_removed", name, str(error)[:200])
                    self._remaining[host] = time.monotonic() + GIVE_BACK_AGAIN_AFTER_S
                else:
                    self._remaining.pop(host, None)
        for host, at_s in self._remaining.items():
            if host not in self._leaving and time.monotonic() >= at_s:
                self._give_back(host)

    def _give_back(self, host: str) -> None:
        self._leaving[host] = self._pool.submit(self._state.hosts.give_back, host)
