"""The queueing network of a run: refills, grows, cuts and stores the kernel's arrays."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from include.model.topology import Topology
from include.testbeds.simulated import bounded, kernel, rings
from include.testbeds.simulated.kernel import BLOCK, NEVER
from include.testbeds.simulated.publications import Publications, RandomPublications
from include.testbeds.simulated.reading import read
from include.testbeds.simulated.variates import drawn_latency_us, drawn_service_us
from include.testbeds.virtual.calibration import VirtualCalibration
from include.testbeds.virtual.draws import Draws
from include.testbeds.virtual.key_groups import loads_of_instances, sizes_of_keys

I64 = NDArray[np.int64]
TURN = 1_000_000
"""Of an instance with an even share of the items; see ``NetworkState.turn``."""
LEAST_SHARE = 1e-6
LATER_US = 1 << 61
"""When an instance is ready that nobody has let in yet: it has no turn, and nobody sends to it."""


@dataclass(slots=True)
class QueueingNetwork:
    """Operators are rows in flow order. All times are whole microseconds since the run began."""

    topology: Topology
    calibration: VirtualCalibration
    draws: Draws
    names: tuple[str, ...]
    publications: Sequence[Publications | RandomPublications]
    """Of every source."""
    end_us: int
    state: kernel.NetworkState
    left_us: I64 = field(init=False)
    """(operators,): how long instances that were taken away since the last reading had worked
    after it."""
    _stalls: Iterator[tuple[int, int, int]] = field(init=False)
    _next_stall: tuple[int, int, int] = field(init=False)
    _stalls_begun: int = 0
    _rows_taken: int = field(init=False)
    """Of the items: those that edges have, or had."""

    def __post_init__(self) -> None:
        self._rows_taken = len(self.state.items)
        self.left_us = np.zeros(len(self.names), dtype=np.int64)
        self._skip_stalls(0)

    @property
    def bounded(self) -> bool:
        return bool(self.calibration.buffer_items)

    def advance(self, until_us: int) -> None:
        """Move to ``until_us``, refilling draws and growing arrays as the kernel asks."""
        while self._next_stall[0] < until_us:
            self._begin_stall()
        resolution_us = max(1, round(self.calibration.timestamp_resolution_s * 1e6))
        sample_every = self.calibration.sample_every_items
        transfers = self.calibration.transfer_ms > 0
        advance = bounded.advance if self.bounded else kernel.advance
        while True:
            code = advance(self.state, until_us, sample_every, resolution_us, transfers)
            if code == kernel.DONE:
                return
            kind, index = divmod(code, kernel.KIND)
            if kind == kernel.DRAWS_DRY:
                self._refill(index)
            elif kind == kernel.EDGE_FULL:
                self._grow(index)
            elif kind == kernel.PLACES_FULL:
                self._make_places(2 * self.state.held.shape[2])
            else:
                self._put(records=widened(self.state.records, 0, 2 * len(self.state.records)))

    def read(self, now_us: int, period_us: int) -> tuple[I64, I64, NDArray[np.float64]]:
        """What a monitor can see now: see :func:`reading.read` for the three arrays.

        What paused operators before the period is forgotten.
        """
        self._forget_stalls(now_us - period_us)
        operators = len(self.names)
        in_service, held_of = np.zeros((2, len(self.state.edges)), dtype=np.int64)
        per_operator = np.zeros((operators, 7), dtype=np.int64)
        servers = int(self.state.nodes[:operators, kernel.SERVERS].sum())
        per_server = np.zeros((servers, 4), dtype=np.int64)
        busy_share = np.zeros(servers)
        read(
            self.state, now_us, period_us, in_service, held_of, per_operator, per_server, busy_share
        )
        return per_operator, per_server, busy_share

    def take_records(self) -> I64:
        """Sampled items since the last call, (n, RECORD_COLUMNS), by operator, time, number."""
        records = self.state.records[: self.state.recorded[0]]
        self.state.recorded[0] = 0
        # One key sorts faster than three: 7 bits of operator or more, 41 of time, then the number.
        number = records[:, kernel.R_NUMBER] // self.calibration.sample_every_items
        number_bits = 22 - max(7, (len(self.names) - 1).bit_length())
        key = records[:, kernel.R_OPERATOR] << (number_bits + 41)
        key |= records[:, kernel.R_DONE_US] << number_bits
        key |= number & ((1 << number_bits) - 1)
        return records[np.argsort(key, kind="stable")]

    def take_left_us(self) -> I64:
        """``left_us``, which begins anew."""
        left_us, self.left_us = self.left_us, np.zeros_like(self.left_us)
        return left_us

    def slots_in_use(self) -> NDArray[np.bool_]:
        """Which slots hold a server. Shape (operators, slots)."""
        count = self.state.nodes[: len(self.names), kernel.SERVERS]
        return np.arange(self.state.servers.shape[1]) < count[:, None]

    def slot(self, operator: int, instance: int) -> int:
        row = self.state.servers[operator, : self.state.nodes[operator, kernel.SERVERS]]
        return int(np.flatnonzero(row[:, kernel.INSTANCE] == instance)[0])

    def add_server(self, operator: int, instance: int, host: int, ready_us: int) -> None:
        """Open a server that takes items from ``ready_us`` on."""
        slot = int(self.state.nodes[operator, kernel.SERVERS])
        if slot == self.state.servers.shape[1]:
            self._widen_held(2 * slot, self.state.held.shape[2])
            per_slot = ("servers", "free_us", "holding", "turn", "restored")
            self._put(**{n: widened(getattr(self.state, n), 1, 2 * slot) for n in per_slot})
        self.state.holding[operator, slot] = self.state.restored[operator, slot] = 0
        server = self.state.servers[operator, slot]
        server[:] = 0
        server[kernel.INSTANCE], server[kernel.HOST] = instance, host
        server[kernel.OPEN], server[kernel.SPEED_PERMILLE] = 1, 1000
        server[kernel.READY_US] = self.state.free_us[operator, slot] = ready_us
        self.state.nodes[operator, kernel.SERVERS] += 1
        self._take_turns(operator)

    def begin(self) -> None:
        """Let all servers take items from the start."""
        self.state.servers[:, :, kernel.READY_US] = self.state.free_us[:] = 0
        for operator in range(len(self.names)):
            self._take_turns(operator)

    def let_in(self, operator: int, instance: int, now_us: int) -> None:
        """Let a server that was opened with ``LATER_US`` take items."""
        slot = self.slot(operator, instance)
        self.state.servers[operator, slot, kernel.READY_US] = now_us
        if self.state.servers[operator, slot, kernel.OPEN]:
            self.state.free_us[operator, slot] = now_us
            self._take_turns(operator)

    def close_server(self, operator: int, instance: int, now_us: int) -> None:
        """Let a server finish its item and take no other; what it holds goes back."""
        slot = self.slot(operator, instance)
        self._take_back(operator, slot, now_us)
        self.state.servers[operator, slot, kernel.OPEN] = 0
        self.state.free_us[operator, slot] = NEVER
        self._take_turns(operator)

    def remove_server(self, operator: int, instance: int) -> None:
        """Take an idle server away; the order of the others stays."""
        slot = self.slot(operator, instance)
        state = self.state
        server = state.servers[operator, slot]
        self.left_us[operator] += server[kernel.BUSY_US] - server[kernel.BUSY_SEEN_US]
        used = int(state.nodes[operator, kernel.SERVERS])
        held = state.held[:, :, : state.holding[operator, :used, kernel.HELD].max()]
        for array in (state.servers, state.free_us, held, state.holding, state.restored):
            array[operator, slot : used - 1] = array[operator, slot + 1 : used]
        state.holding[operator, used - 1] = 0
        self.state.nodes[operator, kernel.SERVERS] -= 1
        self._take_turns(operator)

    def crash_server(self, operator: int, instance: int, now_us: int) -> bool:
        """Lose a server now. Its items go back to their places; True if it was at one."""
        slot = self.slot(operator, instance)
        self._take_back(operator, slot, now_us)
        server = self.state.servers[operator, slot].copy()
        lost = bool(server[kernel.BUSY])
        if lost:
            columns = [kernel.ITEM_ARRIVAL, kernel.ITEM_PUBLISHED, kernel.ITEM_BORN]
            self._put_back(int(server[kernel.EDGE]), server[columns])
            work = int(server[kernel.WORK])
            node = self.state.nodes[work]
            if node[kernel.ORPHANS] == self.state.orphans.shape[1]:
                self._put(orphans=widened(self.state.orphans, 1, 2 * self.state.orphans.shape[1]))
            self.state.orphans[work, node[kernel.ORPHANS]] = server[kernel.NUMBER]
            node[kernel.ORPHANS] += 1
            self.state.nodes[operator, kernel.RESUME_US] = now_us
            rest_us = max(int(server[kernel.DONE_US]) - now_us, 0)
            self.state.servers[operator, slot, kernel.BUSY_US] -= rest_us
        self.remove_server(operator, instance)
        return lost

    @property
    def restoring(self) -> bool:
        """Whether an instance has more of what it took over than a buffer of each sender holds.

        Flink calls a task running, and lets a checkpoint begin, once what was in buffers of its
        own is done. What was in those of its senders comes after that.
        """
        if not self.bounded:
            return False
        most = (self.state.restored * self.slots_in_use()).max(axis=1, initial=0)
        return bool((most > self._items_of_a_round()).any())

    def checkpoint(self, now_us: int) -> tuple[I64, int]:
        """How long every operator goes on after a checkpoint began, (operators,), and how long all
        of it takes, us.

        An instance takes part between two items, once it has done what it took over and has sent
        what it did. One that waits for room gets it when its receiver has gone through a buffer of
        each of its senders.
        """
        state, operators = self.state, len(self.names)
        if not self.bounded:
            return np.zeros(operators, dtype=np.int64), 0
        used, servers, restored = self.slots_in_use(), state.servers, state.restored
        service_us = np.array([[self.calibration.service_ms[name] * 1000] for name in self.names])
        in_service = used & (servers[:, :, kernel.BUSY] == 1)
        items_end_us = np.where(in_service, servers[:, :, kernel.DONE_US] - now_us, 0)
        left_us = np.where(used & (restored > 0), items_end_us + restored * service_us, 0)
        goes_on_us = np.rint(left_us.max(axis=1, initial=0)).astype(np.int64)
        round_us = np.rint(self._items_of_a_round() * service_us[:, 0]).astype(np.int64)
        sent = state.out_edge[: state.out_first[operators]]
        head, tail = state.edges[sent, rings.HEAD], state.edges[sent, rings.TAIL]
        waits = head < tail
        waits[waits] = state.items[head[waits], rings.ARRIVAL] < now_us
        full = np.searchsorted(state.in_first, sent[waits], side="right") - 1
        room_us = (goes_on_us + round_us)[full]
        ends_us = np.concatenate([items_end_us.ravel(), goes_on_us, room_us])
        return goes_on_us, int(ends_us.max(initial=0))

    def start_again(
        self,
        joining: Collection[int],
        leaving: Collection[int],
        now_us: int,
        ready_us: int,
        goes_on_us: I64,
    ) -> None:
        """Start the job with other instances. From when an operator does not go on any more until
        ``ready_us`` nothing starts.

        What is in the buffers of instance i of an operator then is in those of instance i modulo
        the number of its instances, as Flink restores them, whether there is room for it or not.
        """
        for operator in range(len(self.names)):
            servers = self.state.servers[operator, : self.state.nodes[operator, kernel.SERVERS]]
            before = self._taking(operator)
            for slot, instance in enumerate(servers[:, kernel.INSTANCE].tolist()):
                if instance in leaving:
                    servers[slot, kernel.OPEN] = 0
                    self.state.free_us[operator, slot] = NEVER
                elif instance in joining:
                    servers[slot, kernel.READY_US] = ready_us
                    self.state.free_us[operator, slot] = ready_us
            self._restore(operator, before, self._taking(operator), now_us)
            self.pause(operator, now_us + int(goes_on_us[operator]), ready_us)
            self._take_turns(operator)

    def _taking(self, operator: int) -> list[int]:
        """Slots of the instances that take items, or will once the job is up."""
        servers = self.state.servers[operator, : self.state.nodes[operator, kernel.SERVERS]]
        takes = (servers[:, kernel.OPEN] == 1) & (servers[:, kernel.READY_US] < LATER_US)
        return [*np.flatnonzero(takes).tolist()]

    def _restore(self, operator: int, before: list[int], after: list[int], now_us: int) -> None:
        self.state.restored[operator, before] = 0
        if not self.bounded or not after:
            for slot in before:
                self._take_back(operator, slot, now_us)
            return
        held, count = self.state.held[operator], self.state.holding[operator, :, kernel.HELD]
        rows: dict[int, list[I64]] = {slot: [] for slot in after}
        for i, slot in enumerate(before):
            rows[after[i % len(after)]] += [row.copy() for row in held[slot, : count[slot]]]
            count[slot] = 0
        self._make_places(max(map(len, rows.values())))
        held = self.state.held[operator]
        for slot, own in rows.items():
            own.sort(key=lambda row: int(row[kernel.H_DEALT_US]))
            for k, row in enumerate(own):
                held[slot, k] = row
            count[slot] = self.state.restored[operator, slot] = len(own)

    def _take_turns(self, operator: int) -> None:
        """Let the instances of an operator begin anew to take items in turn, by their shares."""
        if not self.bounded:
            return
        self._keep_rooms()
        self._keep_shares(operator)
        self.state.holding[operator, :, kernel.LAST_DEAL] = self.state.turn[operator] // 2

    def _connections(self) -> I64:
        """How many instances and sources send to an instance of every operator; at least one."""
        senders = {name: len(self._taking(o)) for o, name in enumerate(self.names)}
        counts = dict.fromkeys(self.names, 0)
        for edge in self.topology.edges:
            counts[edge.target] += senders.get(edge.origin, 1)
        return np.array([max(1, counts[name]) for name in self.names], dtype=np.int64)

    def _items_of_a_round(self) -> I64:
        """Items in a buffer of every sender, by operator."""
        buffer_items = [self.calibration.buffer_items[name] for name in self.names]
        return np.rint(buffer_items * self._connections()).astype(np.int64)

    def _keep_rooms(self) -> None:
        """Room in front of an instance, as the buffers of the testbed ``flink`` are.

        A sender has one for each of its receivers and one that they share, a receiver the same; a
        connection takes two of its sender's at most.
        """
        for o, (name, senders) in enumerate(zip(self.names, self._connections(), strict=True)):
            receivers = max(1, len(self._taking(o)))
            buffers = senders * (1 + 1 / receivers) + senders + 1
            self.state.room[o] = max(1, round(self.calibration.buffer_items[name] * buffers))

    def _make_places(self, most: int) -> None:
        """So that a server can hold so many items."""
        if most > self.state.held.shape[2]:
            self._widen_held(self.state.held.shape[1], most)

    def _widen_held(self, slots: int, places: int) -> None:
        """Copy what is held and no more: a place that nobody has used takes no memory."""
        held, count = self.state.held, self.state.holding[:, :, kernel.HELD]
        wide = np.zeros((len(held), slots, places, kernel.HELD_COLUMNS), dtype=np.int64)
        for operator, used in enumerate(self.state.nodes[: len(held), kernel.SERVERS].tolist()):
            most = int(count[operator, :used].max(initial=0))
            wide[operator, :used, :most] = held[operator, :used, :most]
        self._put(held=wide)

    def _keep_shares(self, operator: int) -> None:
        taking, keyed = self._taking(operator), self.topology.operator[self.names[operator]].keyed
        self.state.turn[operator] = TURN
        if keyed and taking:
            shares = loads_of_instances(sizes_of_keys(keyed), len(taking))
            turns = np.rint(TURN / np.maximum(shares, LEAST_SHARE)).astype(np.int64)
            self.state.turn[operator, taking] = turns

    def _take_back(self, operator: int, slot: int, now_us: int) -> None:
        """Put what a server holds back to its place in the queue, for others from now on."""
        held = self.state.held[operator, slot, : self.state.holding[operator, slot, kernel.HELD]]
        for row in held.copy():
            if self.bounded:  # what a source sent at once looks as if it had not been sent
                row[kernel.H_PUBLISHED] = max(row[kernel.H_PUBLISHED], row[kernel.H_BORN] + 1)
            self._put_back(int(row[kernel.H_EDGE]), row[: kernel.H_EDGE])
        if len(held):
            self.state.nodes[operator, kernel.RESUME_US] = now_us
            self.state.holding[operator, slot, kernel.HELD] = 0

    def pause(self, operator: int, from_us: int, to_us: int) -> None:
        """Let no item of the operator start from the one time to the other; pauses may overlap."""
        self._put_stalls(operator, [*self._known_stalls(operator), (from_us, to_us)])

    def call_off(self, operator: int, from_us: int, to_us: int) -> None:
        """Take back a pause."""
        stalls = self._known_stalls(operator)
        stalls.remove((from_us, to_us))
        self._put_stalls(operator, stalls)

    def _known_stalls(self, operator: int) -> list[tuple[int, int]]:
        rows = self.state.stalls_us[operator].tolist()
        return [(from_us, to_us) for from_us, to_us in rows if from_us != NEVER]

    def _put_stalls(self, operator: int, stalls: list[tuple[int, int]]) -> None:
        stalls_us = self.state.stalls_us
        if len(stalls) > stalls_us.shape[1]:
            wide = np.full((stalls_us.shape[0], 2 * len(stalls), 2), NEVER, dtype=np.int64)
            wide[:, : stalls_us.shape[1]] = stalls_us
            self._put(stalls_us=wide)
        self.state.stalls_us[operator] = NEVER
        if stalls:
            self.state.stalls_us[operator, : len(stalls)] = sorted(stalls)

    def _stalls_to_come(self) -> Iterator[tuple[int, int, int]]:
        """(from, operator, to) of every stall by chance, in order."""
        rate, length_s = self.calibration.stalls_per_hour, self.calibration.stall_s

        def stalls_of(operator: int) -> Iterator[tuple[int, int, int]]:
            name = self.names[operator]
            for from_us, to_us in self.draws.periods("stall", name, rate, length_s, self.end_us):
                yield from_us, operator, to_us

        return heapq.merge(*map(stalls_of, range(len(self.names))))

    def _skip_stalls(self, begun: int) -> None:
        self._stalls_begun = begun
        self._stalls = islice(self._stalls_to_come(), begun, None)
        self._next_stall = next(self._stalls, (NEVER, 0, NEVER))

    def _begin_stall(self) -> None:
        from_us, operator, to_us = self._next_stall
        self.pause(operator, from_us, to_us)
        self._stalls_begun += 1
        self._next_stall = next(self._stalls, (NEVER, 0, NEVER))

    def _forget_stalls(self, ended_us: int) -> None:
        """Drop what has ended by then: nothing starts before it, nor does a monitor ask for it.

        Not what a later one follows without a gap: items may wait through both.
        """
        for operator in np.flatnonzero(self.state.stalls_us[:, 0, 1] <= ended_us).tolist():
            stalls = self._known_stalls(operator)
            kept, reached_us = 0, 0
            for i, (from_us, to_us) in enumerate([*stalls, (NEVER, NEVER)]):
                if reached_us <= ended_us and reached_us < from_us:
                    kept = i
                reached_us = max(reached_us, to_us)
            self._put_stalls(operator, stalls[kept:])

    def paused_share(self, now_us: int, period_us: int) -> NDArray[np.float64]:
        """Share of the last period in which nothing of an operator could start. (operators,)"""
        shares = np.zeros(len(self.names))
        begun_us = now_us - period_us
        stalls_us = self.state.stalls_us
        recent = (stalls_us[:, :, 0] < now_us) & (stalls_us[:, :, 1] > begun_us)
        for operator in np.flatnonzero(recent.any(axis=1)).tolist():
            until_us, paused_us = begun_us, 0
            for from_us, to_us in stalls_us[operator, recent[operator]].tolist():
                from_us, to_us = max(from_us, until_us), min(to_us, now_us)
                paused_us += max(to_us - from_us, 0)
                until_us = max(until_us, to_us)
            shares[operator] = paused_us / period_us
        return shares

    def _put_back(self, edge: int, item: I64) -> None:
        head, tail, first, end = self.state.edges[edge].tolist()
        kept = np.vstack([self.state.items[head:tail], item])
        if len(kept) > end - first:
            self._grow(edge)
            first = int(self.state.edges[edge, rings.FIRST])
        order = np.lexsort((kept[:, rings.BORN], kept[:, rings.PUBLISHED], kept[:, 0]))
        self.state.items[first : first + len(kept)] = kept[order]
        self.state.edges[edge, : rings.FIRST] = first, first + len(kept)

    def _grow(self, edge: int) -> None:
        """Move the items of an edge behind all others, where it gets twice as many rows.

        What it leaves is not used again: in all that is less than what it has at the end.
        """
        head, tail, first, end = self.state.edges[edge].tolist()
        begin, width = self._rows_taken, 2 * (end - first)
        self._rows_taken += width
        if self._rows_taken > len(self.state.items):
            self._put(items=widened(self.state.items, 0, 2 * self._rows_taken))
        self.state.items[begin : begin + tail - head] = self.state.items[head:tail]
        self.state.edges[edge] = begin, begin + tail - head, begin, begin + width

    def arrays(self) -> dict[str, np.ndarray]:
        """What cannot be computed again from the spec: items, servers and counters."""
        state = self.state
        slots = max(1, int(state.nodes[:, kernel.SERVERS].max()))
        rows = [state.items[head:tail] for head, tail, *_ in state.edges.tolist()]
        stored = {
            "items": np.concatenate(rows),
            "items_per_edge": np.array([len(row) for row in rows], dtype=np.int64),
            "servers": state.servers[:, :slots],
            "free_us": state.free_us[:, :slots],
            "nodes": state.nodes,
            "orphans": state.orphans,
            "stalls_us": state.stalls_us,
            "stalls_begun": np.array([self._stalls_begun]),
        }
        if state.prefetch[0] or self.bounded:
            holding = state.holding[:, :slots]
            servers = np.argwhere(holding[:, :, kernel.HELD]).tolist()
            held = [state.held[o, s, : holding[o, s, kernel.HELD]] for o, s in servers]
            nothing = np.zeros((0, kernel.HELD_COLUMNS), dtype=np.int64)
            stored |= {"held": np.concatenate([nothing, *held]), "holding": holding}
        if self.bounded:
            stored |= {"clock": state.clock, "restored": state.restored[:, :slots]}
        if self.left_us.any():
            stored["left_us"] = self.left_us
        return {name: array.copy() for name, array in stored.items()}

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from :meth:`arrays` of a network of the same run."""
        counts = arrays["items_per_edge"]
        least = np.diff(self.state.edges[:, rings.FIRST :]).ravel()
        edges = rings.stretches(np.maximum(least, 2 * counts))
        edges[:, rings.TAIL] += counts
        self._rows_taken = int(edges[-1, rings.END])
        items = np.zeros((self._rows_taken, 3), dtype=np.int64)
        for (head, tail, *_), row in zip(
            edges.tolist(), np.split(arrays["items"], np.cumsum(counts)[:-1]), strict=True
        ):
            items[head:tail] = row
        nodes = arrays["nodes"].copy()
        nodes[:, kernel.FILLED] = nodes[:, kernel.DRAWN] // BLOCK * BLOCK
        slots = max(self.state.servers.shape[1], arrays["servers"].shape[1])
        # Snapshots have what is held where items are bound only; there is a place per slot anyway.
        held_by = arrays["holding"][:, :, kernel.HELD] if "holding" in arrays else np.zeros((0, 0))
        places = max(self.state.held.shape[2], int(held_by.max(initial=0)))
        held = np.zeros((len(self.names), slots, places, kernel.HELD_COLUMNS), dtype=np.int64)
        rows = iter(arrays.get("held", ()))
        for (operator, slot), count in np.ndenumerate(held_by):
            for k in range(int(count)):
                held[operator, slot, k] = next(rows)
        self._put(
            items=items,
            edges=edges,
            servers=widened(arrays["servers"], 1, slots),
            free_us=widened(arrays["free_us"], 1, slots),
            nodes=nodes,
            orphans=arrays["orphans"].copy(),
            stalls_us=arrays["stalls_us"].copy(),
            held=held,
            holding=widened(arrays.get("holding", self.state.holding), 1, slots),
            turn=widened(self.state.turn, 1, slots),
            restored=widened(arrays.get("restored", self.state.restored), 1, slots),
            clock=arrays.get("clock", self.state.clock).copy(),
        )
        if self.bounded:
            self._keep_rooms()
            for operator in range(len(self.names)):
                self._keep_shares(operator)
        self.left_us = arrays.get("left_us", np.zeros_like(self.left_us)).copy()
        self._skip_stalls(int(arrays["stalls_begun"][0]))
        for node in np.flatnonzero(nodes[:, kernel.DRAWN] % BLOCK):
            self._refill(int(node))

    def _refill(self, node: int) -> None:
        state, calibration = self.state, self.calibration
        block = int(state.nodes[node, kernel.FILLED]) // BLOCK
        if node < len(self.names):
            name = self.names[node]
            generator = self.draws.generator("operator", name, block)
            state.service_us[node] = drawn_service_us(
                generator, calibration.service_ms[name], calibration.service_cv
            )
        else:
            source = node - len(self.names)
            generator = self.draws.generator("source", self.topology.sources[source].name, block)
            first = block * BLOCK
            state.published_us[source] = self.publications[source].times_us(first, first + BLOCK)
        mean_ms = calibration.latency_ms
        if node < len(self.names):
            mean_ms = calibration.transfer_ms or mean_ms
        state.latency_us[node] = drawn_latency_us(generator, mean_ms)
        state.nodes[node, kernel.FILLED] += BLOCK

    def _put(self, **parts: Any) -> None:
        self.state = self.state._replace(**parts)


def widened(array: np.ndarray, axis: int, width: int) -> I64:
    """A copy with ``axis`` extended to ``width`` by zeros, which take no memory until written."""
    shape = list(array.shape)
    shape[axis] = width
    wide = np.zeros(shape, dtype=np.int64)
    wide[tuple(map(slice, array.shape))] = array
    return wide
