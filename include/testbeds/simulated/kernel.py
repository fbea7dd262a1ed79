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
DRAWS_DRY, EDGE_FULL, RECORDS_FULL, PLACES_FULL = 1, 2, 3, 4
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
# Columns of NetworkState.held: an item that a server holds and has not started.
H_ARRIVAL, H_PUBLISHED, H_BORN, H_EDGE, H_DEALT_US = range(5)
HELD_COLUMNS = 5
# Columns of NetworkState.holding: how many items a server holds, and which of all deals of the
# operator was its last.
HELD, LAST_DEAL = range(2)


class NetworkState(NamedTuple):
    """The whole state. Nodes are operators in flow order, then sources; all integers."""

    in_first: I64
    """(operators + 1): inbound edges of operator o are in_first[o] to in_first[o + 1] - 1."""
    out_first: I64
    """(nodes + 1): outbound edges of a node are out_edge[out_first[n] : out_first[n + 1]]."""
    out_edge: I64
    chained: I64
    """(operators,): the operator that runs in the same servers, whose items go first, or -1."""
    prefetch: I64
    """(1,): items of an edge that a server has at most, the one in service with them; 0: items wait
    in one queue for the first free server."""
    held: I64
    """(operators, slots, places, HELD_COLUMNS): what each server holds and has not started, in
    order; no places without prefetch."""
    holding: I64
    """(operators, slots, 2)."""
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
    room: I64
    """(operators,): items that may be in front of a server, the one in service not among them.
    This and the next three are for :mod:`~include.testbeds.simulated.bounded` only."""
    turn: I64
    """(operators, slots): by so much LAST_DEAL goes up with a deal; who has least is next."""
    restored: I64
    """(operators, slots): items that a server has still to begin of those it held when the job was
    started last."""
    clock: I64
    """(1,): up to when all events have happened."""


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
def _finish(o, s, sample_every, resolution_us, transfers, net):
    """The item in service at server ``s`` is done: emit, count and, if sampled, record it.

    Returns DONE, or what must grow first; then nothing has changed.
    """
    servers, records, ratio = net.servers, net.records, net.ratio
    number, done_us, w = servers[o, s, NUMBER], servers[o, s, DONE_US], servers[o, s, WORK]
    sampled = number % sample_every == 0
    if sampled and net.recorded[0] >= records.shape[0]:
        return RECORDS_FULL * KIND
    full = make_space(w, number, net.out_first, net.out_edge, ratio, net.items, net.edges)
    if full >= 0:
        return EDGE_FULL * KIND + full
    latency_us, born_us = servers[o, s, LATENCY_US], servers[o, s, ITEM_BORN]
    arrival_us = done_us + latency_us
    for k in range(net.out_first[w], net.out_first[w + 1]):
        e = net.out_edge[k]
        for _ in range(emitted(number, ratio[e, 0], ratio[e, 1])):
            put(e, arrival_us, done_us, born_us, net.items, net.edges)
    servers[o, s, BUSY] = 0
    net.nodes[w, COMPLETED] += 1
    if sampled:
        n = net.recorded[0]
        stamp_us = servers[o, s, ITEM_PUBLISHED] // resolution_us * resolution_us
        records[n, R_OPERATOR], records[n, R_INSTANCE] = w, servers[o, s, INSTANCE]
        records[n, R_NUMBER], records[n, R_DONE_US] = number, done_us
        records[n, R_DURATION_US] = done_us - stamp_us
        records[n, R_WAIT_US] = servers[o, s, START_US] - servers[o, s, ITEM_ARRIVAL]
        records[n, R_AGE_US] = done_us - born_us + (latency_us if transfers else 0)
        net.recorded[0] = n + 1
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


@inlined
def _hold(o, s, edge, published_us, dealt_us, net):
    """Bind the head of an edge to server ``s``, behind what that holds."""
    items, held = net.items, net.held
    head, k = net.edges[edge, HEAD], net.holding[o, s, HELD]
    held[o, s, k, H_ARRIVAL], held[o, s, k, H_PUBLISHED] = items[head, ARRIVAL], published_us
    held[o, s, k, H_BORN], held[o, s, k, H_EDGE] = items[head, BORN], edge
    held[o, s, k, H_DEALT_US] = dealt_us
    net.holding[o, s, HELD] = k + 1
    net.edges[edge, HEAD] = head + 1


@inlined
def _take_held(o, s, net):
    """Remove the first item that server ``s`` holds."""
    net.holding[o, s, HELD] -= 1
    for k in range(net.holding[o, s, HELD]):
        for c in range(HELD_COLUMNS):
            net.held[o, s, k, c] = net.held[o, s, k + 1, c]


@inlined
def _deal(o, until_us, net):
    """Hand the next item of operator ``o`` to a server, if a broker does so before ``until_us``.

    It hands the head of an edge to a server that has less than ``prefetch`` items of the edge,
    in turn; one that has as many may have another once it is done with one. False when it does
    not yet.
    """
    items, edges, servers, nodes = net.items, net.edges, net.servers, net.nodes
    prefetch, held, holding = net.prefetch[0], net.held, net.holding
    dealt_us, edge, slot = until_us, -1, -1
    for e in range(net.in_first[o], net.in_first[o + 1]):
        head = edges[e, HEAD]
        if head == edges[e, TAIL] or items[head, ARRIVAL] >= dealt_us:
            continue
        for s in range(nodes[o, SERVERS]):
            count, at_us = 0, max(items[head, ARRIVAL], nodes[o, RESUME_US])
            for k in range(holding[o, s, HELD]):
                count += held[o, s, k, H_EDGE] == e
            if servers[o, s, BUSY]:
                # It was done with the one before when it began with this one, or earlier.
                at_us = max(at_us, servers[o, s, START_US])
                if servers[o, s, EDGE] == e and count == prefetch - 1:
                    at_us = max(at_us, servers[o, s, DONE_US])
            at_us = max(at_us, servers[o, s, READY_US])
            if count >= prefetch or not servers[o, s, OPEN] or at_us > dealt_us:
                continue
            if at_us < dealt_us or (
                e == edge and holding[o, s, LAST_DEAL] < holding[o, slot, LAST_DEAL]
            ):
                dealt_us, edge, slot = at_us, e, s
    if edge < 0:
        return False
    last = 0
    for s in range(nodes[o, SERVERS]):
        last = max(last, holding[o, s, LAST_DEAL])
    holding[o, slot, LAST_DEAL] = last + 1
    _hold(o, slot, edge, items[edges[edge, HEAD], PUBLISHED], dealt_us, net)
    return True


@inlined
def _begin(o, s, w, start_us, edge, arrival_us, published_us, born_us, net):
    """Server ``s`` of operator ``o``, which is free, begins with an item of operator ``w``."""
    servers, nodes = net.servers, net.nodes
    draw = nodes[w, DRAWN]
    if nodes[w, ORPHANS] > 0:
        nodes[w, ORPHANS] -= 1
        number = net.orphans[w, nodes[w, ORPHANS]]
    else:
        number = nodes[w, NUMBERED]
        nodes[w, NUMBERED] = number + 1
    busy_us = net.service_us[w, draw & (BLOCK - 1)]
    if servers[o, s, SPEED_PERMILLE] != 1000:
        busy_us = busy_us * 1000 // servers[o, s, SPEED_PERMILLE]
    nodes[w, DRAWN] = draw + 1
    net.free_us[o, s] = start_us + busy_us
    servers[o, s, BUSY] = 1
    servers[o, s, WORK] = w
    servers[o, s, BUSY_US] += busy_us
    servers[o, s, NUMBER] = number
    servers[o, s, EDGE] = edge
    servers[o, s, ITEM_ARRIVAL] = arrival_us
    servers[o, s, ITEM_PUBLISHED] = published_us
    servers[o, s, ITEM_BORN] = born_us
    servers[o, s, START_US] = start_us
    servers[o, s, DONE_US] = start_us + busy_us
    servers[o, s, LATENCY_US] = net.latency_us[w, draw & (BLOCK - 1)]


@compiled
def _serve(o, until_us, sample_every, resolution_us, transfers, net):
    """Start every item that the servers of operator ``o`` can start before ``until_us``.

    An item of the chained operator goes before one of ``o`` that would not start earlier.
    """
    items, edges, servers, free_us = net.items, net.edges, net.servers, net.free_us
    nodes, stalls_us, held, holding = net.nodes, net.stalls_us, net.held, net.holding
    first, last, slots = net.in_first[o], net.in_first[o + 1], nodes[o, SERVERS]
    prefetch, chained, chained_edge, i = net.prefetch[0], net.chained[o], -1, -1
    while True:
        e, w, s, start_us = -1, o, -1, until_us
        if prefetch:
            for slot in range(slots):
                if holding[o, slot, HELD] and servers[o, slot, OPEN]:
                    freed_us = max(free_us[o, slot], held[o, slot, 0, H_DEALT_US])
                    freed_us = _after_stalls(o, max(freed_us, nodes[o, RESUME_US]), stalls_us)
                    if freed_us < start_us:
                        s, start_us = slot, freed_us
            # What is dealt before that may start earlier, on a server that has nothing to do.
            if _deal(o, start_us, net):
                continue
            if s < 0:
                break
            e, arrival_us = held[o, s, 0, H_EDGE], held[o, s, 0, H_ARRIVAL]
            published_us, born_us = held[o, s, 0, H_PUBLISHED], held[o, s, 0, H_BORN]
        else:
            e = _earliest_edge(first, last, items, edges)
            if chained >= 0:
                chained_edge = _earliest_edge(
                    net.in_first[chained], net.in_first[chained + 1], items, edges
                )
            if e < 0:
                if chained_edge < 0:
                    break
                e, w = chained_edge, chained
            freed_us = NEVER
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
            published_us, born_us = items[i, PUBLISHED], items[i, BORN]
        if nodes[w, DRAWN] >= nodes[w, FILLED]:
            return DRAWS_DRY * KIND + w
        if servers[o, s, BUSY]:
            code = _finish(o, s, sample_every, resolution_us, transfers, net)
            if code != DONE:
                return code
        if prefetch:
            _take_held(o, s, net)
        else:
            edges[e, HEAD] = i + 1
        _begin(o, s, w, start_us, e, arrival_us, published_us, born_us, net)
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
                code = _finish(o, s, sample_every, resolution_us, transfers, net)
                if code != DONE:
                    return code
        for e in range(net.in_first[o], net.in_first[o + 1]):
            tidy(e, net.items, net.edges)
    net.reached[0] = 0
    return DONE
