"""The arrays of the fluid kernel, and what their columns mean.

Items are counted in whole micro-items (``MICRO`` make an item), cumulatively: what waits is
what arrived less what completed, and what an edge carried is a whole share of what its origin
completed. So nothing is ever lost to rounding. A FIFO is a row of chunks, one per step with
arrivals; when there are many, neighbours are merged, which costs resolution, not items.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

MICRO = 1_000_000
CHUNKS, MOST_CHUNKS = 512, 384
"""Room for the chunks of a FIFO, and how many there may be before neighbours are merged."""
EPSILON = 1e-12

# Columns of QueueState.counts (micro-items, but SAMPLED counts rows).
ARRIVED, COMPLETED, SAMPLED = range(3)
# Columns of QueueState.chunk_items (micro-items, cumulative) and chunk_age (seconds).
FROM, TO = range(2)
START, END, BORN, VARIANCE = range(4)
# Columns of QueueState.inbound: squared variability of the arrivals, mean latency of messages.
CA2, LATENCY = range(2)
# Columns of Scratch.flow: age of what leaves a node in this step.
AGE, AGE_VARIANCE, CD2 = range(3)
# Columns of Meter.sinks: items, and the sums of their ages and squared ages.
ITEMS, AGES, SQUARES = range(3)
# Columns of Meter.pairs (per instance) and Meter.hosts.
CPU_S, BUSY_S = range(2)
# Columns of Meter.rows and Meter.values: one sampled item.
R_OPERATOR, R_INSTANCE, R_NUMBER = range(3)
R_DONE_S, R_WAIT_S, R_RANDOM_S, R_CHANCE, R_SERVICE_S, R_LATENCY_S, R_AGE_S = range(7)


class Graph(NamedTuple):
    """What never changes. Nodes are operators in flow order, then sources."""

    in_first: I64
    """(operators + 1): inbound edges of operator o are in_first[o] to in_first[o + 1] - 1."""
    origin: I64
    """(edges,): the node an edge comes from."""
    ratio: I64
    """(edges, 2): items out, per items in."""
    sink: I64
    """(operators,): 1 when nothing receives from it."""
    service_s: F64
    cores: F64
    """(operators,): what a busy instance wants."""
    rest_s: F64
    """(operators,): how long an item waits for an operator that is idle."""
    pass_s: F64
    """(operators,): how long an item is in an operator on no core."""
    step_s: float
    service_cv: float
    settle_s: float
    sample_every: int
    own_queues: bool = False
    """Items are dealt out to the instances on arrival, each of which has a queue of its own."""
    input_limit: int = 0
    """Micro-items that may wait in front of an operator before what feeds it waits; 0: no bound."""


class QueueState(NamedTuple):
    """What a snapshot keeps."""

    counts: I64
    sent: I64
    """(edges,): micro-items that went over an edge."""
    chunk_items: I64
    chunk_age: F64
    chunk_range: I64
    """(operators, 2): head and tail of the row of chunks."""
    inbound: F64


class Layout(NamedTuple):
    """Who serves where. A pair is an operator on a host; hosts are rows."""

    ready: I64
    """(operators,): instances that serve."""
    instance_first: I64
    instances: I64
    """Numbers of those of operator o: instance_first[o] to instance_first[o + 1] - 1."""
    pair_first: I64
    """(operators + 1): pairs of operator o."""
    pair_host: I64
    pair_count: I64
    host_first: I64
    """(hosts + 1): pairs of host h are host_pair[host_first[h] : host_first[h + 1]]."""
    host_pair: I64
    pair_operator: I64
    host_cores: F64
    """(hosts,): what is left for instances and background after the overhead."""
    host_overhead: F64
    host_weight: F64
    """(hosts,): cores that its instances want when all are busy."""
    latency_s: F64
    """(edges,): mean, given which share of the messages crosses hosts."""
    even: F64
    """(operators,): how busy instances are on average while the busiest works all the time."""


class Segment(NamedTuple):
    """What is known about the next steps."""

    first: int
    """Number of the first of them since the run began."""
    open_share: F64
    """(steps, operators): share of the step that an operator does not pause."""
    slower: F64
    """(steps,): how many times as long an item takes."""
    background: F64
    """(steps,): cores that other processes want on every host."""
    published: I64
    """(steps + 1, sources): micro-items published until the step begins (ends: one more)."""


class Meter(NamedTuple):
    """What is measured on the way, added up until somebody reads it."""

    pairs: F64
    """(pairs, 2), seconds of CPU and of being busy, per instance."""
    hosts: F64
    """(hosts, 2), core seconds used, and threads that ran or waited times seconds."""
    sinks: F64
    random_items: F64
    """(operators,): items that wait without a backlog: by chance, or they rest; last step."""
    sample: F64
    """(7,): the item that is written down next."""
    rows: I64
    values: F64
    """(width, 3) and (width, 7): sampled items, of which ``recorded`` are there."""
    recorded: I64


class Scratch(NamedTuple):
    """Room to work in; nothing in it outlives a step."""

    want: I64
    """(operators,): micro-items it would process in this step with a host of its own."""
    most: I64
    """(operators,): micro-items it can process with the CPU that it is granted."""
    carry: I64
    """(edges,): micro-items that it may have carried once the step is over, for want of room."""
    release: I64
    """(operators,): micro-items that what follows has room for."""
    busy: F64
    """(operators,): how busy that would keep each instance."""
    flow: F64
    """(nodes, 3)"""
    grant: F64
    """(pairs,): how busy each instance may be, at full speed."""
    extra: F64
    load: F64
    """(hosts,): cores wanted; ``spread`` and ``squares`` serve the variance of that."""
    spread: F64
    squares: F64
    highest: F64
    """(hosts,): how busy the busiest instance would be."""
    fair: F64
    speed: F64
    host_extra: F64
