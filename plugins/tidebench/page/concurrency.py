"""How many requests of the page are worked on at a time: tasks ask the same process for their work.

Airflow's API server has a pool of 15 connections to its database for everyone.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

AT_ONCE = 4
WAIT_S = 20.0
"""How long a request waits for its place; a page of a thousand runs takes about half a second."""
RETRY_AFTER_S = 10


class ConcurrencyLimit:
    """ASGI middleware: at most ``at_once`` requests are worked on, the others wait in order.

    They hold nothing while they wait. One that has waited for ``wait_s`` is answered with ``busy``.
    A place is free again when an answer begins: a reader who is slow keeps nobody waiting.
    """

    def __init__(
        self, app: ASGIApp, *, busy: Response, at_once: int = AT_ONCE, wait_s: float = WAIT_S
    ) -> None:
        self.app = app
        self.busy = busy
        self.busy.headers["Retry-After"] = str(RETRY_AFTER_S)
        self.places = asyncio.Semaphore(at_once)
        self.wait_s = wait_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self.wait_s):
                await self.places.acquire()
        except TimeoutError:
            await self.busy(scope, receive, send)
            return
        await self._work(scope, receive, send)

    async def _work(self, scope: Scope, receive: Receive, send: Send) -> None:
        working = True

        def release() -> None:
            nonlocal working
            if working:
                working = False
                self.places.release()

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                release()
            await send(message)

        try:
            await self.app(scope, receive, send_on)
        finally:
            release()
