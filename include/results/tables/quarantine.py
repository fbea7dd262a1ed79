"""Runs that are left out of the staged tables, and why: a file beside the tables.

Building the tables writes it anew, with the runs whose files cannot be read; the gate adds those
that its checks fail. So the tables in ``staged`` always hold every run but these, and a run that
is good again is back with the next report.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from include.files.whole import write_bytes
from include.model.errors import GateFailed, StoreError, command

NAME = "quarantine.json"
_ROWS_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One expectation of one table. ``rows`` are the offending ones.

    A run that does not pass one of ``severity`` fail is left out; warn is a warning to readers.
    """

    table: str
    columns: tuple[str, ...]
    expectation: str
    sentence: str
    passed: bool
    rows: tuple[Mapping[str, Any], ...] = ()
    severity: str = "fail"

    @property
    def refuses(self) -> bool:
        """Whether it failed and keeps a run from being published."""
        return not self.passed and self.severity == "fail"

    def __str__(self) -> str:
        where = f"{self.table}.{'/'.join(self.columns)}" if self.columns else self.table
        shown = [
            "      " + ", ".join(f"{name}={value}" for name, value in row.items())
            for row in self.rows[:_ROWS_SHOWN]
        ]
        more = len(self.rows) - _ROWS_SHOWN
        if more > 0:
            shown.append(f"      and {more} more")
        return "\n".join([f"  - {where}: {self.sentence} ({self.expectation})", *shown])


Quarantine = Mapping[str, tuple[Check, ...]]
"""Per run that is left out the checks that it failed."""


def unreadable(error: StoreError) -> Check:
    """The failed check of a run whose measurements cannot be read."""
    return Check(
        table="measurements",
        columns=(),
        expectation="its files must be there and whole",
        sentence=str(error),
        passed=False,
    )


def read_quarantine(folder: Path) -> Quarantine:
    """The quarantine of an experiment's staged tables. Raises StoreError when it is damaged."""
    path = folder / "staged" / NAME
    if not path.is_file():
        return {}
    try:
        return TypeAdapter(dict[str, tuple[Check, ...]]).validate_json(path.read_bytes())
    except ValidationError as error:
        raise StoreError(f"{path} is damaged ({error}). Build the tables again.") from error


def write_quarantine(staged: Path, quarantine: Quarantine) -> None:
    """Write it into a folder of staged tables."""
    content = json.dumps(as_json(quarantine), indent=2, default=str)
    write_bytes(staged / NAME, content.encode() + b"\n")


def as_json(quarantine: Quarantine) -> dict[str, Any]:
    """Plain values, runs in order."""
    return {run: [asdict(check) for check in quarantine[run]] for run in sorted(quarantine)}


def sentences(quarantine: Quarantine) -> Iterator[str]:
    """For logs and terminals: every run that is left out, with what is held against it."""
    for run in sorted(quarantine):
        listed = "\n".join(str(check) for check in quarantine[run])
        yield f"left out: run {run} because\n{listed}"


def require_none_left_out(folder: Path) -> None:
    """Raises GateFailed, naming them, where runs of a published experiment were left out."""
    if quarantine := read_quarantine(folder):
        runs = f"{len(quarantine)} run{'s' if len(quarantine) > 1 else ''}"
        raise GateFailed(
            f"published without {runs} that did not pass: {', '.join(sorted(quarantine))}. "
            f"{folder / 'staged' / NAME} says why. {command('run', 'SPEC')} measures "
            "again what is damaged or missing"
        )
