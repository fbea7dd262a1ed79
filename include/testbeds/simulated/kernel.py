"""The hot loop: per-item FIFO queueing. Arrays in, arrays out; no objects, draws or I/O.

Every operator is one FIFO in front of its instances (servers). The item at the head takes
the earliest server (Kiefer and Wolfowitz), so start = max(arrival, earliest free, ready).
`advance` moves all operators, in flow order, to one point in time. An item that would start
at or after that point stays in its queue, because control may add or stop servers there.

Time is integer microseconds: exact on every machine, and free of the order of additions.
Results do not depend on where time is cut: which item takes which server is decided by
arrival order alone, and each draw and each emission belongs to a number that an item gets
when it starts. Items of one edge are ordered by (arrival, published, born); operators take
the earliest head of their edges, the lower edge on a tie.

The state is a few wide integer arrays with named columns rather than many narrow ones, and
nothing here allocates: docs/decisions/0002-the-kernel.md says why.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from include.testbeds.simulated.rings import (
    ARRIVAL,
    BORN,
    HEAD,
    PUBLISHED,
    TAIL,
    emitted,
    make_space,
    put,
    tidy,
)
from include.testbeds.virtual.jit import compiled, inlined

I64 = NDArray[np.int64]

BLOCK = 16384
"""Width of the rings of draws, a power of two: draw ``i`` stands in column ``i % BLOCK``."""
NEVER = np.iinfo(np.int64).max

DONE = -1
DRAWS_DRY, EDGE_FULL, RECORDS_FULL = 1, 2, 3
KIND = 1_000_000
"""`advance` returns DONE, or kind * KIND + index of what the caller must refill or grow."""

# Columns of NetworkState.servers: one instance and what it has in service.
INSTANCE, HOST, READY_US, OPEN, SPEED_PERMILLE, BUSY, BUSY_US, BUSY_SEEN_US = range(8)
NUMBER, EDGE, ITEM_ARRIVAL, ITEM_PUBLISHED, ITEM_BORN, START_US, DONE_US, LATENCY_US = range(8, 16)
WORK = 16  # the operator whose item is in service: the server's own, or the one chained to it
SERVER_COLUMNS = 17
# Columns of NetworkState.nodes: counters of an operator or source.
NUMBERED, DRAWN, FILLED, COMPLETED, RESUME_US, ORPHANS, SERVERS = range(7)
NODE_COLUMNS = 7
# Columns of NetworkState.records: one sampled item.
R_OPERATOR, R_INSTANCE, R_NUMBER, R_DONE_US, R_DURATION_US, R_WAIT_US, R_AGE_US = range(7)
RECORD_COLUMNS = 7


class NetworkState(NamedTuple):
    """The whole state. Nodes are operators in flow order, then sources; all integers."""

    in_first: I64
    """(operators + 1): inbound edges of operator o are in_first[o] to in_first[o + 1] - 1."""
    out_first: I64
    """(nodes + 1): outbound edges of a node are out_edge[out_first[n] : out_first[n + 1]]."""
    out_edge: I64
    chained: I64
    """(operators,): the operator that runs in the same servers, whose items go first, or -1."""
    ratio: I64
    """(edges, 2): items that leave, for so many that the origin finishes."""
    items: I64
    """(rows, 3): items of an edge in order, in rows HEAD to TAIL - 1."""
    edges: I64
    """(edges, EDGE_COLUMNS): HEAD and TAIL, and the rows there are for the edge."""
    servers: I64
    """(operators, slots, SERVER_COLUMNS); a closed server (OPEN 0) finishes its item only."""
    free_us: I64
    """(operators, slots): when an open server is free and ready; NEVER for a closed one."""
    nodes: I64
    """(nodes, NODE_COLUMNS). NUMBERED items got a number, DRAWN got draws, FILLED draws exist.

    No item starts before RESUME_US. ORPHANS counts numbers of crashed items, which the next
    items get so that ratios and samples stay exact. SERVERS counts slots in use.
    """
    orphans: I64
    """(operators, width): the numbers of crashed items."""
    service_us: I64
    """(operators, BLOCK)."""
    latency_us: I64
    """(nodes, BLOCK)."""
    stalls_us: I64
    """(operators, n, 2), in order: no item of the operator starts from the one to the other."""
    published_us: I64
    """(sources, BLOCK): when items are published, a ring like those of draws; then NEVER."""
    records: I64
    """(width, RECORD_COLUMNS): sampled items, in no particular order."""
    recorded: I64
    """(1,): how many records there are."""
    reached: I64
    """(1,): the operator that `advance` stopped at; those before it have moved already."""


@compiled
def _publish(source, until_us, net):
    """Publish what a source emits before ``until_us``."""
    out_first, out_edge, ratio, items = net.out_first, net.out_edge, net.ratio, net.items
    edges, nodes, latency_us, times_us = net.edges, net.nodes, net.latency_us, net.published_us
    node = net.in_first.size - 1 + source
    while True:
        number = nodes[node, NUMBERED]
        if number >= nodes[node, FILLED]:
            return DRAWS_DRY * KIND + node
        published_us = times_us[source, number & (BLOCK - 1)]
        if published_us >= until_us:
            break
        full = make_space(node, number, out_first, out_edge, ratio, items, edges)
        if full >= 0:
            return EDGE_FULL * KIND + full
        arrival_us = published_us + latency_us[node, number & (BLOCK - 1)]
        for k in range(out_first[node], out_first[node + 1]):
            e = out_edge[k]
            for _ in range(emitted(number, ratio[e, 0], ratio[e, 1])):
                put(e, arrival_us, published_us, published_us, items, edges)
        nodes[node, NUMBERED] = nodes[node, DRAWN] = number + 1
    return DONE


@inlined
def _finish(
    o,
    s,
    sample_every,
    resolution_us,
    transfers,
    out_first,
    out_edge,
    ratio,
    items,
    edges,
    servers,
    nodes,
    records,
    recorded,
):
    """The item in service at server ``s`` is done: emit, count and, if sampled, record it.

    Returns DONE, or what must grow first; then nothing has changed.
    """
    number, done_us, w = servers[o, s, NUMBER], servers[o, s, DONE_US], servers[o, s, WORK]
    sampled = number % sample_every == 0
    if sampled and recorded[0] >= records.shape[0]:
        return RECORDS_FULL * KIND
    full = make_space(w, number, out_first, out_edge, ratio, items, edges)
    if full >= 0:
        return EDGE_FULL * KIND + full
    latency_us, born_us = servers[o, s, LATENCY_US], servers[o, s, ITEM_BORN]
    arrival_us = done_us + latency_us
    for k in range(out_first[w], out_first[w + 1]):
        e = out_edge[k]
        for _ in range(emitted(number, ratio[e, 0], ratio[e, 1])):
            put(e, arrival_us, done_us, born_us, items, edges)
    servers[o, s, BUSY] = 0
    nodes[w, COMPLETED] += 1
    if sampled:
        n = recorded[0]
        stamp_us = servers[o, s, ITEM_PUBLISHED] // resolution_us * resolution_us
        records[n, R_OPERATOR], records[n, R_INSTANCE] = w, servers[o, s, INSTANCE]
        records[n, R_NUMBER], records[n, R_DONE_US] = number, done_us
        records[n, R_DURATION_US] = done_us - stamp_us
        records[n, R_WAIT_US] = servers[o, s, START_US] - servers[o, s, ITEM_ARRIVAL]
        records[n, R_AGE_US] = done_us - born_us + (latency_us if transfers else 0)
        recorded[0] = n + 1
    return DONE


@inlined
def _earliest_edge(first, last, items, edges):
    """The edge of first to last - 1 whose head arrives first, or -1 when all are empty."""
    best, best_us = -1, NEVER
    for e in range(first, last):
        head = edges[e, HEAD]
        if head < edges[e, TAIL] and items[head, ARRIVAL] < best_us:
            best, best_us = e, items[head, ARRIVAL]
    return best


@inlined
def _after_stalls(o, start_us, stalls_us):
    """``start_us``, moved to the end of a stall of the operator that it falls into."""
    for k in range(stalls_us.shape[1]):
        if start_us < stalls_us[o, k, 0]:
            break
        start_us = max(start_us, stalls_us[o, k, 1])
    return start_us


@compiled
def _serve(o, until_us, sample_every, resolution_us, transfers, net):
    """Start every item that the servers of operator ``o`` can start before ``until_us``.

    An item of the chained operator goes before one of ``o`` that would not start earlier.
    """
    items, edges, servers, free_us = net.items, net.edges, net.servers, net.free_us
    nodes, orphans, stalls_us = net.nodes, net.orphans, net.stalls_us
    service_us, latency_us = net.service_us, net.latency_us
    out_first, out_edge, ratio = net.out_first, net.out_edge, net.ratio
    records, recorded = net.records, net.recorded
    first, last, slots = net.in_first[o], net.in_first[o + 1], nodes[o, SERVERS]
    chained, chained_edge = net.chained[o], -1
    while True:
        e, w = _earliest_edge(first, last, items, edges), o
        if chained >= 0:
            chained_edge = _earliest_edge(
                net.in_first[chained], net.in_first[chained + 1], items, edges
            )
        if e < 0:
            if chained_edge < 0:
                break
            e, w = chained_edge, chained
        s, freed_us = -1, NEVER
        for slot in range(slots):
            if free_us[o, slot] < freed_us:
                s, freed_us = slot, free_us[o, slot]
        i = edges[e, HEAD]
        arrival_us = items[i, ARRIVAL]
        if s < 0:
            break
        freed_us = max(freed_us, nodes[o, RESUME_US])
        start_us = _after_stalls(o, max(arrival_us, freed_us), stalls_us)
        if w == o and chained_edge >= 0:
            before_us = items[edges[chained_edge, HEAD], ARRIVAL]
            if before_us <= start_us:
                e, w, arrival_us = chained_edge, chained, before_us
                i = edges[e, HEAD]
                start_us = _after_stalls(o, max(arrival_us, freed_us), stalls_us)
        if arrival_us >= until_us or start_us >= until_us:
            break
        draw = nodes[w, DRAWN]
        if draw >= nodes[w, FILLED]:
            return DRAWS_DRY * KIND + w
        if servers[o, s, BUSY]:
            code = _finish(
                o,
                s,
                sample_every,
                resolution_us,
                transfers,
                out_first,
                out_edge,
                ratio,
                items,
                edges,
                servers,
                nodes,
                records,
                recorded,
            )
            if code != DONE:
                return code
        if nodes[w, ORPHANS] > 0:
            nodes[w, ORPHANS] -= 1
            number = orphans[w, nodes[w, ORPHANS]]
        else:
            number = nodes[w, NUMBERED]
            nodes[w, NUMBERED] = number + 1
        busy_us = service_us[w, draw & (BLOCK - 1)]
        if servers[o, s, SPEED_PERMILLE] != 1000:
            busy_us = busy_us * 1000 // servers[o, s, SPEED_PERMILLE]
        nodes[w, DRAWN] = draw + 1
        edges[e, HEAD] = i + 1
        free_us[o, s] = start_us + busy_us
        servers[o, s, BUSY] = 1
        servers[o, s, WORK] = w
        servers[o, s, BUSY_US] += busy_us
        servers[o, s, NUMBER] = number
        servers[o, s, EDGE] = e
        servers[o, s, ITEM_ARRIVAL] = arrival_us
        servers[o, s, ITEM_PUBLISHED] = items[i, PUBLISHED]
        servers[o, s, ITEM_BORN] = items[i, BORN]
        servers[o, s, START_US] = start_us
        servers[o, s, DONE_US] = start_us + busy_us
        servers[o, s, LATENCY_US] = latency_us[w, draw & (BLOCK - 1)]
    return DONE


@compiled
def advance(net, until_us, sample_every, resolution_us, transfers):
    """Move every source and operator to ``until_us``.

    Returns DONE, or what stopped it (see KIND); the state is then consistent, and the same
    call goes on where it stopped. ``sample_every`` items one is recorded;
    ``resolution_us`` is the resolution of the publication time stamps (1 = exact). With
    ``transfers`` the latency drawn for an item counts for its age.
    """
    operators = net.in_first.size - 1
    for source in range(net.published_us.shape[0]):
        code = _publish(source, until_us, net)
        if code != DONE:
            return code
    for o in range(net.reached[0], operators):
        net.reached[0] = o
        code = _serve(o, until_us, sample_every, resolution_us, transfers, net)
        if code != DONE:
            return code
        for s in range(net.nodes[o, SERVERS]):
            if net.servers[o, s, BUSY] and net.servers[o, s, DONE_US] < until_us:
                code = _finish(
                    o,
                    s,
                    sample_every,
                    resolution_us,
                    transfers,
                    net.out_first,
                    net.out_edge,
                    net.ratio,
                    net.items,
                    net.edges,
                    net.servers,
                    net.nodes,
                    net.records,
                    net.recorded,
                )
                if code != DONE:
                    return code
        for e in range(net.in_first[o], net.in_first[o + 1]):
            tidy(e, net.items, net.edges)
    net.reached[0] = 0
    return DONE


@compiled
def read(net, now_us, period_us, in_service, per_operator, per_server, busy_share):
    """Read queues and servers, for the monitor.

    Fills ``per_operator`` (operators, 6) with waiting items, open servers, those of them that
    are ready, the items of the longest of its edges as a broker counts them (those that wait and
    those in service), and how many have arrived and were completed so far. ``per_server`` (n, 4)
    gets instance, operator, host, and since when it is ready, which is NEVER when it is closed;
    ``busy_share`` (n,) the share of the last ``period_us`` that each was busy. ``in_service``
    (edges,) is 0 before.
    """
    items, edges, servers = net.items, net.edges, net.servers
    n = 0
    for o in range(net.in_first.size - 1):
        for s in range(net.nodes[o, SERVERS]):
            if servers[o, s, BUSY]:
                in_service[servers[o, s, EDGE]] += 1
    for o in range(net.in_first.size - 1):
        waiting, longest = 0, 0
        for e in range(net.in_first[o], net.in_first[o + 1]):
            i = edges[e, TAIL]
            while i > edges[e, HEAD] and items[i - 1, ARRIVAL] >= now_us:
                i -= 1
            waiting += i - edges[e, HEAD]
            longest = max(longest, i - edges[e, HEAD] + in_service[e])
        per_operator[o, 0], per_operator[o, 1], per_operator[o, 2] = waiting, 0, 0
        per_operator[o, 3] = longest
        per_operator[o, 4] = net.nodes[o, NUMBERED] - net.nodes[o, ORPHANS] + waiting
        per_operator[o, 5] = net.nodes[o, COMPLETED]
        for s in range(net.nodes[o, SERVERS]):
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
