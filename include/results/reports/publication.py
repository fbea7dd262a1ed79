"""What the results database remembers of a publication, beside the tables themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from include.runs.measurements.origin import BY_HAND, DagRun, Origin, origin_of


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """One publication of an experiment. ``edition`` is a hash of its tables."""

    experiment: str
    edition: str
    checks: int
    """How many checks its tables passed; with one that failed they would not be published."""
    left_out: tuple[str, ...] = ()
    """Runs that did not pass; what an earlier edition says of them goes."""
    by: DagRun = BY_HAND
    origins: Sequence[Origin] = ()
    """Where its runs come from; of a run that is not here nothing is known."""
    published_at: str = field(default_factory=_now)
    """ISO 8601 in UTC, so that text order is time order."""


def origins_of(folder: Path, runs: Iterable[str]) -> list[Origin]:
    """Where the runs of an experiment come from, of those that are stored in its folder."""
    from include.runs.measurements.store import RunStore

    stores = (RunStore(folder, folder.name, run) for run in runs)
    return [origin for store in stores if (origin := origin_of(store))]
