"""Items on the edges, for the kernel: each edge a row of an array, filled in order of arrival."""

from __future__ import annotations

from include.testbeds.virtual.jit import compiled

# Columns of NetworkState.items: one item that waits or travels, times in us.
ARRIVAL, PUBLISHED, BORN = 0, 1, 2
# Columns of NetworkState.edges.
HEAD, TAIL = 0, 1


@compiled
def _make_space(e, count, items, edges):
    """Make space for ``count`` items at the tail of edge ``e``; False when rows must grow."""
    width = items.shape[1]
    if edges[e, TAIL] + count <= width:
        return True
    head, kept = edges[e, HEAD], edges[e, TAIL] - edges[e, HEAD]
    if head < width // 4 or kept + count > width:
        return False
    for i in range(kept):
        for column in range(3):
            items[e, i, column] = items[e, head + i, column]
    edges[e, HEAD], edges[e, TAIL] = 0, kept
    return True


@compiled
def put(e, arrival_us, published_us, born_us, items, edges):
    """Insert one item in order. Latency is short, so it belongs near the tail."""
    i, head = edges[e, TAIL], edges[e, HEAD]
    while i > head:
        before = items[e, i - 1, ARRIVAL]
        if before < arrival_us:
            break
        if before == arrival_us:
            before = items[e, i - 1, PUBLISHED]
            if before < published_us or (
                before == published_us and items[e, i - 1, BORN] <= born_us
            ):
                break
        for column in range(3):
            items[e, i, column] = items[e, i - 1, column]
        i -= 1
    items[e, i, ARRIVAL], items[e, i, PUBLISHED], items[e, i, BORN] = (
        arrival_us,
        published_us,
        born_us,
    )
    edges[e, TAIL] += 1


@compiled
def emitted(number, out, per):
    """How many items leave an edge when the origin finishes its item ``number``.

    Item by item these add up to ``out`` per ``per``: the whole part of number * out / per
    grows by as many.
    """
    return out if per == 1 else (number * out % per + out) // per


@compiled
def make_space(node, number, out_first, out_edge, ratio, items, edges):
    """Make space for what item ``number`` emits. Returns the first edge without, or -1."""
    for k in range(out_first[node], out_first[node + 1]):
        e = out_edge[k]
        # As many as ever leave this edge at once: no need to divide here.
        most = (ratio[e, 0] - 1) // ratio[e, 1] + 1 if ratio[e, 0] > ratio[e, 1] else 1
        if edges[e, TAIL] + most > items.shape[1] and not _make_space(e, most, items, edges):
            return e
    return -1
