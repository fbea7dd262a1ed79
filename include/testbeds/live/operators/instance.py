"""An instance: takes items, works, publishes outputs, then acknowledges.

An item is acknowledged when the broker has confirmed everything that came out of it and the ledger
has noted it. A crash at any point makes the broker hand the item out again: nothing is lost, and
what is sent twice carries the same id.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pika

from include.testbeds.live.operators import wire
from include.testbeds.live.operators.code import Output, Place
from include.testbeds.live.operators.codes import CODES, relay
from include.testbeds.live.operators.connection import SLICE_S, BrokerConnection
from include.testbeds.live.operators.ledger import Ledger, Notes, redis_client
from include.testbeds.live.operators.logs import Log
from include.testbeds.live.operators.settings import MONITOR, Settings
from include.testbeds.live.operators.state import State
from include.testbeds.live.operators.wire import ItemId

TICK_S = 0.1


@dataclass(frozen=True, slots=True)
class Processed:
    """A processed, unacknowledged delivery. ``item`` is None if it was rejected."""

    tag: int
    item: ItemId | None
    outputs: Sequence[Output]


class Instance(BrokerConnection[Processed]):
    """One instance of an operator. Told to stop, it finishes what was begun.

    When its connection ends, everything unacknowledged goes back to the queue.
    """

    def __init__(self, settings: Settings, log: Log) -> None:
        super().__init__(settings.amqp_url, settings.heartbeat_s, log)
        self._settings = settings
        self._redis = redis_client(settings.redis_url)
        place = Place(
            operator=settings.operator,
            targets=settings.targets,
            state=State(self._redis, settings.run, settings.operator),
            service_ms=settings.service_ms,
        )
        code = relay if settings.burn else CODES.get(settings.operator, relay)
        self._process = code(place)
        self._ledger = Ledger(self._redis, settings.run, settings.operator, settings.instance)
        self._busy_us = 0
        """Time with something to do that the ledger does not have yet."""
        self._counted_us = 0
        """Until when that is counted, if there is something to do."""
        self.processed = 0
        """Number of items since it was started."""
        self._waiting: deque[tuple[int, Any, bytes]] = deque()
        self._work_is_due = False
        self._draining = False

    def _begin(self) -> None:
        self._redis.ping()
        self._waiting.clear()
        self._work_is_due = self._draining = False

    def _opened(self, channel: Any) -> None:
        channel.add_on_cancel_callback(lambda _: self._end("the broker has cancelled the consumer"))
        channel.basic_qos(prefetch_count=self._settings.prefetch)
        channel.basic_consume(
            self._settings.operator, self._on_delivery, callback=lambda _: self._log("ready")
        )

    # Working

    def _on_delivery(self, _: Any, method: Any, props: Any, body: bytes) -> None:
        if self._draining:
            return
        self._begin_to_count()
        self._waiting.append((method.delivery_tag, props, body))
        self._work_soon()

    def _confirmed(self) -> None:
        # Confirms come in bunches, so process them once per turn of the loop.
        self._work_soon()

    def _work_soon(self) -> None:
        if not self._work_is_due:
            self._work_is_due = True
            self._connection.ioloop.call_later(0, self._work)

    def _work(self) -> None:
        self._work_is_due = False
        self._begin_to_count()
        end_s = time.monotonic() + SLICE_S
        while self._waiting and not self._over:
            self._take(*self._waiting.popleft())
            if self.stopping or time.monotonic() >= end_s:
                break
        self._count()
        self._settle()
        self._count()
        if self._waiting and not self.stopping:
            self._work_soon()

    def _begin_to_count(self) -> None:
        """Leave out the time until now, unless an item waited or it held as many as it may."""
        held = len(self._waiting) + self._confirms.unsettled
        if not self._waiting and held < self._settings.prefetch:
            self._counted_us = wire.now_us()

    def _count(self) -> None:
        """Add the time since it was counted, whatever of items, broker and ledger it went to."""
        now_us = wire.now_us()
        self._busy_us += now_us - self._counted_us
        self._counted_us = now_us

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
        self._confirms.add(Processed(tag, item.id if item else None, outputs), last)

    def _send(self, item: wire.Item, outputs: Sequence[Output], started_us: int) -> int:
        """Publish the outputs of an item; returns the number of the last publication."""
        last = 0
        for output in outputs:
            props = wire.properties(output.id, item.emitted_us, wire.now_us())
            last = self._publish(output.target, output.body, props)
        return self._report(item, started_us) or last

    def _report(self, item: wire.Item, started_us: int) -> int:
        """Count an item and report it if sampled; returns the publication's number or 0."""
        settings = self._settings
        done_us = wire.now_us()
        self.processed += 1
        if self.processed == 1:
            self._log("first item", item=str(item.id), done_us=done_us)
        every = settings.sample_every_items
        if not every or item.id.number % every:  # by its number, however often instances change
            return 0
        resolution_s = settings.timestamp_resolution_s
        sample = wire.Sample(
            operator=settings.operator,
            instance=settings.instance,
            number=self.processed,
            emitted_us=item.emitted_us,
            published_us=item.published_us,
            started_us=started_us,
            done_us=done_us,
            duration_ms=wire.recorded_ms(item.published_us, done_us, resolution_s),
        )
        persistent = pika.BasicProperties(delivery_mode=wire.PERSISTENT)
        return self._publish(MONITOR, sample.to_json(), persistent)

    def _settle(self) -> None:
        """Acknowledge what is confirmed, once the ledger has it."""
        if self._over:
            return
        notes, last_tag = Notes(), 0
        for processed in self._confirms.take_settled():
            last_tag = processed.tag
            if processed.item:
                outputs = ((output.target, output.id) for output in processed.outputs)
                notes.add(processed.item, outputs)
        if last_tag:
            self._ledger.write(notes, self._busy_us)
            self._busy_us = 0
            self._channel.basic_ack(last_tag, multiple=True)

    # Ending

    def _tick(self) -> float:
        if self.stopping and not self._draining:
            self._drain()
        if self._draining and not self._confirms.unsettled:
            self._end()
        return TICK_S

    def _drain(self) -> None:
        """Stop consuming; unprocessed deliveries return to the queue."""
        self._draining = True
        self._waiting.clear()
        if self._channel and self._channel.is_open:
            for tag in self._channel.consumer_tags:
                self._channel.basic_cancel(tag)
