"""A connection to the broker: sends due items and notes confirmed ones."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

import pika
from pika.adapters.select_connection import SelectConnection

from include.testbeds.live.operators import wire
from include.testbeds.live.provider.plan import ProviderPlan
from include.testbeds.live.provider.position import Position

SHORTEST_REST_S, LONGEST_REST_S = 0.002, 0.05
SLICE_S = 0.02
NOTE_EVERY_S = 0.2
MOST_OPEN = 1000
"""Highest number of unconfirmed items, so that a late provider does not flood the broker."""
HEARTBEAT_S = 5
CONNECT_TIMEOUT_S = 5.0
STOP_WITHIN_S = 3.0
Note = Callable[[Sequence[float]], object]
"""Writes positions, given the lateness of the items since the last call in wall seconds."""


class ConnectionLost(Exception):
    """The connection ended unexpectedly; connect again."""


class Publisher:
    """Sends items until all are sent, SIGTERM, or the end of the connection."""

    def __init__(
        self, url: str, plan: ProviderPlan, positions: Sequence[Position], note: Note
    ) -> None:
        self._url = url
        self._plan = plan
        self._positions = positions
        self._note = note
        self._publications = 0
        self._by_publication: dict[int, tuple[Position, int]] = {}
        self._late_s: list[float] = []
        self._noted_s = 0.0
        self._stop_by_s: float | None = None
        self._failure = ""
        self._connection: Any = None
        self._channel: Any = None

    def run(self) -> None:
        """Send all items. Raises ConnectionLost."""
        parameters = pika.URLParameters(self._url)
        parameters.heartbeat = HEARTBEAT_S
        parameters.socket_timeout = parameters.stack_timeout = CONNECT_TIMEOUT_S
        self._connection = SelectConnection(
            parameters,
            on_open_callback=lambda connection: connection.channel(on_open_callback=self._open),
            on_open_error_callback=lambda _, error: self._end(f"no connection: {error!r}"),
            on_close_callback=lambda _, reason: self._end(f"connection closed: {reason}"),
        )
        signal.signal(signal.SIGTERM, lambda *_: self._stop())
        try:
            self._connection.ioloop.start()
        finally:
            self._note_now()
            self._close()
        if self._failure:
            raise ConnectionLost(self._failure)

    def _open(self, channel: Any) -> None:
        self._channel = channel
        channel.add_on_close_callback(lambda _, reason: self._end(f"channel closed: {reason}"))
        channel.add_on_return_callback(
            lambda _, returned, *__: self._end(f"there is no queue {returned.routing_key!r}")
        )
        channel.confirm_delivery(self._on_confirm)
        self._tick()

    def _tick(self) -> None:
        if self._failure:
            return
        if self._stop_by_s is None:
            self._send_what_is_due()
        if time.monotonic() - self._noted_s >= NOTE_EVERY_S:
            self._note_now()
        stopped = self._stop_by_s is not None and (
            not self._by_publication or time.monotonic() > self._stop_by_s
        )
        if stopped or all(position.done for position in self._positions):
            self._connection.ioloop.stop()
        else:
            self._connection.ioloop.call_later(self._rest_s(), self._tick)

    def _rest_s(self) -> float:
        due_s = min((position.next_due_s for position in self._positions), default=0.0)
        left_s = (due_s - self._now_s()) / self._plan.time_scale
        return min(max(left_s, SHORTEST_REST_S), LONGEST_REST_S)

    def _send_what_is_due(self) -> None:
        """Send from sources in turn, so that rendering pictures does not delay the others."""
        end_s = time.monotonic() + SLICE_S
        sent = True
        while sent and time.monotonic() < end_s:
            sent = False
            for position in self._positions:
                if len(self._by_publication) < MOST_OPEN and position.next_due_s <= self._now_s():
                    self._send(position)
                    sent = True

    def _send(self, position: Position) -> None:
        body = position.body()
        due_s = position.next_due_s
        number = position.sent()
        item = wire.ItemId(position.stream.source, number)
        for target in position.stream.targets:
            now_us = wire.now_us()
            props = wire.properties(item, now_us, now_us)
            self._channel.basic_publish(wire.EXCHANGE, target, body, props, mandatory=True)
            self._publications += 1
            self._by_publication[self._publications] = (position, number)
        self._late_s.append((self._now_s() - due_s) / self._plan.time_scale)

    def _on_confirm(self, frame: Any) -> None:
        method = frame.method
        if isinstance(method, pika.spec.Basic.Nack):
            self._end("the broker could not store an item")
            return
        last = method.delivery_tag
        first = next(iter(self._by_publication), last) if method.multiple else last
        for publication in range(first, last + 1):
            if item := self._by_publication.pop(publication, None):
                position, number = item
                position.confirm(number)

    def _note_now(self) -> None:
        self._noted_s = time.monotonic()
        late_s, self._late_s = self._late_s, []
        self._note(late_s)

    def _now_s(self) -> float:
        return (wire.now_us() - self._plan.started_us) / 1e6 * self._plan.time_scale

    def _stop(self) -> None:
        self._stop_by_s = time.monotonic() + STOP_WITHIN_S

    def _end(self, why: str) -> None:
        self._failure = self._failure or why
        self._connection.ioloop.stop()

    def _close(self) -> None:
        ioloop = self._connection.ioloop
        if self._connection.is_open:
            failure, self._failure = self._failure, "closing"
            self._connection.close()
            ioloop.call_later(STOP_WITHIN_S, ioloop.stop)
            ioloop.start()
            self._failure = failure
        ioloop.close()
