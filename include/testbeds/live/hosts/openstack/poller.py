"""The last answer of something that takes its time, without waiting for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

from include.model.errors import TestbedError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PollResult(Generic[T]):
    """What a poll has brought, and when it began (monotonic clock)."""

    value: T
    began_s: float


class BackgroundPoller(Generic[T]):
    """Polls in the background, one call at a time, while somebody keeps asking."""

    def __init__(self, poll: Callable[[], T], blank: T, every_s: float) -> None:
        self._poll = poll
        self._every_s = every_s
        self._latest = PollResult(blank, 0.0)
        self._began_s = 0.0
        self._under_way: Future[PollResult[T]] | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="poller")

    def latest(self) -> PollResult[T]:
        """The last poll that succeeded; begins another when that was a while ago."""
        if self._under_way is not None and self._under_way.done():
            if not isinstance(self._under_way.exception(), TestbedError):  # else it may pass
                self._latest = self._under_way.result()
            self._under_way = None
        now_s = time.monotonic()
        if self._under_way is None and now_s - self._began_s >= self._every_s:
            self._began_s = now_s
            self._under_way = self._pool.submit(lambda: PollResult(self._poll(), now_s))
        return self._latest

    def close(self) -> None:
        """Wait for the poll that is under way."""
        self._pool.shutdown()
