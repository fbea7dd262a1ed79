"""More and fewer instances of an operator, kept even over the hosts."""

from __future__ import annotations

import heapq

from include.controllers.base import Setting
from include.controllers.plan import Plan
from include.model.decision import Reason, Why
from include.model.observation import Observation
from include.model.topology import Operator


class Spread:
    """Adds instances where fewest run and takes them where most do.

    Storm deals executors out in turn; this is the same for a cluster that is in use. Memory must
    do for each, and the CPU unless the flavor shares it.
    """

    def __init__(
        self, plan: Plan, setting: Setting, observation: Observation, *, may_lease: bool
    ) -> None:
        """Count what was seen: from here on the plan must change only through this object."""
        self._plan = plan
        self._cpu_shared = setting.flavor.cpu_shared
        self._may_lease = may_lease
        self._count = {host: len(observation.on_host(host)) for host in plan.free}
        # The order of the lease breaks ties, not the spelling of a name.
        self._order = {host: turn for turn, host in enumerate(plan.free)}
        self._heap = [(count, self._order[host], host) for host, count in self._count.items()]
        heapq.heapify(self._heap)

    def start(self, operator: str, number: int, why: Why) -> int:
        """Start up to ``number`` instances; returns how many found a place."""
        op = self._plan.operator(operator)
        full: list[tuple[int, int, str]] = []
        started = 0
        while started < number:
            host = self._next_host(op, full)
            if host is None:
                break
            self._plan.start(operator, host, why + f"; {host} has {self._count[host]} instances")
            self._change(host, 1)
            started += 1
        for entry in full:
            heapq.heappush(self._heap, entry)
        return started

    def stop(self, operator: str, keep: int, why: Why) -> int:
        """Stop instances until ``keep``, at least one, stay; returns how many were stopped.

        Those that do not work yet go first, so a ready one stays if there is any.
        """
        serving = self._plan.serving(operator)
        order = sorted(
            serving,
            key=lambda instance: (
                instance.ready,
                -self._count.get(instance.host, 0),
                -instance.started_s,
            ),
        )
        gone = order[: max(0, len(serving) - max(1, keep))]
        for instance in gone:
            self._plan.stop(instance, why)
            if instance.host in self._count:
                self._change(instance.host, -1)
        return len(gone)

    def _next_host(self, op: Operator, full: list[tuple[int, int, str]]) -> str | None:
        while self._heap:
            entry = heapq.heappop(self._heap)
            count, _, host = entry
            if count != self._count[host]:
                continue  # an outdated entry; the host has a newer one
            left = self._plan.free[host].left
            if left.memory_mb >= op.memory_mb if self._cpu_shared else left.fits(op):
                return host
            full.append(entry)
        if self._may_lease and self._plan.fits_an_empty_host(op):
            why = Why(Reason.NO_CAPACITY, f"no host has room for {op.name}")
            host = self._plan.lease(why)
            self._count[host], self._order[host] = 0, len(self._order)
            return host
        return None

    def _change(self, host: str, by: int) -> None:
        self._count[host] += by
        heapq.heappush(self._heap, (self._count[host], self._order[host], host))
