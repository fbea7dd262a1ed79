"""A connection to the broker: takes items, works, publishes outputs, then acknowledges.

An item is acknowledged when the broker has confirmed everything that came out of it and the ledger
has noted it. A crash at any point makes the broker hand the item out again: nothing is lost, and
what is sent twice carries the same id. Everything happens in one thread; between two slices of
work the connection gets its turn, so heartbeats are kept as long as one item takes less than two.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pika
from pika.adapters.select_connection import SelectConnection

from include.testbeds.live.operators import wire
from include.testbeds.live.operators.code import Output, Process
from include.testbeds.live.operators.health import Health
from include.testbeds.live.operators.ledger import Ledger, Notes
from include.testbeds.live.operators.logs import Log
from include.testbeds.live.operators.settings import Settings
from include.testbeds.live.operators.wire import ItemId


@dataclass(frozen=True, slots=True)
class Processed:
    """A processed, unacknowledged delivery. ``item`` is None if it was rejected."""

    tag: int
    item: ItemId | None
    outputs: Sequence[Output]
    last_publication: int
    """Number of the last publication that must be confirmed before; 0 for none."""


class Confirms:
    """Publications of a channel count from 1; confirms come in any order, single or multiple."""

    def __init__(self) -> None:
        self._published = 0
        self._open: set[int] = set()
        self._lowest_open = 1
        self._waiting: deque[Processed] = deque()

    @property
    def settled(self) -> bool:
        """Whether all processed deliveries are acknowledged."""
        return not self._waiting

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

    def add(self, processed: Processed) -> None:
        """Add a processed delivery, in the order of delivery tags."""
        self._waiting.append(processed)

    def take_settled(self) -> Iterator[Processed]:
        """Remove and yield deliveries in order, up to the first with unconfirmed outputs."""
        while self._waiting and self._waiting[0].last_publication < self._lowest_open:
            yield self._waiting.popleft()


SLICE_S = 0.02
TICK_S = 0.1
CONNECT_TIMEOUT_S = 5.0
CLOSE_TIMEOUT_S = 2.0


class SessionLost(Exception):
    """The connection ended unexpectedly; connect again."""


class BrokerSession:
    """Lives from :meth:`run` until the connection ends."""

    def __init__(
        self, settings: Settings, process: Process, ledger: Ledger, health: Health, log: Log
    ) -> None:
        self._settings = settings
        self._process = process
        self._ledger = ledger
        self._health = health
        self._log = log
        self._channel: Any = None
        self._connection: Any = None
        self._waiting: deque[tuple[int, Any, bytes]] = deque()
        self._confirms = Confirms()
        self._draining = False
        self._work_is_due = False
        self._failure: str | None = None
        self._stop_asked: Callable[[], bool] = lambda: False

    def run(self, stop_asked: Callable[[], bool]) -> None:
        """Work until asked to stop, then finish what was begun.

        Raises SessionLost, or what code and state raised; everything unacknowledged then goes back
        to the queue.
        """
        self._stop_asked = stop_asked
        parameters = pika.URLParameters(self._settings.amqp_url)
        parameters.heartbeat = self._settings.heartbeat_s
        parameters.socket_timeout = parameters.stack_timeout = CONNECT_TIMEOUT_S
        self._connection = SelectConnection(
            parameters,
            on_open_callback=self._on_connected,
            on_open_error_callback=lambda _, error: self._end(f"no connection: {error!r}"),
            on_close_callback=lambda _, reason: self._end(f"connection closed: {reason}"),
        )
        self._tick()
        try:
            self._connection.ioloop.start()
        except BaseException:
            self._failure = "abandoned"
            raise
        finally:
            self._health.ready = False
            self._close()
        if self._failure:
            raise SessionLost(self._failure)

    # Opening

    def _on_connected(self, connection: Any) -> None:
        connection.channel(on_open_callback=self._on_channel)

    def _on_channel(self, channel: Any) -> None:
        self._channel = channel
        channel.add_on_close_callback(lambda _, reason: self._end(f"channel closed: {reason}"))
        channel.add_on_cancel_callback(lambda _: self._end("the broker has cancelled the consumer"))
        channel.add_on_return_callback(
            lambda _, returned, *__: self._end(f"there is no queue {returned.routing_key!r}")
        )
        channel.confirm_delivery(self._on_confirm)
        channel.basic_qos(prefetch_count=self._settings.prefetch)
        channel.basic_consume(
            self._settings.operator, self._on_delivery, callback=lambda _: self._on_consuming()
        )

    def _on_consuming(self) -> None:
        self._health.ready = True
        self._log("ready")

    # Working

    def _on_delivery(self, _: Any, method: Any, props: Any, body: bytes) -> None:
        if self._draining:
            return
        self._waiting.append((method.delivery_tag, props, body))
        self._work_soon()

    def _work_soon(self) -> None:
        if not self._work_is_due:
            self._work_is_due = True
            self._connection.ioloop.call_later(0, self._work)

    def _work(self) -> None:
        self._work_is_due = False
        end_s = time.monotonic() + SLICE_S
        while self._waiting and not self._failure:
            self._take(*self._waiting.popleft())
            if self._stop_asked() or time.monotonic() >= end_s:
                break
        self._settle()
        if self._waiting and not self._stop_asked():
            self._work_soon()

    def _take(self, tag: int, props: Any, body: bytes) -> None:
        started_us = wire.now_us()
        item: wire.Item | None = None
        outputs: Sequence[Output] = ()
        try:
            item = wire.read(props, body)
            outputs = self._process(item)
        except ValueError as error:
            self._ledger.reject(str(props.message_id), str(error))
            self._log("rejected", item=props.message_id, why=str(error))
        last = self._send(item, outputs, started_us) if item else 0
        self._confirms.add(Processed(tag, item.id if item else None, outputs, last))

    def _send(self, item: wire.Item, outputs: Sequence[Output], started_us: int) -> int:
        """Publish the outputs of an item; returns the number of the last publication."""
        last = 0
        for output in outputs:
            props = wire.properties(output.id, item.emitted_us, wire.now_us())
            last = self._publish(output.target, output.body, props)
        return self._report(item, started_us) or last

    def _publish(self, queue: str, body: bytes, props: Any) -> int:
        self._channel.basic_publish(wire.EXCHANGE, queue, body, props, mandatory=True)
        return self._confirms.publish()

    def _report(self, item: wire.Item, started_us: int) -> int:
        """Count an item and report it if sampled; returns the publication's number or 0."""
        settings, health = self._settings, self._health
        done_us = wire.now_us()
        resolution_s = settings.timestamp_resolution_s
        health.processed += 1
        health.last_done_us = done_us
        health.last_duration_ms = wire.recorded_ms(item.published_us, done_us, resolution_s)
        if health.processed == 1:
            self._log("first item", item=str(item.id), done_us=done_us)
        every = settings.sample_every_items
        if not every or health.processed % every:
            return 0
        sample = wire.Sample(
            operator=settings.operator,
            instance=settings.instance,
            number=health.processed,
            emitted_us=item.emitted_us,
            published_us=item.published_us,
            started_us=started_us,
            done_us=done_us,
            duration_ms=health.last_duration_ms,
        )
        persistent = pika.BasicProperties(delivery_mode=wire.PERSISTENT)
        return self._publish(wire.MONITOR, sample.to_json(), persistent)

    # Acknowledging

    def _on_confirm(self, frame: Any) -> None:
        method = frame.method
        if isinstance(method, pika.spec.Basic.Nack):
            self._end("the broker could not store an item")
            return
        self._confirms.confirm(method.delivery_tag, method.multiple)
        # Confirms come in bunches, so process them once per turn of the loop.
        self._work_soon()

    def _settle(self) -> None:
        if self._failure:
            return
        notes, last_tag = Notes(), 0
        for processed in self._confirms.take_settled():
            last_tag = processed.tag
            if processed.item:
                outputs = ((output.target, output.id) for output in processed.outputs)
                notes.add(processed.item, outputs)
        if last_tag:
            self._ledger.write(notes)
            self._channel.basic_ack(last_tag, multiple=True)

    # Ending

    def _tick(self) -> None:
        if self._stop_asked() and not self._draining:
            self._drain()
        if self._draining and self._confirms.settled:
            if self._connection.is_open:
                self._connection.close()
            else:
                self._connection.ioloop.stop()
        elif not self._failure:
            self._connection.ioloop.call_later(TICK_S, self._tick)

    def _drain(self) -> None:
        """Stop consuming; unprocessed deliveries return to the queue."""
        self._draining = True
        self._health.ready = False
        self._waiting.clear()
        if self._channel and self._channel.is_open:
            for tag in self._channel.consumer_tags:
                self._channel.basic_cancel(tag)

    def _end(self, why: str) -> None:
        if not (self._draining and self._confirms.settled):
            self._failure = self._failure or why
        self._connection.ioloop.stop()

    def _close(self) -> None:
        """Close the connection, orderly if it is open: the broker then redelivers at once."""
        ioloop = self._connection.ioloop
        if self._connection.is_open:
            self._connection.close()
            ioloop.call_later(CLOSE_TIMEOUT_S, ioloop.stop)
            ioloop.start()
        ioloop.close()
