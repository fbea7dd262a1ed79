"""docs/metrics.md lists the tables of today."""

from __future__ import annotations

from pathlib import Path

from include.results.tables.dictionary import dictionary

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_the_page_is_that_of_the_schemas() -> None:
    assert PAGE.read_text(encoding="utf-8") == dictionary(), "run make dictionary"
