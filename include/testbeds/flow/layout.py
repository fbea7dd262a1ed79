"""From leased hosts and running instances to the kernel's arrays: who serves where, now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from include.testbeds.flow.arrays import F64, I64, Graph, Layout
from include.testbeds.virtual.fleet import VirtualFleet
from include.testbeds.virtual.key_groups import loads_of_instances

LEAST_CORES = 0.01
"""A host whose overhead eats all of its CPU still does this much."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A layout and what its rows stand for, until ``until_us``.

    ``instances`` holds the numbers of the serving instances, in the order of their pairs;
    ``pair_of`` the pair of each, ``load`` what it does over the
    mean of its operator. ``hosts`` are numbers of hosts that are up.
    """

    layout: Layout
    instances: I64
    pair_of: I64
    load: F64
    hosts: I64
    until_us: int


@dataclass(frozen=True, slots=True)
class Planner:
    """What the layouts of a run have in common.

    ``targets`` holds the operator each edge leads to. Latencies are means, per edge.
    """

    graph: Graph
    targets: I64
    vcpus: float
    overhead_cores: float
    latency_s: float
    local_latency_s: float
    group_sizes: Mapping[int, F64]
    """By operator that deals out key groups; see :mod:`~include.testbeds.virtual.key_groups`."""

    def serving(self, fleet: VirtualFleet, now_us: int) -> Serving:
        """Who serves from ``now_us`` until something starts, stops or boots."""
        operators = self.graph.service_s.size
        hosts = np.array([one.number for one in fleet.leased() if one.up_us <= now_us], dtype=int)
        here = set(hosts.tolist())
        working = sorted(
            (one.row, one.host, one.number)
            for one in fleet.instances.values()
            if one.ready_us <= now_us
            and (one.stopped_us is None or one.stopped_us > now_us)
            and one.host in here
        )
        of, on, numbers = np.array(working, dtype=np.int64).reshape(-1, 3).T.copy()
        keys, pair_of, counts = np.unique(
            of * (hosts.max(initial=0) + 1) + on, return_inverse=True, return_counts=True
        )
        first_of_pair = np.searchsorted(pair_of, np.arange(keys.size))
        pair_operator = of[first_of_pair]
        pair_host = np.searchsorted(hosts, on[first_of_pair])
        layout = self._layout(pair_operator, pair_host, counts, numbers, (operators, hosts.size))
        load = self._load(of, layout)
        return Serving(layout, numbers, pair_of, load, hosts, _next_change_us(fleet, now_us))

    def _load(self, operator: I64, layout: Layout) -> F64:
        """What each instance does over the mean of its operator's; sets ``layout.even``."""
        load = np.ones(operator.size)
        for o, sizes in self.group_sizes.items():
            if layout.ready[o]:
                load[operator == o] = loads_of_instances(sizes, int(layout.ready[o]))
                layout.even[o] = 1 / load[operator == o].max()
        return load

    def _layout(
        self,
        pair_operator: I64,
        pair_host: I64,
        pair_count: I64,
        numbers: I64,
        size: tuple[int, int],
    ) -> Layout:
        operators, hosts = size
        instances_on = np.zeros(size)
        instances_on[pair_operator, pair_host] = pair_count
        ready = instances_on.sum(axis=1).astype(np.int64)
        overhead = self.overhead_cores * instances_on.sum(axis=0)
        left = np.maximum(self.vcpus - overhead, LEAST_CORES)
        return Layout(
            ready=ready,
            instance_first=_firsts(ready),
            instances=numbers,
            pair_first=np.searchsorted(pair_operator, np.arange(operators + 1)),
            pair_host=pair_host,
            pair_count=pair_count.astype(np.int64),
            host_first=_firsts(np.bincount(pair_host, minlength=hosts)),
            host_pair=np.argsort(pair_host, kind="stable"),
            pair_operator=pair_operator,
            host_cores=left,
            host_overhead=self.vcpus - left,
            host_weight=self.graph.cores @ instances_on,
            latency_s=self._latency_s(instances_on, ready),
            even=np.ones(operators),
        )

    def _latency_s(self, instances_on: F64, ready: I64) -> F64:
        """Mean latency per edge: messages go to any instance, wherever that is.

        Sources are elsewhere; while an operator has no instance its edges cross, too.
        """
        on = instances_on / np.maximum(ready, 1)[:, None]
        origin = self.graph.origin
        inner = origin < ready.size
        local = np.zeros(origin.size)
        local[inner] = (on[origin[inner]] * on[self.targets[inner]]).sum(axis=1)
        return self.latency_s + local * (self.local_latency_s - self.latency_s)


def _firsts(counts: I64) -> I64:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _next_change_us(fleet: VirtualFleet, now_us: int) -> int:
    changes: Sequence[int | None] = [
        *(host.up_us for host in fleet.leased()),
        *(one.ready_us for one in fleet.instances.values()),
        *(one.stopped_us for one in fleet.instances.values()),
    ]
    later = (at_us for at_us in changes if at_us is not None and at_us > now_us)
    return min(later, default=np.iinfo(np.int64).max)
