"""Sixty requests at once: four are worked on, the others wait in order or are told to come back."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import httpx
from fastapi import Depends, FastAPI
from fastapi.responses import StreamingResponse

from tidebench.page.concurrency import AT_ONCE, RETRY_AFTER_S, ConcurrencyLimit

READERS = 60


class Page:
    """A page that counts how many of its requests are worked on, and then sent.

    Work ends once ``refused`` requests are answered, sending once ``begun`` are worked on: the
    tests wait for what they are about, and not for a time that a busy machine stretches.
    """

    def __init__(self, refused: int = 0, begun: int = 0) -> None:
        self.refused, self.begun = refused, begun
        self.now = self.most = self.asked = self.answered = 0

    async def show(self, broken: bool = False) -> StreamingResponse:
        self.now += 1
        self.asked += 1
        self.most = max(self.most, self.now)
        await self.reach("answered", self.refused)
        self.now -= 1
        if broken:
            raise RuntimeError("broken")
        return StreamingResponse(self.body())

    async def body(self) -> AsyncIterator[bytes]:
        await self.reach("asked", self.begun)
        yield b""

    async def reach(self, count: str, least: int) -> None:
        await asyncio.sleep(0.001)
        while getattr(self, count) < least:
            await asyncio.sleep(0.01)


def answers(page: Page, wait_s: float = 60.0, path: str = "/") -> list[httpx.Response]:
    limit = Depends(ConcurrencyLimit(wait_s), scope="function")
    app = FastAPI(dependencies=[limit])
    app.get("/", response_model=None)(page.show)

    async def get(client: httpx.AsyncClient) -> httpx.Response:
        answer = await client.get(path)
        page.answered += 1
        return answer

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with (
            asyncio.timeout(60),
            httpx.AsyncClient(transport=transport, base_url="http://here") as client,
        ):
            return await asyncio.gather(*(get(client) for _ in range(READERS)))

    return asyncio.run(ask())


def test_everyone_is_answered_and_four_are_worked_on_at_a_time() -> None:
    page = Page()
    assert {answer.status_code for answer in answers(page)} == {200}
    assert page.most == AT_ONCE


def test_who_waited_for_too_long_is_told_when_to_come_back() -> None:
    responses = answers(Page(refused=READERS - AT_ONCE), wait_s=0.2)
    assert Counter(answer.status_code for answer in responses) == {200: AT_ONCE, 503: 56}
    refused = [answer for answer in responses if answer.status_code == 503]
    assert {answer.headers["retry-after"] for answer in refused} == {str(RETRY_AFTER_S)}


def test_slow_readers_keep_nobody_waiting() -> None:
    assert {answer.status_code for answer in answers(Page(begun=READERS))} == {200}


def test_a_request_that_breaks_gives_its_place_back() -> None:
    assert {answer.status_code for answer in answers(Page(), path="/?broken=true")} == {500}
