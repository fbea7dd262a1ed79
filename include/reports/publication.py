"""What the results database remembers of a publication, beside the tables themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class DagRun:
    """The DAG run that published; both empty where it was the command line."""

    dag_id: str = ""
    dag_run: str = ""


BY_HAND = DagRun()


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
    published_at: str = field(default_factory=_now)
    """ISO 8601 in UTC, so that text order is time order."""
