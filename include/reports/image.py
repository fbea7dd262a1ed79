"""The figure of a tournament as a file of its own, from what was published."""

from __future__ import annotations

from pathlib import Path

from include.files import write_bytes
from include.reports.figures import style, tournament
from include.reports.tournament import matches
from include.tables.staged import read_table


def write_image(folder: Path, out: Path) -> None:
    """Draw ``folder/published/tournament.parquet`` to the SVG file ``out``.

    Raises StoreError when nothing was published in ``folder``, the folder of an experiment.
    """
    found = matches(read_table(folder / "published" / "tournament.parquet"))
    write_bytes(out, (style.standalone(tournament.draw(found)) + "\n").encode())
