"""docs/metrics.md lists the tables of today."""

from __future__ import annotations

from include.results.tables.dictionary import PAGE, with_tables


def test_the_page_is_that_of_the_schemas() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_tables(page), "run make dictionary"
