"""docs/metrics.md says of every published column what it is, in which unit, and how it is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.results.tables.catalogue import INPUT_CHECKS, PUBLISHED, schema_of
from include.results.tables.dictionary import dictionary

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_the_page_is_that_of_the_schemas() -> None:
    assert PAGE.read_text(encoding="utf-8") == dictionary(), "run make dictionary"


@pytest.mark.parametrize("table", [*PUBLISHED, INPUT_CHECKS])
def test_every_column_has_unit_description_and_formula(table: str) -> None:
    for column in schema_of(table).columns:
        assert all((column.unit, column.description, column.formula)), f"{table}.{column.name}"
