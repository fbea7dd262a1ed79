"""How instances share the CPU of their hosts in one step of the fluid kernel."""

from __future__ import annotations

import math

from include.testbeds.flow.arrays import EPSILON
from include.testbeds.virtual.jit import compiled


@compiled
def _fair_share(h, background, graph, layout, scratch):
    """The share of a core that nobody on a crowded host exceeds (max-min fairness)."""
    fair = 0.0
    while True:
        left, weight = layout.host_cores[h], background
        for i in range(layout.host_first[h], layout.host_first[h + 1]):
            p = layout.host_pair[i]
            o = layout.pair_operator[p]
            cores = layout.pair_count[p] * graph.cores[o]
            if scratch.busy[o] <= fair:
                left -= cores * scratch.busy[o]
            else:
                weight += cores
        better = min(1.0, left / weight) if weight > EPSILON else 1.0
        if better <= fair + EPSILON:
            return better
        fair = better


@compiled
def _meeting_speed(h, background, layout, scratch):
    """Speed on a host that is not crowded, where threads still meet on its cores.

    Mean field of processor sharing: a thread meets the others as if each ran at random for as
    much of the time as it does; their number is taken as normal, and all are as much slower as
    they keep each other waiting. On one core with many threads this is M/M/1's 1 / (1 - load).
    A thread is never slower than its share if all ran, nor than what it has to do allows.
    """
    cores, load = layout.host_cores[h], scratch.load[h]
    weight = layout.host_weight[h] + background
    if weight <= cores or load <= 0:
        return 1.0
    # Of an average thread: the cores it takes when it runs, and on average.
    running, own = scratch.spread[h] / load, scratch.squares[h] / load
    most, slower = min(weight / cores, 1 / scratch.highest[h]), 1.0
    others, rest = load - own, 1 - own / load
    for _ in range(20):
        variance = slower * rest * (scratch.spread[h] - slower * scratch.squares[h])
        deviation = math.sqrt(max(variance, EPSILON))
        over = running + background + slower * others - cores
        z = over / deviation
        above = 0.5 * (1 + math.erf(z / math.sqrt(2)))
        density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        excess = 1 + (over * above + deviation * density) / cores - slower
        slope = 1 - above * others / cores
        # Newton's method, from below: excess is convex in how much slower all are.
        if excess <= 1e-6:
            break
        slower = most if slope <= 1e-6 else slower + excess / slope
        if slower >= most:
            return 1 / most
    return 1 / slower


@compiled
def _lend(k, graph, layout, segment, scratch):
    """What crowded hosts leave undone goes to instances of the same operator elsewhere."""
    for o in range(layout.ready.size):
        missing, helpers = 0.0, 0
        for p in range(layout.pair_first[o], layout.pair_first[o + 1]):
            scratch.extra[p] = 0.0
            missing += layout.pair_count[p] * (scratch.busy[o] - scratch.grant[p])
            if scratch.fair[layout.pair_host[p]] == 1.0:
                helpers += layout.pair_count[p]
        if missing <= EPSILON or helpers == 0:
            continue
        most = segment.open_share[k, o] * layout.even[o]
        extra = min(most - scratch.busy[o], missing / helpers)
        for p in range(layout.pair_first[o], layout.pair_first[o + 1]):
            h = layout.pair_host[p]
            if scratch.fair[h] == 1.0:
                scratch.extra[p] = extra
                scratch.host_extra[h] += layout.pair_count[p] * extra * graph.cores[o]
    for p in range(layout.pair_host.size):
        h = layout.pair_host[p]
        if scratch.extra[p] > 0:
            spare = max(layout.host_cores[h] - scratch.load[h] - segment.background[k], 0.0)
            scratch.grant[p] += scratch.extra[p] * min(1.0, spare / scratch.host_extra[h])


@compiled
def share_cpu(k, graph, layout, segment, scratch):
    """Grant every pair its share of the CPU of its host."""
    background, crowded = segment.background[k], False
    for h in range(layout.host_cores.size):
        scratch.load[h], scratch.highest[h], scratch.host_extra[h] = 0.0, 0.0, 0.0
        scratch.spread[h], scratch.squares[h] = 0.0, 0.0
    for p in range(layout.pair_host.size):
        h, o = layout.pair_host[p], layout.pair_operator[p]
        cores = layout.pair_count[p] * scratch.busy[o] * graph.cores[o]
        scratch.load[h] += cores
        scratch.spread[h] += cores * graph.cores[o]
        scratch.squares[h] += cores * graph.cores[o] * scratch.busy[o]
        scratch.highest[h] = max(scratch.highest[h], scratch.busy[o])
    for h in range(layout.host_cores.size):
        if scratch.load[h] + background > layout.host_cores[h] + EPSILON:
            crowded = True
            scratch.fair[h] = _fair_share(h, background, graph, layout, scratch)
            scratch.speed[h] = scratch.fair[h]
        else:
            scratch.fair[h] = 1.0
            scratch.speed[h] = _meeting_speed(h, background, layout, scratch)
    for p in range(layout.pair_host.size):
        busy = scratch.busy[layout.pair_operator[p]]
        scratch.grant[p] = min(busy, scratch.fair[layout.pair_host[p]])
    if crowded:
        _lend(k, graph, layout, segment, scratch)
