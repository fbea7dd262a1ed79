"""What the gate said, as data: written by the gate, read by publication and the page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from include.files.whole import digest, write_bytes
from include.model.errors import GateFailed
from include.results.tables.catalogue import INPUT_CHECKS, PUBLISHED
from include.results.tables.quarantine import NAME, Check, Quarantine, as_json
from include.results.tables.staged import staged_path


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Every check of one experiment; ``staged`` says of which files, by their SHA-256.

    ``quarantined`` are the runs that were left out of these files before, and why.
    """

    experiment: str
    staged: Mapping[str, str]
    checks: tuple[Check, ...]
    quarantined: Quarantine = field(default_factory=dict)

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that keep everything from being published."""
        return tuple(check for check in self.checks if check.refuses)

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment": self.experiment,
            "passed": not self.failed,
            "staged": dict(self.staged),
            "checks": [asdict(check) for check in self.checks],
            "quarantined": as_json(self.quarantined),
        }


def verdict_path(folder: Path) -> Path:
    """Where the verdict of an experiment lies: beside its evidence."""
    return folder / "data_docs" / "verdict.json"


def staged_digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every staged file that is there."""
    paths = {table: staged_path(folder, table) for table in (*PUBLISHED, INPUT_CHECKS)}
    paths["quarantine"] = folder / "staged" / NAME
    return {table: digest(path) for table, path in paths.items() if path.exists()}


def write_verdict(path: Path, verdict: Verdict) -> None:
    """Write verdict.json whole."""
    text = json.dumps(verdict.to_json(), indent=2, default=str)
    write_bytes(path, text.encode() + b"\n")


def passed_verdict(folder: Path) -> dict[str, Any]:
    """The verdict on exactly what is staged now, if it passed.

    Raises GateFailed, saying what to do, when the tables were not checked, were built again
    since, or did not pass.
    """
    path = verdict_path(folder)
    try:
        verdict: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise GateFailed(f"{path} cannot be read ({error}). Check the tables first.") from error
    if verdict["staged"] != staged_digests(folder):
        raise GateFailed(
            f"the tables in {folder / 'staged'} are not those that were checked. "
            "Check them again before publishing."
        )
    if not verdict["passed"]:
        raise GateFailed(
            f"the tables in {folder / 'staged'} did not pass their checks; {path} names the "
            "rows. Nothing is published until they do."
        )
    return verdict
