"""Position of a source: which items are sent, and which the broker has confirmed."""

from __future__ import annotations

import math

from include.testbeds.live.provider.payloads import payload_for
from include.testbeds.live.provider.plan import Stream


class Position:
    """Items below ``confirmed`` are stored by the broker; ``following`` is sent next."""

    def __init__(self, stream: Stream, confirmed: int) -> None:
        self.stream = stream
        self.confirmed = self.following = confirmed
        self._open: dict[int, int] = {}
        self._payload = payload_for(stream.targets)

    @property
    def done(self) -> bool:
        """Whether everything is sent and confirmed."""
        return self.confirmed >= self.stream.schedule.items

    @property
    def next_due_s(self) -> float:
        """Second of the run at which the next item is emitted; infinite after the last."""
        schedule = self.stream.schedule
        return schedule.due_s(self.following) if self.following < schedule.items else math.inf

    def body(self) -> bytes:
        """Body of the next item, always the same."""
        level = self.stream.schedule.level_of(self.following)
        machine = 1 + self.following % max(1, round(level))
        return self._payload(self.following, machine, self.stream.size_bytes, self.stream.one_in)

    def sent(self) -> int:
        """Count the next item as sent to every target; returns its number."""
        number = self.following
        self._open[number] = len(self.stream.targets)
        self.following += 1
        return number

    def confirm(self, number: int) -> None:
        """Count a copy of an item as stored by the broker."""
        left = self._open.get(number, 0) - 1
        if left > 0:
            self._open[number] = left
            return
        self._open.pop(number, None)
        self.confirmed = min(self._open, default=self.following)

    def lose(self) -> None:
        """After a lost connection, send unconfirmed items again."""
        self._open.clear()
        self.following = self.confirmed
