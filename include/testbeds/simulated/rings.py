"""Items on the edges, for the kernel: each edge a stretch of rows, filled in order of arrival."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from include.testbeds.virtual.jit import compiled, inlined

# Columns of NetworkState.items: one item that waits or travels, times in us.
ARRIVAL, PUBLISHED, BORN = 0, 1, 2
# Columns of NetworkState.edges: rows of items. What is there is from HEAD to TAIL, the stretch
# of the edge from FIRST to END.
HEAD, TAIL, FIRST, END = 0, 1, 2, 3
EDGE_COLUMNS = 4


def stretches(widths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Empty edges that have so many rows each, one behind the other. (edges, EDGE_COLUMNS)"""
    ends = np.cumsum(widths)
    first = ends - widths
    return np.stack([first, first, first, ends], axis=1).astype(np.int64)


@compiled
def _to_the_front(e, items, edges):
    """Move the items of edge ``e`` to where its rows begin."""
    first, head, kept = edges[e, FIRST], edges[e, HEAD], edges[e, TAIL] - edges[e, HEAD]
    for i in range(kept):
        for column in range(3):
            items[first + i, column] = items[head + i, column]
    edges[e, HEAD], edges[e, TAIL] = first, first + kept


@compiled
def tidy(e, items, edges):
    """Use the same rows again, so that an edge touches no more of them than it needs.

    At most as many items are moved as have left since the last time.
    """
    gone = edges[e, HEAD] - edges[e, FIRST]
    if gone > 0 and edges[e, TAIL] - edges[e, HEAD] <= gone:
        _to_the_front(e, items, edges)


@compiled
def _make_space(e, count, items, edges):
    """Make space for ``count`` items at the tail of edge ``e``; False when it needs more rows."""
    first, end = edges[e, FIRST], edges[e, END]
    if edges[e, TAIL] + count <= end:
        return True
    head, kept = edges[e, HEAD], edges[e, TAIL] - edges[e, HEAD]
    if head - first < (end - first) // 4 or first + kept + count > end:
        return False
    _to_the_front(e, items, edges)
    return True


@inlined
def put(e, arrival_us, published_us, born_us, items, edges):
    """Insert one item in order. Latency is short, so it belongs near the tail."""
    i, head = edges[e, TAIL], edges[e, HEAD]
    while i > head:
        before = items[i - 1, ARRIVAL]
        if before < arrival_us:
            break
        if before == arrival_us:
            before = items[i - 1, PUBLISHED]
            if before < published_us or (before == published_us and items[i - 1, BORN] <= born_us):
                break
        for column in range(3):
            items[i, column] = items[i - 1, column]
        i -= 1
    items[i, ARRIVAL], items[i, PUBLISHED], items[i, BORN] = (
        arrival_us,
        published_us,
        born_us,
    )
    edges[e, TAIL] += 1


@inlined
def emitted(number, out, per):
    """How many items leave an edge when the origin finishes its item ``number``.

    Item by item these add up to ``out`` per ``per``: the whole part of number * out / per
    grows by as many.
    """
    return out if per == 1 else (number * out % per + out) // per


@inlined
def make_space(node, number, out_first, out_edge, ratio, items, edges):
    """Make space for what item ``number`` emits. Returns the first edge without, or -1."""
    for k in range(out_first[node], out_first[node + 1]):
        e = out_edge[k]
        # As many as ever leave this edge at once: no need to divide here.
        most = (ratio[e, 0] - 1) // ratio[e, 1] + 1 if ratio[e, 0] > ratio[e, 1] else 1
        if edges[e, TAIL] + most > edges[e, END] and not _make_space(e, most, items, edges):
            return e
    return -1
