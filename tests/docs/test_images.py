"""Figures of the documentation are seen outside our pages: their colours are their own."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FIGURES = sorted((ROOT / "docs" / "images").rglob("*.svg"))


@pytest.mark.parametrize("figure", FIGURES, ids=lambda path: path.stem)
def test_a_figure_needs_no_style_sheet_of_a_page(figure: Path) -> None:
    text = figure.read_text(encoding="utf-8")
    assert "currentColor" not in text
    assert "var(--" not in text
    assert "prefers-color-scheme:dark" in text
