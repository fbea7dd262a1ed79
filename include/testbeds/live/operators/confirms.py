"""Tracks confirmed publications, and deliveries that may be acknowledged."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from include.testbeds.live.operators.code import Output
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
