"""Sixty requests at once: four are worked on, the others wait in order or are told to come back."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import httpx
from starlette.responses import Response

from tidebench.page.concurrency import AT_ONCE, RETRY_AFTER_S, ConcurrencyLimit

READERS = 60


class Page:
    """An application that counts how many of its requests are worked on, and then sent."""

    def __init__(self, work_s: float, send_s: float = 0.0) -> None:
        self.work_s, self.send_s = work_s, send_s
        self.now = self.most = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(self.work_s)
        self.now -= 1
        if scope["path"] == "/broken":
            raise RuntimeError("broken")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.sleep(self.send_s)
        await send({"type": "http.response.body", "body": b""})


def answers(page: Page, wait_s: float, path: str = "/") -> list[httpx.Response]:
    limit = ConcurrencyLimit(page, busy=Response("busy", 503), wait_s=wait_s)

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(limit, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            return await asyncio.gather(*(client.get(path) for _ in range(READERS)))

    return asyncio.run(ask())


def test_everyone_is_answered_and_four_are_worked_on_at_a_time() -> None:
    page = Page(work_s=0.01)
    assert {answer.status_code for answer in answers(page, wait_s=60)} == {200}
    assert page.most == AT_ONCE


def test_who_waited_for_too_long_is_told_when_to_come_back() -> None:
    responses = answers(Page(work_s=0.5), wait_s=0.2)
    assert Counter(answer.status_code for answer in responses) == {200: AT_ONCE, 503: 56}
    refused = [answer for answer in responses if answer.status_code == 503]
    assert {answer.headers["retry-after"] for answer in refused} == {str(RETRY_AFTER_S)}


def test_slow_readers_keep_nobody_waiting() -> None:
    assert {response.status_code for response in answers(Page(0.0, send_s=0.5), wait_s=0.4)} == {
        200
    }


def test_a_request_that_breaks_gives_its_place_back() -> None:
    assert {response.status_code for response in answers(Page(0.0), wait_s=5, path="/broken")} == {
        500
    }
