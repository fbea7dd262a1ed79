"""Positions of sources: which items are sent, and which the broker has confirmed."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import redis

from include.testbeds.live.operators.ledger import sent_key
from include.testbeds.live.operators.logs import Log
from include.testbeds.live.operators.wire import now_us
from include.testbeds.live.provider.payloads import payload_for
from include.testbeds.live.provider.plan import ProviderPlan, Stream
from include.testbeds.live.shared_state import PROVIDER

AGAIN_AFTER_S = 0.5
GIVE_UP_S = 600.0
"""Time without broker or Redis after which it ends, in case the run was forgotten."""
LAST_ITEMS = 5000
"""Number of items over which lateness is reported."""


class Position:
    """Items below ``confirmed`` are stored by the broker; ``following`` is sent next."""

    def __init__(self, stream: Stream, confirmed: int) -> None:
        self.stream = stream
        self.confirmed = self.following = confirmed
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

    def lose(self) -> None:
        """After a lost connection, send unconfirmed items again."""
        self.following = self.confirmed


class Positions:
    """The positions of a run's sources, written down in Redis.

    While Redis is away, the next note makes up for it.
    """

    def __init__(self, shared: Any, plan: ProviderPlan, log: Log) -> None:
        self._shared = shared
        self._run = plan.run
        self._log = log
        self._late_s: deque[float] = deque(maxlen=LAST_ITEMS)
        self._positions = [
            Position(stream, int(shared.hget(sent_key(plan.run, stream.source), "count") or 0))
            for stream in plan.streams
        ]

    def __iter__(self) -> Iterator[Position]:
        return iter(self._positions)

    def confirmed(self) -> dict[str, int]:
        """Number of confirmed items by source."""
        return {position.stream.source: position.confirmed for position in self}

    def write(self, late_s: Sequence[float]) -> bool:
        """Note positions and lateness since the run began; returns whether it worked."""
        self._late_s += late_s
        pipe = self._shared.pipeline(transaction=True)
        for source, confirmed in self.confirmed().items():
            count = {"count": confirmed, "highest": confirmed - 1}
            if confirmed:
                pipe.hset(sent_key(self._run, source), mapping=count)
        rate: dict[str, Any] = {"as_of_us": now_us()}
        if self._late_s:
            ordered = sorted(self._late_s)
            rate["late_ms_median"] = f"{1000 * ordered[len(ordered) // 2]:.1f}"
            rate["late_ms_p99"] = f"{1000 * ordered[int(0.99 * len(ordered))]:.1f}"
        pipe.hset(f"{self._run}:{PROVIDER}", mapping=rate)
        try:
            pipe.execute()
        except redis.RedisError as error:
            self._log("not noted", why=f"{type(error).__name__}: {error}")
            return False
        return True

    def finish(self) -> None:
        """Write the last note, by which processed items are checked."""
        end_s = time.monotonic() + GIVE_UP_S
        while not self.write([]) and time.monotonic() < end_s:
            time.sleep(AGAIN_AFTER_S)
