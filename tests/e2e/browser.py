"""Chromium of the system, driven by Playwright; who has none skips what needs it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or ""
NEEDS_CHROMIUM = pytest.mark.skipif(
    not CHROMIUM, reason="needs Chromium (Debian: apt-get install chromium)"
)
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
PATIENCE_MS = 60_000


@contextmanager
def new_page(**context: Any) -> Iterator[Page]:
    """A page of a browser of its own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        opened = browser.new_context(**context)
        opened.set_default_timeout(PATIENCE_MS)
        yield opened.new_page()
        browser.close()
