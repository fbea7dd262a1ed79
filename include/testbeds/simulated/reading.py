"""What a monitor can read of the kernel's arrays at one point in time."""

from __future__ import annotations

from include.testbeds.simulated.kernel import (
    BUSY,
    BUSY_SEEN_US,
    BUSY_US,
    COMPLETED,
    DONE_US,
    EDGE,
    H_ARRIVAL,
    H_EDGE,
    HELD,
    HOST,
    INSTANCE,
    NEVER,
    NUMBERED,
    OPEN,
    ORPHANS,
    READY_US,
    SERVERS,
)
from include.testbeds.simulated.rings import ARRIVAL, HEAD, TAIL
from include.testbeds.virtual.jit import compiled


@compiled
def read(net, now_us, period_us, in_service, held_of, per_operator, per_server, busy_share):
    """Read queues and servers, for the monitor.

    Fills ``per_operator`` (operators, 7) with waiting items, open servers, those of them that
    are ready, the items of the longest of its edges as a broker counts them (those that wait and
    those in service), how many have arrived and were completed so far, and for how many
    microseconds the oldest has waited. ``per_server`` (n, 4)
    gets instance, operator, host, and since when it is ready, which is NEVER when it is closed;
    ``busy_share`` (n,) the share of the last ``period_us`` that each was busy. ``in_service``
    and ``held_of`` (edges,) are 0 before.
    """
    items, edges, servers = net.items, net.edges, net.servers
    n = 0
    for o in range(net.in_first.size - 1):
        for s in range(net.nodes[o, SERVERS]):
            if servers[o, s, BUSY]:
                in_service[servers[o, s, EDGE]] += 1
            for k in range(net.holding[o, s, HELD]):
                held_of[net.held[o, s, k, H_EDGE]] += 1
    for o in range(net.in_first.size - 1):
        waiting, longest, first_us = 0, 0, now_us
        for e in range(net.in_first[o], net.in_first[o + 1]):
            i = edges[e, TAIL]
            while i > edges[e, HEAD] and items[i - 1, ARRIVAL] >= now_us:
                i -= 1
            there = i - edges[e, HEAD] + held_of[e]
            waiting += there
            longest = max(longest, there + in_service[e])
            if edges[e, HEAD] < edges[e, TAIL]:
                first_us = min(first_us, items[edges[e, HEAD], ARRIVAL])
        per_operator[o, 0], per_operator[o, 1], per_operator[o, 2] = waiting, 0, 0
        per_operator[o, 3] = longest
        per_operator[o, 4] = net.nodes[o, NUMBERED] - net.nodes[o, ORPHANS] + waiting
        per_operator[o, 5] = net.nodes[o, COMPLETED]
        for s in range(net.nodes[o, SERVERS]):
            for k in range(net.holding[o, s, HELD]):
                first_us = min(first_us, net.held[o, s, k, H_ARRIVAL])
            busy_us = servers[o, s, BUSY_US]
            if servers[o, s, BUSY]:
                busy_us -= max(servers[o, s, DONE_US] - now_us, 0)
            busy_share[n] = (busy_us - servers[o, s, BUSY_SEEN_US]) / period_us
            servers[o, s, BUSY_SEEN_US] = busy_us
            per_server[n, 0], per_server[n, 1] = servers[o, s, INSTANCE], o
            per_server[n, 2], per_server[n, 3] = servers[o, s, HOST], NEVER
            if servers[o, s, OPEN]:
                per_server[n, 3] = servers[o, s, READY_US]
                per_operator[o, 1] += 1
                per_operator[o, 2] += servers[o, s, READY_US] <= now_us
            n += 1
        per_operator[o, 6] = now_us - first_us
