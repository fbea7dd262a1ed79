"""Runs as metrics of Prometheus. A value that no window committed has no sample, never a zero.

To add a metric: a line in ``METRICS`` and one in ``samples_of``. A test compares the dashboard in
infra/grafana with ``METRICS``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
)

from include.files.whole import changed_s
from include.model.compliance import LEVELS
from include.runs.measurements.store import RunStore
from include.runs.monitoring.progress import DAMAGED, RunProgress
from include.runs.stored import stored_run

OF_RUN = ("experiment", "run")
"""Labels of every metric of a run."""
METRICS: dict[str, tuple[str, tuple[str, ...]]] = {
    "run_info": (
        "What is run; always 1.",
        ("controller", "pattern", "topology", "testbed", "btu_min", "seed"),
    ),
    "run_complete": ("1 once the run is complete, 0 before.", ()),
    "windows": ("Windows of the run.", ()),
    "windows_committed": ("Windows that are committed.", ()),
    "run_time_seconds": ("Seconds of the run that are measured.", ()),
    "run_duration_seconds": ("Seconds that the run takes in all.", ()),
    "last_commit_timestamp_seconds": ("When the last window was committed, Unix time.", ()),
    "waiting_items": ("Items in the queue of an operator, at the last reading.", ("operator",)),
    "instances": (
        "Instances of an operator that run or start, at the last reading.",
        ("operator",),
    ),
    "ready_instances": ("Those of them that can take items.", ("operator",)),
    "recommended_instances": (
        "Instances of an operator, had all of the last decision been carried out.",
        ("operator",),
    ),
    "advised_instances": (
        "Instances that an advisor would have made at its last decision of those it saw.",
        ("advisor", "operator"),
    ),
    "advised_hosts": ("Hosts that it would have made of those it saw.", ("advisor",)),
    "advice_failed_total": ("How often an advisor failed.", ("advisor",)),
    "hosts": ("Hosts at the end of the last window.", ()),
    "leases": ("Leases since the run began; state is open or ended.", ("state",)),
    "decisions_total": (
        "Actions that the controller decided on, wait among them, by reason.",
        ("action", "reason", "accepted"),
    ),
    "scalings_total": ("Changes that were carried out.", ("activity",)),
    "samples_total": ("Items whose duration was recorded.", ()),
    "samples_within_total": ("Those of them within a level of compliance.", ("level",)),
    "compliance_ratio": ("Share of the recorded items within a level so far.", ("level",)),
    "resource_cost": ("What the hosts cost if they were released now.", ("price_book",)),
    "penalty_cost": ("What the items cost that were late so far.", ("price_book", "level")),
}
"""By name without ``tidebench_``: what it says, and its labels beside those of every run."""
OF_ALL = {
    "recent_runs": "Runs of which something was written lately.",
    "runs_not_shown": "Those of them beyond the bound, the oldest.",
    "runs_unreadable": "Those of them with files that are missing or damaged.",
}
Sample = tuple[str, tuple[str, ...], float]


def samples_of(progress: RunProgress, *, complete: bool) -> Iterator[Sample]:
    """Name, values of its own labels, and value of everything that is known of a run."""
    run, spec = progress.run, progress.run.spec
    about = (spec.controller, spec.pattern, run.topology.name, spec.testbed)
    yield "run_info", (*about, f"{spec.btu_min:g}", str(spec.seed)), 1
    yield "run_complete", (), complete
    yield "windows", (), spec.windows
    yield "windows_committed", (), progress.windows
    yield "run_duration_seconds", (), spec.duration_s
    if progress.windows:
        yield "run_time_seconds", (), progress.end_s
        yield "last_commit_timestamp_seconds", (), progress.committed_at_s
        yield from _window_samples(progress)
    for reading in progress.queues:
        for name in ("waiting_items", "instances", "ready_instances"):
            yield name, (reading["operator"],), reading[name]
    for operator, instances in progress.recommended.items():
        yield "recommended_instances", (operator,), instances
    yield from _advisor_samples(progress)


def _advisor_samples(progress: RunProgress) -> Iterator[Sample]:
    hosts: dict[str, int] = {}
    for (advisor, operator), advice in progress.advice.items():
        yield "advised_instances", (advisor, operator), advice["advised_instances"]
        hosts[advisor] = advice["hosts"] + advice["would_lease"] - advice["would_release"]
    for advisor, count in hosts.items():
        yield "advised_hosts", (advisor,), count
    for advisor, times in sorted(progress.advice_failed.items()):
        yield "advice_failed_total", (advisor,), times


def _window_samples(progress: RunProgress) -> Iterator[Sample]:
    if progress.hosts is not None:
        yield "hosts", (), progress.hosts
        ended = sum(lease["released"] for lease in progress.leases)
        yield "leases", ("open",), len(progress.leases) - ended
        yield "leases", ("ended",), ended
    for (action, reason, accepted), count in sorted(progress.decisions.items()):
        yield "decisions_total", (action, reason, str(accepted).lower()), count
    for activity, count in sorted(progress.scalings.items()):
        yield "scalings_total", (activity,), count
    yield "samples_total", (), progress.samples
    for level, _ in LEVELS:
        yield "samples_within_total", (level,), progress.within[level]
        if progress.samples:
            yield "compliance_ratio", (level,), progress.within[level] / progress.samples
    for book, cost in progress.resource_costs().items():
        yield "resource_cost", (book,), cost
    for (book, level), cost in progress.penalty_costs().items():
        yield "penalty_cost", (book, level), cost


@dataclass(eq=False)
class RunsCollector:
    """The runs of a data root that are under way or ended within ``within_s``, ``most`` of them.

    What was read of a run is kept, so that a scrape reads only what was committed since the last.
    """

    root: Path
    within_s: float
    most: int
    _known: dict[tuple[Path, tuple[int, int]], RunProgress] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def describe(self) -> list[Metric]:
        """Nothing, so that registering reads no run."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Every metric, of all runs at the time of the scrape."""
        with self._lock:
            recent = recent_runs(self.root, self.within_s, time.time())
            shown = recent[: self.most]
            families = {name: _family(name) for name in METRICS}
            unreadable = sum(not self._add(run, families) for run in shown)
            keys = {_key(run) for run in shown}
            self._known = {key: progress for key, progress in self._known.items() if key in keys}
        counts = (len(recent), len(recent) - len(shown), unreadable)
        for (name, text), count in zip(OF_ALL.items(), counts, strict=True):
            yield GaugeMetricFamily(f"tidebench_{name}", text, value=count)
        yield from families.values()

    def _add(self, run: RecentRun, families: dict[str, Metric]) -> bool:
        """Add what is known of a run; false when not all of it could be read."""
        complete, readable = run.store.manifest.is_file(), True
        progress = self._known.get(_key(run))
        try:
            progress = progress or RunProgress(stored_run(run.store))
            self._known[_key(run)] = progress
            progress.catch_up(run.store)
        except DAMAGED:
            readable = False
        try:
            samples = [
                (name, own_labels, float(value))
                for name, own_labels, value in (
                    samples_of(progress, complete=complete) if progress else ()
                )
            ]
        except DAMAGED:
            return False
        for name, own_labels, value in samples:
            labels = [run.store.folder.name, run.store.run_id, *own_labels]
            families[name].add_metric(labels, value)  # type: ignore[attr-defined]
        return readable


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
        times = [stat.st_mtime, *map(changed_s, (home / "commits", home / "manifest.json"))]
        store = RunStore(folder, home.name)
        yield RecentRun(store, max(times), (stat.st_ino, stat.st_mtime_ns))


def _key(run: RecentRun) -> tuple[Path, tuple[int, int]]:
    return run.store.home, run.identity


def _family(name: str) -> Metric:
    text, own_labels = METRICS[name]
    kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
    return kind(f"tidebench_{name}", text, labels=[*OF_RUN, *own_labels])
