"""A connection to the broker that confirms what is sent, for instances and the data provider.

Everything happens in one thread; between two slices of work the connection gets its turn, so
heartbeats are kept as long as a slice takes less than two.
"""

from __future__ import annotations

import logging
import math
import signal
import time
from collections import deque
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import pika
import pika.exceptions
import redis
from pika.adapters.select_connection import SelectConnection

from include.testbeds.live.operators import wire
from include.testbeds.live.operators.logs import Log

SLICE_S = 0.02
CONNECT_TIMEOUT_S = 5.0
CLOSE_TIMEOUT_S = 2.0
FIRST_DELAY_S, LONGEST_DELAY_S = 0.2, 5.0
LONG_ENOUGH_S = 10.0
T = TypeVar("T")


class ConnectionLost(Exception):
    """The connection ended unexpectedly; connect again."""


TROUBLE = (ConnectionLost, pika.exceptions.AMQPError, redis.RedisError, OSError)
"""Errors after which it connects again; others are defects and end the process."""


class Confirms(Generic[T]):
    """Publications of a channel count from 1; confirms come in any order, single or multiple.

    What they were for is settled in order: after its own publications and what was before it.
    """

    def __init__(self) -> None:
        self._published = 0
        self._open: set[int] = set()
        self._lowest_open = 1
        self._waiting: deque[tuple[int, T]] = deque()

    @property
    def unsettled(self) -> int:
        """How much was added and not taken."""
        return len(self._waiting)

    def publish(self) -> int:
        """Count one publication; returns its number."""
        self._published += 1
        self._open.add(self._published)
        return self._published

    def confirm(self, number: int, up_to: bool) -> None:
        """Mark a publication, or all up to it, as confirmed."""
        if up_to:
            self._open.difference_update(range(self._lowest_open, number + 1))
        else:
            self._open.discard(number)
        while self._lowest_open <= self._published and self._lowest_open not in self._open:
            self._lowest_open += 1

    def add(self, done: T, last_publication: int) -> None:
        """Add what publications up to a number were for; 0 if there were none."""
        self._waiting.append((last_publication, done))

    def take_settled(self) -> Iterator[T]:
        """Remove and yield in order, up to the first with unconfirmed publications."""
        while self._waiting and self._waiting[0][0] < self._lowest_open:
            yield self._waiting.popleft()[1]


class BrokerConnection(Generic[T]):
    """Connects as often as it has to, with a new channel each time."""

    longest_delay_s = LONGEST_DELAY_S

    def __init__(self, url: str, heartbeat_s: int, log: Log) -> None:
        self._parameters = pika.URLParameters(url)
        self._parameters.heartbeat = heartbeat_s
        self._parameters.socket_timeout = self._parameters.stack_timeout = CONNECT_TIMEOUT_S
        self._log = log
        self._stop_s = math.inf
        """When it was told to stop, by the monotonic clock."""
        self._connection: Any = None
        self._channel: Any = None
        self._confirms: Confirms[T] = Confirms()
        self._over = False
        """Nothing is sent or acknowledged on this connection any more."""
        self._failure = ""

    @property
    def stopping(self) -> bool:
        return self._stop_s < math.inf

    def run(self) -> bool:
        """Work until done or told to stop by SIGTERM or SIGINT, through failures.

        Returns False if it was given up before.
        """
        # pika logs every failed attempt with its stack; what matters is in our own lines.
        logging.getLogger("pika").setLevel(logging.CRITICAL)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop())
        delay_s, connected_s = FIRST_DELAY_S, time.monotonic()
        while not self.stopping:
            began_s = time.monotonic()
            try:
                self._connect()
            except TROUBLE as error:
                lost_s = time.monotonic()
                if lost_s - began_s > LONG_ENOUGH_S:
                    delay_s, connected_s = FIRST_DELAY_S, lost_s
                self._log("lost", why=f"{type(error).__name__}: {error}", again_in_s=delay_s)
                if not self._goes_on(lost_s - connected_s):
                    return False
                self._rest(delay_s)
                delay_s = min(2 * delay_s, self.longest_delay_s)
            else:
                break
        return True

    def _connect(self) -> None:
        """One connection, from its beginning to its end. Raises one of TROUBLE."""
        self._channel, self._confirms = None, Confirms()
        self._over, self._failure = False, ""
        self._begin()
        self._connection = SelectConnection(
            self._parameters,
            on_open_callback=lambda connection: connection.channel(on_open_callback=self._open),
            on_open_error_callback=lambda _, error: self._end(f"no connection: {error!r}"),
            on_close_callback=lambda _, reason: self._end(f"connection closed: {reason}"),
        )
        self._connection.ioloop.call_later(0, self._turn)
        try:
            self._connection.ioloop.start()
        finally:
            self._over = True
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
        self._opened(channel)

    def _publish(self, queue: str, body: bytes, props: pika.BasicProperties) -> int:
        """Returns the number of the publication."""
        self._channel.basic_publish(wire.EXCHANGE, queue, body, props, mandatory=True)
        return self._confirms.publish()

    def _on_confirm(self, frame: Any) -> None:
        method = frame.method
        if isinstance(method, pika.spec.Basic.Nack):
            self._end("the broker could not store an item")
            return
        self._confirms.confirm(method.delivery_tag, method.multiple)
        self._confirmed()

    def _turn(self) -> None:
        if not self._over:
            self._connection.ioloop.call_later(self._tick(), self._turn)

    def _stop(self) -> None:
        self._stop_s = time.monotonic()

    def _end(self, why: str = "") -> None:
        """Stop, because of a failure or of none; what comes later, as it closes, does not count."""
        if not self._over:
            self._over, self._failure = True, why
        self._connection.ioloop.stop()

    def _close(self) -> None:
        """Close the connection, orderly if it is open: the broker then redelivers at once."""
        ioloop = self._connection.ioloop
        if self._connection.is_open:
            self._connection.close()
            ioloop.call_later(CLOSE_TIMEOUT_S, ioloop.stop)
            ioloop.start()
        ioloop.close()

    def _rest(self, delay_s: float) -> None:
        end_s = time.monotonic() + delay_s
        while not self.stopping and time.monotonic() < end_s:
            time.sleep(min(0.1, delay_s))

    # For those that use it

    def _begin(self) -> None:
        """Forget what the last connection has left behind. Raises one of TROUBLE."""
        raise NotImplementedError

    def _opened(self, channel: Any) -> None:
        """The channel is open."""

    def _confirmed(self) -> None:
        """The broker has stored more of what was published."""

    def _tick(self) -> float:
        """Called again and again, before the channel is open, too; returns the seconds between."""
        raise NotImplementedError

    def _goes_on(self, lost_for_s: float) -> bool:
        """Whether to connect again, after so many seconds without a connection."""
        return True
