"""Format of items on the broker, for operators, data provider and testbed.

An item carries its payload as body and in its properties: ``message_id`` (see :class:`ItemId`),
``timestamp`` (publication in whole seconds, as AMQP has it) and two headers with the exact times,
``emitted_us`` (when the source emitted the item it derives from) and ``published_us``, both in
microseconds since 1970. Clocks are those of one machine, or of servers that have its time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pika

EXCHANGE = "items"
"""The durable direct exchange of a run's vhost."""
PERSISTENT = 2
US_PER_S = 1_000_000


@dataclass(frozen=True, slots=True)
class ItemId:
    """Names an item in the queue it is in; the same item has the same name however often it is
    made again.

    ``path`` tells the producers from the source on (``S2>O1``), ``number`` counts from 0 along
    the path. It is what makes duplicates recognisable and lost items findable.
    """

    path: str
    number: int

    def __str__(self) -> str:
        return f"{self.path}:{self.number}"

    def through(self, operator: str, number: int | None = None) -> ItemId:
        """The item that an operator derives from this one, with the same number unless given."""
        return ItemId(f"{self.path}>{operator}", self.number if number is None else number)

    @classmethod
    def parse(cls, text: str) -> ItemId:
        """The inverse of ``str``. Raises ValueError for anything else."""
        path, _, number = text.rpartition(":")
        if not path or not number.isdecimal():
            raise ValueError(f"{text!r} is no item id; it reads <source or path>:<number>")
        return cls(path, int(number))


@dataclass(frozen=True, slots=True)
class Item:
    """An item as it was taken from a queue; times in microseconds since 1970."""

    id: ItemId
    body: bytes
    emitted_us: int
    published_us: int


def now_us() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


def properties(item_id: ItemId, emitted_us: int, published_us: int) -> pika.BasicProperties:
    """Properties to publish an item with: persistent, named and dated."""
    return pika.BasicProperties(
        delivery_mode=PERSISTENT,
        message_id=str(item_id),
        timestamp=published_us // US_PER_S,
        headers={"emitted_us": emitted_us, "published_us": published_us},
    )


def read(props: pika.BasicProperties, body: bytes) -> Item:
    """The item of a delivery. Raises ValueError when it is not in the form described above."""
    headers: Mapping[str, Any] = props.headers or {}
    try:
        return Item(
            id=ItemId.parse(props.message_id or ""),
            body=body,
            emitted_us=int(headers["emitted_us"]),
            published_us=int(headers["published_us"]),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"an item without usable {error} header") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Record of a sampled processed item, times in microseconds since 1970.

    ``number`` counts the items this instance has processed. ``duration_ms`` is what the operator
    would record: publication, cut to the timestamp resolution of the run, to completion.
    """

    operator: str
    instance: str
    number: int
    emitted_us: int
    published_us: int
    started_us: int
    done_us: int
    duration_ms: float

    def to_json(self) -> bytes:
        """The body of a record on the queue ``monitor``."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps(plain, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, body: bytes) -> Sample:
        """The inverse of :meth:`to_json`. Raises ValueError or TypeError for anything else."""
        return cls(**json.loads(body))


def recorded_ms(published_us: int, done_us: int, resolution_s: float) -> float:
    """Processing duration by timestamps of a resolution (0: exact).

    AMQP timestamps are whole seconds, which adds up to one second to every duration of PeerJ
    CS 141 (docs/deviations.md); resolution 1 reproduces that.
    """
    if resolution_s > 0:
        published_us -= published_us % round(resolution_s * US_PER_S)
    return (done_us - published_us) / 1000
