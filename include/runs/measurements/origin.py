"""Where a stored run comes from: which DAG run measured it, and when it was complete.

Apart from what was measured, because the same measurements may come from anybody at any time.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from include.files.whole import read_json, write_json
from include.model.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from include.runs.measurements.store import RunStore


@dataclass(frozen=True, slots=True)
class DagRun:
    """A DAG run that measured or published; both empty where it was the command line."""

    dag_id: str = ""
    dag_run: str = ""


BY_HAND = DagRun()


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """When a run was complete (ISO 8601 in UTC, so that text order is time order) and by whom."""

    run: str
    measured_at: str
    by: DagRun = BY_HAND


def mark_origin(store: RunStore, by: DagRun) -> None:
    """Say who measures what is stored from here on; nothing is stored for the command line."""
    if by == BY_HAND:
        _mark(store).unlink(missing_ok=True)
    else:
        write_json(_mark(store), asdict(by))


def origin_of(store: RunStore) -> Origin | None:
    """Of a complete run; None of any other. Raises StoreError when what is stored is damaged."""
    try:
        complete_s = store.manifest.stat().st_mtime
    except OSError:
        return None
    mark = _mark(store)
    try:
        by = DagRun(**read_json(mark)) if mark.is_file() else BY_HAND
    except TypeError as error:
        raise StoreError(f"{mark} is damaged ({error}); remove it and publish again") from error
    measured_at = datetime.fromtimestamp(complete_s, UTC).isoformat(timespec="seconds")
    return Origin(run=store.run_id, measured_at=measured_at, by=by)


def _mark(store: RunStore) -> Path:
    return store.home / "origin.json"
