"""What was seen last of something that takes its time to answer, without waiting for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

from include.model.errors import TestbedError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Seen(Generic[T]):
    """What a look has brought, and when it began (monotonic clock)."""

    value: T
    began_s: float


class Sight(Generic[T]):
    """Looks in the background, one look at a time, while somebody keeps asking."""

    def __init__(self, look: Callable[[], T], blank: T, every_s: float) -> None:
        self._look = look
        self._every_s = every_s
        self._seen = Seen(blank, 0.0)
        self._began_s = 0.0
        self._under_way: Future[Seen[T]] | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="sight")

    def latest(self) -> Seen[T]:
        """The last look that succeeded; begins another when that was a while ago."""
        if self._under_way is not None and self._under_way.done():
            if not isinstance(self._under_way.exception(), TestbedError):  # else it may pass
                self._seen = self._under_way.result()
            self._under_way = None
        now_s = time.monotonic()
        if self._under_way is None and now_s - self._began_s >= self._every_s:
            self._began_s = now_s
            self._under_way = self._pool.submit(lambda: Seen(self._look(), now_s))
        return self._seen

    def close(self) -> None:
        """Wait for the look that is under way."""
        self._pool.shutdown()
