"""Polls a slow function in the background and keeps its last result."""

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
    """Result of a poll, and its begin by the monotonic clock."""

    value: T
    began_s: float


class BackgroundPoller(Generic[T]):
    """Polls in the background, one call at a time, as long as :meth:`latest` is called."""

    def __init__(self, poll: Callable[[], T], blank: T, every_s: float) -> None:
        self._poll = poll
        self._every_s = every_s
        self._latest = PollResult(blank, 0.0)
        self._began_s = 0.0
        self._under_way: Future[PollResult[T]] | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="poller")

    def latest(self) -> PollResult[T]:
        """The last successful poll; starts another one after ``every_s``."""
        if self._under_way is not None and self._under_way.done():
            if not isinstance(self._under_way.exception(), TestbedError):  # which may pass
                self._latest = self._under_way.result()
            self._under_way = None
        now_s = time.monotonic()
        if self._under_way is None and now_s - self._began_s >= self._every_s:
            self._began_s = now_s
            self._under_way = self._pool.submit(lambda: PollResult(self._poll(), now_s))
        return self._latest

    def close(self) -> None:
        """Wait for the current poll."""
        self._pool.shutdown()
