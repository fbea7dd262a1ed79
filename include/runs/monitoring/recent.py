"""Which runs of a data root somebody may want to watch: those under way, and those just ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from include.runs.measurements.store import RunStore


@dataclass(frozen=True, slots=True)
class RecentRun:
    """A run, and when something was last written of it (``touched_s``, Unix time).

    ``identity`` is another one when the run is provisioned again.
    """

    store: RunStore
    touched_s: float
    identity: tuple[int, int]


def recent_runs(root: Path, within_s: float, now_s: float) -> list[RecentRun]:
    """Runs of which something was written within ``within_s``, the newest first."""
    recent = [run for run in _runs(root) if run.touched_s >= now_s - within_s]
    return sorted(recent, key=lambda run: (-run.touched_s, run.store.run_id))


def _runs(root: Path) -> Iterator[RecentRun]:
    for path in root.glob("*/runs/*/run.json"):
        home, folder = path.parent, path.parents[2]
        try:
            stat = path.stat()
        except OSError:
            continue  # removed a moment ago
        times = [stat.st_mtime, *map(_touched_s, (home / "commits", home / "manifest.json"))]
        store = RunStore(folder, folder.name, home.name)
        yield RecentRun(store, max(times), (stat.st_ino, stat.st_mtime_ns))


def _touched_s(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
