"""The hot loop: amounts through queues, step by step. Arrays in, arrays out; no draws or I/O.

In every step each operator first says what it would process alone, then hosts share their
CPU, and then operators in flow order take in, process and pass on.
"""

from __future__ import annotations

import math

from include.testbeds.flow.arrays import (
    AGE,
    AGE_VARIANCE,
    AGES,
    ARRIVED,
    BORN,
    BUSY_S,
    CA2,
    CD2,
    CHUNKS,
    COMPLETED,
    CPU_S,
    END,
    EPSILON,
    FROM,
    ITEMS,
    LATENCY,
    MICRO,
    MOST_CHUNKS,
    R_AGE_S,
    R_CHANCE,
    R_DONE_S,
    R_INSTANCE,
    R_LATENCY_S,
    R_NUMBER,
    R_OPERATOR,
    R_RANDOM_S,
    R_SERVICE_S,
    R_WAIT_S,
    SAMPLED,
    SQUARES,
    START,
    TO,
    VARIANCE,
)
from include.testbeds.flow.sharing import share_cpu
from include.testbeds.virtual.jit import compiled

UNLIMITED = 2**63 - 1
REVISIONS = 3
"""How often the CPU of crowded hosts is shared anew within a step."""


@compiled
def _carried(k, e, ahead, graph, state, segment, scratch):
    """Micro-items that edge ``e`` has carried once step ``k`` is over.

    ``ahead`` counts what the origin is still going to process as processed.
    """
    operators = graph.in_first.size - 1
    node = graph.origin[e]
    if node >= operators:
        amount = segment.published[k + 1, node - operators]
    else:
        amount = state.counts[node, COMPLETED]
        if ahead:
            amount += min(scratch.want[node], scratch.most[node])
    items_out, items_in = graph.ratio[e, 0], graph.ratio[e, 1]
    # In two parts, because the product of a long run is beyond 64 bits.
    carried = amount // items_in * items_out + amount % items_in * items_out // items_in
    return min(carried, scratch.carry[e]) if graph.input_limit > 0 else carried


@compiled
def _find_room(graph, state, scratch):
    """Back-pressure: an operator takes in what its input has room for as the step begins.

    Edges to it have equal parts of that. Operators keep what does not fit to themselves, and
    what a source has published and nobody took in waits outside.
    """
    scratch.release[:] = UNLIMITED
    for o in range(graph.in_first.size - 1):
        first, end = graph.in_first[o], graph.in_first[o + 1]
        room = max(graph.input_limit - (state.counts[o, ARRIVED] - state.counts[o, COMPLETED]), 0)
        for e in range(first, end):
            scratch.carry[e] = state.sent[e] + room // (end - first)
            node = graph.origin[e]
            if node < graph.in_first.size - 1:
                fits = scratch.carry[e] * graph.ratio[e, 1] // graph.ratio[e, 0]
                fits = max(fits - state.counts[node, COMPLETED], 0)
                scratch.release[node] = min(scratch.release[node], fits)


@compiled
def _want(k, graph, state, layout, segment, scratch):
    """What operators would process if they were alone. Returns how many rows that may make."""
    rows = 0
    for o in range(graph.in_first.size - 1):
        available = state.counts[o, ARRIVED] - state.counts[o, COMPLETED]
        for e in range(graph.in_first[o], graph.in_first[o + 1]):
            carried = _carried(k, e, True, graph, state, segment, scratch)
            available += carried - state.sent[e]
        if graph.input_limit > 0:
            available = min(available, scratch.release[o])
        most = layout.ready[o] * segment.open_share[k, o] * layout.even[o]
        service_s = graph.service_s[o] * segment.slower[k]
        work = available * service_s / MICRO / graph.step_s
        scratch.busy[o] = 0.0 if layout.ready[o] == 0 else min(work, most) / layout.ready[o]
        if work > most:
            available = min(available, int(most * graph.step_s / service_s * MICRO))
        scratch.want[o] = available
        rows += available // (MICRO * graph.sample_every) + 2
    return rows


@compiled
def _limited(k, graph, state, layout, segment, scratch):
    """What operators on crowded hosts can process at most; whether there are any.

    What is behind them wants the less CPU for it, and the more is left to them.
    """
    found = False
    for o in range(layout.ready.size):
        granted = 0.0
        for p in range(layout.pair_first[o], layout.pair_first[o + 1]):
            granted += layout.pair_count[p] * scratch.grant[p]
        scratch.most[o] = UNLIMITED
        if granted < layout.ready[o] * scratch.busy[o] - EPSILON:
            service_s = graph.service_s[o] * segment.slower[k]
            scratch.most[o] = int(granted * graph.step_s / service_s * MICRO)
            found = True
    return found


@compiled
def _make_room(o, state):
    """Move the chunks of a row to its front, and merge neighbours when there are too many."""
    items, age = state.chunk_items, state.chunk_age
    head, kept = state.chunk_range[o, 0], state.chunk_range[o, 1] - state.chunk_range[o, 0]
    for i in range(kept):
        for column in range(2):
            items[o, i, column] = items[o, head + i, column]
        for column in range(4):
            age[o, i, column] = age[o, head + i, column]
    if kept >= MOST_CHUNKS:
        for i in range(kept // 2):
            a, b = 2 * i, 2 * i + 1
            first, second = items[o, a, TO] - items[o, a, FROM], items[o, b, TO] - items[o, b, FROM]
            share = first / (first + second)
            gap = age[o, a, BORN] - age[o, b, BORN]
            variance = share * age[o, a, VARIANCE] + (1 - share) * age[o, b, VARIANCE]
            age[o, i, BORN] = age[o, b, BORN] + share * gap
            age[o, i, VARIANCE] = variance + share * (1 - share) * gap * gap
            age[o, i, START], age[o, i, END] = age[o, a, START], age[o, b, END]
            items[o, i, FROM], items[o, i, TO] = items[o, a, FROM], items[o, b, TO]
        if kept % 2:
            for column in range(2):
                items[o, kept // 2, column] = items[o, kept - 1, column]
            for column in range(4):
                age[o, kept // 2, column] = age[o, kept - 1, column]
        kept = (kept + 1) // 2
    state.chunk_range[o, 0], state.chunk_range[o, 1] = 0, kept


@compiled
def _take_in(k, o, graph, state, layout, segment, scratch):
    """Queue what the parents of ``o`` let go in this step, as one chunk."""
    start_s = (segment.first + k) * graph.step_s
    total, ages, squares, variability, latency = 0, 0.0, 0.0, 0.0, 0.0
    for e in range(graph.in_first[o], graph.in_first[o + 1]):
        carried = _carried(k, e, False, graph, state, segment, scratch)
        amount, state.sent[e] = carried - state.sent[e], carried
        if amount == 0:
            continue
        node = graph.origin[e]
        mean = scratch.flow[node, AGE] + layout.latency_s[e]
        variance = scratch.flow[node, AGE_VARIANCE] + layout.latency_s[e] ** 2
        total += amount
        ages += amount * mean
        squares += amount * (variance + mean * mean)
        variability += amount * scratch.flow[node, CD2] * graph.ratio[e, 0] / graph.ratio[e, 1]
        latency += amount * layout.latency_s[e]
    if total == 0:
        return
    state.inbound[o, CA2], state.inbound[o, LATENCY] = variability / total, latency / total
    head, tail = state.chunk_range[o, 0], state.chunk_range[o, 1]
    # The first depends on where the row stands, but only the second changes what is in it.
    if tail == CHUNKS or tail - head >= MOST_CHUNKS:
        _make_room(o, state)
    i, arrived, mean = state.chunk_range[o, 1], state.counts[o, ARRIVED], ages / total
    state.chunk_items[o, i, FROM], state.chunk_items[o, i, TO] = arrived, arrived + total
    state.chunk_age[o, i, START] = start_s
    state.chunk_age[o, i, END] = start_s + graph.step_s
    state.chunk_age[o, i, BORN] = start_s + graph.step_s / 2 - mean
    state.chunk_age[o, i, VARIANCE] = max(squares / total - mean * mean, 0.0)
    state.chunk_range[o, 1] = i + 1
    state.counts[o, ARRIVED] = arrived + total


@compiled
def _use_cpu(o, used, granted, graph, layout, meter, scratch):
    """Book the CPU of ``used`` instances that work. Returns how many it keeps busy."""
    step_s, busy = graph.step_s, 0.0
    share = min(1.0, used / granted) if granted > 0 else 0.0
    for p in range(layout.pair_first[o], layout.pair_first[o + 1]):
        h, count = layout.pair_host[p], layout.pair_count[p]
        cpu = scratch.grant[p] * share
        running = min(1.0, cpu / scratch.speed[h])
        busy += count * running
        meter.pairs[p, CPU_S] += cpu * step_s
        meter.pairs[p, BUSY_S] += running * step_s
        meter.hosts[h, CPU_S] += count * cpu * graph.cores[o] * step_s
        meter.hosts[h, BUSY_S] += count * running * step_s
    return busy


@compiled
def _random_wait(o, full, taken_s, closed, n, graph, state):
    """Mean wait in seconds that a backlog does not explain, and the chance to wait at all.

    ``full`` is how busy the n instances are, ``closed`` the share of the step they pause.
    """
    ca2 = state.inbound[o, CA2]
    if graph.own_queues:  # n queues with one server each, and a random share of the items each
        ca2, n = 1 + (ca2 - 1) / n, 1
    variability = ca2 + graph.service_cv**2
    chance = full ** (math.sqrt(2 * (n + 1)) - 1)
    random_s = variability / 2 * chance / (n * (1 - full)) * taken_s
    # The mean of a Brownian motion, reflected at 0, that began there: what can build up.
    most_s = math.sqrt(variability * taken_s * graph.settle_s * 2 / math.pi / n)
    return min(random_s, most_s) + closed**2 / 2 * graph.step_s, max(chance, closed, 1e-6)


@compiled
def _serve(k, o, graph, state, layout, segment, meter, scratch):
    """Process what operator ``o`` can in this step, and pass on how old it got."""
    granted, n = 0.0, layout.ready[o]
    for p in range(layout.pair_first[o], layout.pair_first[o + 1]):
        granted += layout.pair_count[p] * scratch.grant[p]
    service_s = graph.service_s[o] * segment.slower[k]
    amount = min(state.counts[o, ARRIVED] - state.counts[o, COMPLETED], scratch.want[o])
    if granted < n * scratch.busy[o] - EPSILON:
        amount = min(amount, int(granted * graph.step_s / service_s * MICRO))
    meter.random_items[o] = 0.0
    if amount == 0:
        return
    used = amount * service_s / MICRO / graph.step_s
    busy = _use_cpu(o, used, granted, graph, layout, meter, scratch)
    taken_s = service_s * max(1.0, busy / used)
    # The busiest instance is the one that others wait for.
    full, closed = min(busy / n / layout.even[o], 1 - 1e-6), 1 - segment.open_share[k, o]
    random_s, chance = _random_wait(o, full, taken_s, closed, n, graph, state)
    meter.sample[R_RANDOM_S], meter.sample[R_CHANCE] = random_s, chance
    meter.sample[R_SERVICE_S] = taken_s
    wait_s, age_s, squares = _let_go(k, o, amount, graph, state, layout, segment, meter)
    extra_s, cs2 = max(random_s - wait_s, 0.0), graph.service_cv**2
    meter.random_items[o] = (extra_s + graph.rest_s[o]) * amount / MICRO / graph.step_s
    variance = max(squares - age_s**2, 0.0) + extra_s**2 * (2 / chance - 1) + cs2 * taken_s**2
    age_s += extra_s + taken_s + (graph.rest_s[o] + graph.pass_s[o])
    scratch.flow[o, AGE], scratch.flow[o, AGE_VARIANCE] = age_s, variance
    # Marshall's formula. QNA's for many servers overrates what even sources cause downstream.
    scratch.flow[o, CD2] = full**2 * cs2 + (1 - full**2) * state.inbound[o, CA2]
    if graph.sink[o]:
        meter.sinks[o, ITEMS] += amount / MICRO
        meter.sinks[o, AGES] += amount / MICRO * age_s
        meter.sinks[o, SQUARES] += amount / MICRO * (variance + age_s**2)


@compiled
def _let_go(k, o, amount, graph, state, layout, segment, meter):
    """Take an amount from the head of the queue, and write down the sampled items among it.

    Returns their mean wait, mean age and mean squared age (variances within chunks included)
    when they leave the queue, in seconds.
    """
    items, age, counts = state.chunk_items, state.chunk_age, state.counts
    start_s, before = (segment.first + k) * graph.step_s, counts[o, COMPLETED]
    middle_s, done, end = start_s + graph.step_s / 2, before, before + amount
    waits, ages, squares = 0.0, 0.0, 0.0
    while done < end:
        i = state.chunk_range[o, 0]
        until = min(end, items[o, i, TO])
        part, old_s = (until - done) / amount, middle_s - age[o, i, BORN]
        waits += part * max(middle_s - (age[o, i, START] + age[o, i, END]) / 2, 0.0)
        ages += part * old_s
        squares += part * (age[o, i, VARIANCE] + old_s**2)
        sample = (counts[o, SAMPLED] * graph.sample_every + 1) * MICRO
        while sample <= until:
            where = (sample - items[o, i, FROM]) / (items[o, i, TO] - items[o, i, FROM])
            arrived_s = age[o, i, START] + where * (age[o, i, END] - age[o, i, START])
            meter.sample[R_DONE_S] = start_s + (sample - before) / amount * graph.step_s
            meter.sample[R_WAIT_S] = max(meter.sample[R_DONE_S] - arrived_s, 0.0)
            meter.sample[R_LATENCY_S] = state.inbound[o, LATENCY]
            meter.sample[R_AGE_S] = old_s
            _write_down(o, counts[o, SAMPLED], layout, meter)
            counts[o, SAMPLED] += 1
            sample += graph.sample_every * MICRO
        done = until
        if until == items[o, i, TO]:
            state.chunk_range[o, 0] = i + 1
    counts[o, COMPLETED] = end
    return waits, ages, squares


@compiled
def _write_down(o, number, layout, meter):
    """Record the sampled item in ``meter.sample``. Instances take turns."""
    r = meter.recorded[0]
    meter.rows[r, R_OPERATOR], meter.rows[r, R_NUMBER] = o, number
    turn = layout.instance_first[o] + number % layout.ready[o]
    meter.rows[r, R_INSTANCE] = layout.instances[turn]
    for column in range(meter.sample.size):
        meter.values[r, column] = meter.sample[column]
    meter.recorded[0] = r + 1


@compiled
def advance(graph, state, layout, segment, meter, scratch):
    """Do the steps of a segment. Returns how many were done: fewer when rows must grow first."""
    for k in range(segment.background.size):
        scratch.most[:] = UNLIMITED
        if graph.input_limit > 0:
            _find_room(graph, state, scratch)
        rows = _want(k, graph, state, layout, segment, scratch)
        if meter.recorded[0] + rows > meter.rows.shape[0]:
            return k
        share_cpu(k, graph, layout, segment, scratch)
        for _ in range(REVISIONS):
            if not _limited(k, graph, state, layout, segment, scratch):
                break
            _want(k, graph, state, layout, segment, scratch)
            share_cpu(k, graph, layout, segment, scratch)
        for o in range(graph.in_first.size - 1):
            _take_in(k, o, graph, state, layout, segment, scratch)
            _serve(k, o, graph, state, layout, segment, meter, scratch)
        for h in range(layout.host_cores.size):
            given = segment.background[k] * scratch.fair[h]
            meter.hosts[h, CPU_S] += (given + layout.host_overhead[h]) * graph.step_s
            running = segment.background[k] + layout.host_overhead[h]
            meter.hosts[h, BUSY_S] += running * graph.step_s
    return segment.background.size
