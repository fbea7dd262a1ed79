"""How many requests of the page are worked on at a time: tasks ask the same process for their work.

Airflow's API server has a pool of 15 connections to its database for everyone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from fastapi import HTTPException

AT_ONCE = 4
WAIT_S = 20.0
"""How long a request waits for its place; a page of a thousand runs takes about half a second."""
RETRY_AFTER_S = 10
BUSY = "Many pages are asked for at once. Load this one again in a moment."


class ConcurrencyLimit:
    """A dependency: at most ``AT_ONCE`` requests are worked on, the others wait in order.

    They hold nothing while they wait. One that has waited for ``wait_s`` is refused. With the scope
    of a function a place is free again when an answer begins: a slow reader keeps nobody waiting.
    """

    def __init__(self, wait_s: float = WAIT_S) -> None:
        self.places = asyncio.Semaphore(AT_ONCE)
        self.wait_s = wait_s

    async def __call__(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self.wait_s):
                await self.places.acquire()
        except TimeoutError:
            raise HTTPException(503, BUSY, {"Retry-After": str(RETRY_AFTER_S)}) from None
        try:
            yield
        finally:
            self.places.release()
