"""Files that publishing takes away while the page is about to give them out."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from include.model.errors import PublishError
from include.results.reports.publish import publish
from tests.builders_staged import let_pass, stage
from tidebench.page import app as page_app
from tidebench.page.bundle import bundle

pytestmark = pytest.mark.airflow


def test_a_file_that_is_taken_away_at_that_moment_is_told_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_app, "find_file", lambda *_: tmp_path / "report.html")
    app = page_app.create_app()
    app.dependency_overrides[page_app.MAY_READ] = lambda: None

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            return await client.get("/files/demo/published/report.html")

    answer = asyncio.run(ask())
    assert answer.status_code == 404
    assert "Load the page again" in answer.text


def test_a_zip_of_two_editions_breaks_off(tmp_path: Path) -> None:
    folder, url = let_pass(stage(tmp_path / "demo")), f"sqlite:///{tmp_path / 'results.db'}"
    publish(folder, url)
    pieces = bundle(tmp_path, "demo")
    next(pieces)
    publish(folder, url)
    with pytest.raises(PublishError, match="published anew"):
        list(pieces)
