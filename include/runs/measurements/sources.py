"""Which files of its runs a build of tables was made of, by their SHA-256.

Runs may be measured again at any time, by other code, and files be edited. Figures may be handed on
only with the files that they were made of.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from include.files.whole import digest, write_json

SOURCES = "sources.json"
KEPT = ("run.json", "manifest.json", "arrivals.csv", "code.json")
"""Of every run. Its manifest has the digests of the measured rows."""
ABSENT = ""
"""Stands for the digest of a file that is not there: earlier versions kept no code.json."""


def sources_of(folder: Path, runs: Iterable[str]) -> dict[str, str]:
    """Digests of the kept files of these runs, by their paths below the experiment's folder."""
    paths = [f"runs/{run}/{name}" for run in runs for name in KEPT]
    return {path: digest_or_absent(folder / path) for path in paths}


def digest_or_absent(path: Path) -> str:
    """SHA-256 of a file, or what says that there is none."""
    return digest(path) if path.is_file() else ABSENT


def keep_sources(folder: Path, digests: dict[str, str]) -> None:
    """Write them beside the staged tables."""
    write_json(folder / "staged" / SOURCES, digests)
