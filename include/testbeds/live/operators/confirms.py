"""Which publications the broker has confirmed, and which deliveries may be acknowledged."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from include.testbeds.live.operators.code import Output
from include.testbeds.live.operators.wire import ItemId


@dataclass(frozen=True, slots=True)
class Processed:
    """An item that was processed, not yet acknowledged. ``item`` is absent for a rejected one."""

    tag: int
    item: ItemId | None
    outputs: Sequence[Output]
    last_publication: int
    """Number of the newest publication that has to be confirmed before; 0 for none."""


class Confirms:
    """Publications count from 1 on a channel; confirms come in any order, one or many at once."""

    def __init__(self) -> None:
        self._published = 0
        self._open: set[int] = set()
        self._lowest_open = 1
        self._waiting: deque[Processed] = deque()

    @property
    def settled(self) -> bool:
        """Whether nothing waits to be acknowledged."""
        return not self._waiting

    def publish(self) -> int:
        """Count one publication; returns its number."""
        self._published += 1
        self._open.add(self._published)
        return self._published

    def confirm(self, number: int, up_to: bool) -> None:
        """The broker has taken a publication, or all up to it."""
        if up_to:
            self._open.difference_update(range(self._lowest_open, number + 1))
        else:
            self._open.discard(number)
        while self._lowest_open <= self._published and self._lowest_open not in self._open:
            self._lowest_open += 1

    def add(self, processed: Processed) -> None:
        """An item was processed; items are added in the order of their delivery tags."""
        self._waiting.append(processed)

    def take_settled(self) -> Iterator[Processed]:
        """Take out, in order, the items whose outputs are confirmed, up to the first that waits."""
        while self._waiting and self._waiting[0].last_publication < self._lowest_open:
            yield self._waiting.popleft()
