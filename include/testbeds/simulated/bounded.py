"""The hot loop of an engine with bounded buffers: items are bound to instances, in order of time.

As in Apache Flink, what an operator emits is dealt out to the instances of the next one as it is
emitted: to each in turn or, where items have keys, by the share of the keys that an instance has.
An instance has room for so many items in front of it, the more the more instances send to it. An
item that its instance has no room for stays on its edge, and then its origin begins with nothing
more (blocking after service): so what waits is upstream, at last at the source, which publishes by
the clock whatever happens.

Other than in :mod:`~include.testbeds.simulated.kernel`, what is downstream decides what may start
upstream, so operators cannot be moved one after the other: every event comes in its turn. That is
slower, and only what asks for bounded buffers comes here.
"""

from __future__ import annotations

from include.testbeds.simulated.kernel import (
    BUSY,
    DONE,
    DONE_US,
    DRAWN,
    DRAWS_DRY,
    FILLED,
    H_ARRIVAL,
    H_BORN,
    H_DEALT_US,
    H_EDGE,
    H_PUBLISHED,
    HELD,
    KIND,
    LAST_DEAL,
    OPEN,
    PLACES_FULL,
    READY_US,
    RESUME_US,
    SERVERS,
    _after_stalls,
    _begin,
    _finish,
    _hold,
    _publish,
    _take_held,
)
from include.testbeds.simulated.rings import ARRIVAL, BORN, HEAD, PUBLISHED, TAIL, tidy
from include.testbeds.virtual.jit import compiled, inlined


@inlined
def _blocked(o, now_us, out_first, out_edge, items, edges):
    """Whether something that operator ``o`` has sent has arrived and found no room."""
    for k in range(out_first[o], out_first[o + 1]):
        e = out_edge[k]
        head = edges[e, HEAD]
        if head < edges[e, TAIL] and items[head, ARRIVAL] <= now_us:
            return True
    return False


@inlined
def _next_deal(o, now_us, before_us, net):
    """When the next item of operator ``o`` is dealt out, by which edge and to whom.

    The head that came first goes to the instance whose turn it is; where that has no room, nobody
    gets anything. An operator that stands still is sent what other operators did, and nothing by
    sources. Returns ``before_us`` and -1 when nothing is dealt before that.
    """
    items, edges, servers, holding = net.items, net.edges, net.servers, net.holding
    edge, arrived_us = -1, before_us
    for e in range(net.in_first[o], net.in_first[o + 1]):
        head = edges[e, HEAD]
        if head < edges[e, TAIL] and items[head, ARRIVAL] < arrived_us:
            edge, arrived_us = e, items[head, ARRIVAL]
    slot, at_us = -1, before_us
    for s in range(net.nodes[o, SERVERS] if edge >= 0 else 0):
        if servers[o, s, OPEN]:
            ready_us = max(max(arrived_us, now_us), servers[o, s, READY_US])
            if ready_us < at_us or (
                ready_us == at_us
                and slot >= 0
                and holding[o, s, LAST_DEAL] < holding[o, slot, LAST_DEAL]
            ):
                slot, at_us = s, ready_us
    if slot < 0 or holding[o, slot, HELD] >= net.room[o]:
        return before_us, -1, -1
    at_us, head = max(at_us, net.nodes[o, RESUME_US]), edges[edge, HEAD]
    if items[head, PUBLISHED] == items[head, BORN]:
        at_us = _after_stalls(o, at_us, net.stalls_us)
    return at_us, edge, slot


@compiled
def _deal(o, edge, s, dealt_us, net):
    """Bind the head of an edge to server ``s``. From a source it is sent only now; what is dealt
    out again was sent before it (``QueueingNetwork`` sees to it that it does not look like new)."""
    head = net.edges[edge, HEAD]
    published_us = net.items[head, PUBLISHED]
    if published_us == net.items[head, BORN]:
        published_us = dealt_us
    net.holding[o, s, LAST_DEAL] += net.turn[o, s]
    _hold(o, s, edge, published_us, dealt_us, net)


@inlined
def _start(o, s, start_us, net):
    """Server ``s``, which is free, begins with the first item that it holds."""
    held = net.held
    edge, born_us = held[o, s, 0, H_EDGE], held[o, s, 0, H_BORN]
    published_us = held[o, s, 0, H_PUBLISHED]
    arrival_us = max(held[o, s, 0, H_ARRIVAL], published_us)
    _begin(o, s, o, start_us, edge, arrival_us, published_us, born_us, net)
    _take_held(o, s, net)
    net.restored[o, s] = max(net.restored[o, s] - 1, 0)


@inlined
def _next_end(until_us, servers, nodes):
    """When the next item is done, and where: ``until_us`` and -1 when none is before that."""
    at_us, o, s = until_us, -1, -1
    for p in range(servers.shape[0]):
        for slot in range(nodes[p, SERVERS]):
            if servers[p, slot, BUSY] and servers[p, slot, DONE_US] < at_us:
                at_us, o, s = servers[p, slot, DONE_US], p, slot
    return at_us, o, s


@inlined
def _next_start(now_us, before_us, net):
    """When the next item is begun, and where: ``before_us`` and -1 when none is before that."""
    servers, holding, held, nodes = net.servers, net.holding, net.held, net.nodes
    at_us, o, s = before_us, -1, -1
    for p in range(servers.shape[0]):
        if _blocked(p, now_us, net.out_first, net.out_edge, net.items, net.edges):
            continue
        for slot in range(nodes[p, SERVERS]):
            if servers[p, slot, OPEN] and holding[p, slot, HELD] and not servers[p, slot, BUSY]:
                ready_us = max(servers[p, slot, READY_US], nodes[p, RESUME_US])
                ready_us = max(max(now_us, held[p, slot, 0, H_DEALT_US]), ready_us)
                start_us = _after_stalls(p, ready_us, net.stalls_us)
                if start_us < at_us:
                    at_us, o, s = start_us, p, slot
    return at_us, o, s


@compiled
def advance(net, until_us, sample_every, resolution_us, transfers):
    """As :func:`kernel.advance`; at one time what ends goes first, then what is dealt out."""
    items, edges, servers, nodes = net.items, net.edges, net.servers, net.nodes
    for source in range(net.published_us.shape[0]):
        code = _publish(source, until_us, net)
        if code != DONE:
            return code
    while True:
        now_us, edge = net.clock[0], -1
        at_us, o, s = _next_end(until_us, servers, nodes)
        for p in range(servers.shape[0]):
            dealt_us, by, to = _next_deal(p, now_us, at_us, net)
            if by >= 0 and dealt_us < at_us:
                at_us, o, s, edge = dealt_us, p, to, by
        start_us, starting, server = _next_start(now_us, at_us, net)
        if starting >= 0:
            if nodes[starting, DRAWN] >= nodes[starting, FILLED]:
                return DRAWS_DRY * KIND + starting
            _start(starting, server, start_us, net)
            at_us = start_us
        elif edge >= 0:
            if net.holding[o, s, HELD] == net.held.shape[2]:
                return PLACES_FULL * KIND
            _deal(o, edge, s, at_us, net)
        elif o >= 0:
            code = _finish(o, s, sample_every, resolution_us, transfers, net)
            if code != DONE:
                return code
        else:
            break
        net.clock[0] = at_us
    net.clock[0] = until_us
    for e in range(edges.shape[0]):
        tidy(e, items, edges)
    return DONE
