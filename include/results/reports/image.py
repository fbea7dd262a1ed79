"""A figure of every controller as a file of its own, from what was published."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from include.files.whole import write_bytes
from include.results.reports.figures import front, style, tournament
from include.results.reports.tournament import matches
from include.results.tables.staged import Row, read_table


def write_image(folder: Path, out: Path) -> None:
    """Draw ``folder/published/tournament.parquet`` to the SVG file ``out``.

    Raises StoreError when nothing was published in ``folder``, the folder of an experiment.
    """
    _write(tournament.draw(matches(_published(folder))), out)


def write_front(folder: Path, out: Path, fitted: Collection[str]) -> None:
    """Draw cost against compliance from the same rows; ``fitted`` patterns are said to be so."""
    _write(front.draw(_published(folder), fitted), out)


def _published(folder: Path) -> list[Row]:
    return read_table(folder / "published" / "tournament.parquet")


def _write(svg: str, out: Path) -> None:
    write_bytes(out, (style.standalone(svg) + "\n").encode())
