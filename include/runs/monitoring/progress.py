"""How far a run has come: sums over its committed windows, and what stands at the last one's end.

Nothing else is read than what windows have committed, so looking at a run never disturbs it. What
nothing was committed of is absent.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from include.experiment.run import Run
from include.files.whole import read_json
from include.model.compliance import LEVELS
from include.model.decision import StartInstance, StopInstance
from include.model.errors import StoreError
from include.runs.measurements.parquet import read_parquet
from include.runs.measurements.store import RunStore
from include.runs.measurements.window import read_window
from include.runs.trace import NAMES

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]
CHANGES = {NAMES[StartInstance]: 1, NAMES[StopInstance]: -1}
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
    _standing: list[Row] | None = None

    @property
    def leases(self) -> list[Row] | None:
        """The lease log so far; None when the last window did not commit what stands of it."""
        return None if self._standing is None else [*self._ended, *self._standing]

    def resource_costs(self) -> dict[str, float]:
        """By price book, what the hosts cost if all of them were released now."""
        costs, btu_s = {}, self.run.spec.btu_min * 60
        for book in self.run.price_books if self.leases is not None else ():
            costs[book.name] = sum(
                book.resource_cost(
                    one["ended_s"] - one["ordered_s"],
                    one["paid_until_s"] - one["ordered_s"] if book.btu_s == btu_s else 0.0,
                )
                for one in self.leases or ()
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
        damaged; what was read before stays. So it is for the moment in which the rows of a run
        that ends are gathered.
        """
        wholes: dict[str, pa.Table] = {}
        while (commit := store.commit(self.windows)).is_file():
            content = read_json(commit)
            end_s = content["summary"]["end_min"] * 60
            decisions, queues, advice = (
                _within(_table(store, one, self.windows, wholes), self._begin_s, end_s)
                if one != "advice" or self.run.spec.advisors
                else []
                for one in ("decision", "queue", "advice")
            )
            later = self._copied()
            later._add(content, decisions, queues)
            later._advised([one for one in advice if one["time_s"] < later.end_s])
            later.committed_at_s = commit.stat().st_mtime
            for one in fields(self):  # all of the window, or nothing where the commit is damaged
                setattr(self, one.name, getattr(later, one.name))

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
        self._standing = _as_rows(commit["leases"]) if "leases" in commit else None
        # A decision at the end of a window is the first of the next one.
        of_window = [one for one in decisions if one["time_s"] < self.end_s]
        self.decisions.update((one["action"], one["reason"], one["accepted"]) for one in of_window)
        readings = [*self.queues, *queues]
        self._recommend(of_window, readings)
        self.queues = _last(readings)
        self.windows += 1

    def _advised(self, advice: list[Row]) -> None:
        given = [one for one in advice if not one["failed"]]
        self.advice |= {(one["advisor"], one["operator"]): one for one in given}
        self.advice_failed.update(dict.fromkeys((one["advisor"] for one in advice), 0))
        failed = {(one["advisor"], one["time_s"]) for one in advice if one["failed"]}
        self.advice_failed.update(advisor for advisor, _ in failed)

    @property
    def _begin_s(self) -> float:
        """Where the window begins that is to be read next."""
        return self.windows * self.run.spec.window_s

    def _recommend(self, decisions: list[Row], readings: list[Row]) -> None:
        if not decisions:
            return
        at_s = max(one["time_s"] for one in decisions)
        seen = _last([one for one in readings if one["time_s"] <= at_s])
        asked = Counter[str]()
        for one in decisions:
            if one["time_s"] == at_s:
                asked[one["operator"]] += CHANGES.get(one["action"], 0)
        self.recommended = {
            one["operator"]: one["instances"] + asked[one["operator"]] for one in seen
        }


def begin(store: RunStore) -> RunProgress:
    """Of a run of which nothing was read yet. Raises StoreError when it cannot be read."""
    try:
        return RunProgress(Run.from_json(store.run_json.read_text(encoding="utf-8")))
    except DAMAGED as error:
        raise StoreError(f"{store.run_json} cannot be read ({type(error).__name__})") from error


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
    return list({one["operator"]: one for one in readings}.values())
