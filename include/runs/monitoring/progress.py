"""Progress of a run: sums over its committed windows, and the state at the end of the last one.

Only committed files are read, so watching never disturbs a run. What was not committed is absent.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from include.experiment.run import Run
from include.files.whole import read_json
from include.model.compliance import LEVELS
from include.model.decision import ACTION_NAMES, StartInstance, StopInstance
from include.model.errors import StoreError
from include.runs.measurements.parquet import read_parquet
from include.runs.measurements.store import RunStore
from include.runs.measurements.window import read_window

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]
CHANGES = {ACTION_NAMES[StartInstance]: 1, ACTION_NAMES[StopInstance]: -1}
"""By action, by how much it changes the instances of its operator. A migration does not."""


DAMAGED = (StoreError, OSError, LookupError, TypeError, ValueError, AttributeError)
"""What comes of a file that is JSON or Parquet and not as we write it."""


@dataclass(slots=True)
class RunProgress:
    """What ``windows`` committed windows of ``run`` came to. Counts are since the run began."""

    run: Run
    windows: int = 0
    end_s: float = 0.0
    committed_at_s: float = 0.0
    """When the last of them was committed, Unix time."""
    hosts: int | None = None
    samples: int = 0
    within: Counter[str] = field(default_factory=Counter)
    scalings: Counter[str] = field(default_factory=Counter)
    decisions: Counter[tuple[str, str, bool]] = field(default_factory=Counter)
    """By action, reason and whether it was accepted."""
    queues: list[Row] = field(default_factory=list)
    """The last reading of every operator."""
    recommended: dict[str, int] = field(default_factory=dict)
    """Instances by operator, had all of the last decision been carried out, accepted or not."""
    advice: dict[tuple[str, str], Row] = field(default_factory=dict)
    """By advisor and operator, the last advice that did not fail."""
    advice_failed: Counter[str] = field(default_factory=Counter)
    """By advisor, how often it failed."""
    _ended: list[Row] = field(default_factory=list)
    _standing: list[Row] = field(default_factory=list)

    @property
    def leases(self) -> list[Row]:
        """The lease log so far."""
        return [*self._ended, *self._standing]

    def resource_costs(self) -> dict[str, float]:
        """By price book, what the hosts cost if all of them were released now."""
        costs, btu_s = {}, self.run.spec.btu_min * 60
        for book in self.run.price_books if self.windows else ():
            costs[book.name] = sum(
                book.resource_cost(
                    lease["ended_s"] - lease["ordered_s"],
                    lease["paid_until_s"] - lease["ordered_s"] if book.btu_s == btu_s else 0.0,
                )
                for lease in self.leases
            )
        return costs

    def penalty_costs(self) -> dict[tuple[str, str], float]:
        """By price book and level, what the items cost that were late by now."""
        every = self.run.calibration["sample_every_items"]
        return {
            (book.name, level): (self.samples - self.within[level]) * every * book.penalty_per_item
            for book in self.run.price_books
            for level, _ in LEVELS
        }

    def catch_up(self, store: RunStore) -> None:
        """Read what was committed since. Of a run that has ended all tables are whole files.

        Raises StoreError when a file is missing, and that or one of ``DAMAGED`` when one is
        damaged; what was read before stays. A run that has just ended may raise it once, while its
        rows are being gathered.
        """
        wholes: dict[str, pa.Table] = {}
        while (commit := store.commit(self.windows)).is_file():
            content = read_json(commit)
            begin_s = self.windows * self.run.spec.window_s
            end_s = content["summary"]["end_min"] * 60
            decisions, queues, advice = (
                _within(_table(store, table, self.windows, wholes), begin_s, end_s)
                if table != "advice" or self.run.spec.advisors
                else []
                for table in ("decision", "queue", "advice")
            )
            later = self._copied()
            later._add(content, decisions, queues)
            later._advised([row for row in advice if row["time_s"] < later.end_s])
            later.committed_at_s = commit.stat().st_mtime
            # All of the window, or nothing where the commit is damaged.
            for attribute in fields(self):
                setattr(self, attribute.name, getattr(later, attribute.name))

    def _copied(self) -> RunProgress:
        return replace(
            self,
            within=self.within.copy(),
            scalings=self.scalings.copy(),
            decisions=self.decisions.copy(),
            advice=self.advice.copy(),
            advice_failed=self.advice_failed.copy(),
            _ended=[*self._ended],
        )

    def _add(self, commit: Row, decisions: list[Row], queues: list[Row]) -> None:
        summary = commit["summary"]
        self.end_s, self.hosts = _number(summary["end_min"]) * 60, int(_number(summary["hosts"]))
        self.samples += int(_number(summary["samples"]))
        for counts, name in ((self.within, "samples_within"), (self.scalings, "scalings")):
            counts.update({key: int(_number(value)) for key, value in summary[name].items()})
        self._ended += _as_rows(commit["ended_leases"])
        self._standing = _as_rows(commit["leases"])
        # A decision at the end of a window is the first of the next one.
        of_window = [decision for decision in decisions if decision["time_s"] < self.end_s]
        self.decisions.update(
            (decision["action"], decision["reason"], decision["accepted"]) for decision in of_window
        )
        readings = [*self.queues, *queues]
        self._recommend(of_window, readings)
        self.queues = _last(readings)
        self.windows += 1

    def _advised(self, advice: list[Row]) -> None:
        succeeded = [row for row in advice if not row["failed"]]
        self.advice |= {(row["advisor"], row["operator"]): row for row in succeeded}
        self.advice_failed.update(dict.fromkeys((row["advisor"] for row in advice), 0))
        failed = {(row["advisor"], row["time_s"]) for row in advice if row["failed"]}
        self.advice_failed.update(advisor for advisor, _ in failed)

    def _recommend(self, decisions: list[Row], readings: list[Row]) -> None:
        if not decisions:
            return
        at_s = max(decision["time_s"] for decision in decisions)
        last_readings = _last([reading for reading in readings if reading["time_s"] <= at_s])
        changes = Counter[str]()
        for decision in decisions:
            if decision["time_s"] == at_s:
                changes[decision["operator"]] += CHANGES.get(decision["action"], 0)
        self.recommended = {
            reading["operator"]: reading["instances"] + changes[reading["operator"]]
            for reading in last_readings
        }


def _number(value: object) -> float:
    """A number of a commit. Raises TypeError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r:.40} is no number")
    return value


def _table(store: RunStore, table: str, window: int, wholes: dict[str, pa.Table]) -> pa.Table:
    """Rows of a window, or of all where they are gathered; these are read into ``wholes`` once."""
    rows = store.rows(window)
    if rows.is_file():
        return read_window(rows)[table]
    if table not in wholes:
        wholes[table] = read_parquet(store.whole(table))
    return wholes[table]


def _within(rows: pa.Table, begin_s: float, end_s: float) -> list[Row]:
    import pyarrow.compute as pc

    time_s = pc.field("time_s")
    return list(rows.filter((time_s >= begin_s) & (time_s <= end_s)).to_pylist())


def _as_rows(columns: dict[str, list[Any]]) -> list[Row]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _last(readings: list[Row]) -> list[Row]:
    """Per operator the last of its readings, which are in order of time."""
    return list({reading["operator"]: reading for reading in readings}.values())
