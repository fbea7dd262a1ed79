"""Why the hosts of measured runs cost more than a schedule with foresight, by run and price book.

``python -m include.cli bound FOLDER --parts`` prints it and writes ``<experiment>/regret.csv``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from include.bounds.parts import CostParts, HostUse, parts_of
from include.bounds.report import is_bounded, is_whole
from include.files import csv_text, write_bytes
from include.measurements.store import RunStore
from include.model.errors import StoreError
from include.tables.staged import read_table

if TYPE_CHECKING:
    from include.experiment.run import Run
    from include.model.host import PriceBook

NAME = "regret.csv"
PARTS: tuple[str, ...] = CostParts.__slots__


@dataclass(frozen=True, slots=True)
class RegretRow:
    """What one run was billed under one price book, in parts."""

    run: Run
    price_book: str
    parts: CostParts


def regret_rows(folder: Path, runs: Iterable[Run]) -> Iterator[RegretRow]:
    """One row per run that `has_parts` and price book that is bounded.

    Raises StoreError, naming it, when a file of a run cannot be read.
    """
    for run in runs:
        if not has_parts(run):
            continue
        store = RunStore(folder, run.spec.experiment, run.spec.run_id)
        rows = {name: _rows(store, name) for name in ("queue", "host_utilisation", "lease")}
        for book in filter(is_bounded, run.price_books):
            parts = parts_of(run, book, _use(run, book, rows))
            yield RegretRow(run, book.name, parts)


def has_parts(run: Run) -> bool:
    """Whether what a run was billed can be taken apart: its duration is whole minutes, and its
    instances reserve CPU, so that memory and CPU say which hosts they take."""
    return is_whole(run.spec.duration_s) and not run.flavor.cpu_shared


def write_regret(folder: Path, rows: Iterable[RegretRow]) -> Path:
    """Write the rows as CSV, costs with every digit. Returns the path."""
    path = folder / NAME
    columns = ("run", "price_book", *PARTS, "billed")
    cells = (
        [row.run.spec.run_id, row.price_book, *map(repr, astuple(row.parts)), repr(row.parts.total)]
        for row in rows
    )
    write_bytes(path, csv_text(columns, cells).encode())
    return path


def _rows(store: RunStore, table: str) -> list[dict[str, Any]]:
    paths = sorted(store.part(table, 0).parent.glob("*.parquet"))
    rows = [row for path in paths for row in read_table(path)]
    if not rows:
        where = store.part(table, 0).parent
        raise StoreError(
            f"{where} has no rows, though the run is complete. Remove the run (python -m "
            f"include.cli remove {store.folder} {store.run_id}) and measure it again."
        )
    return rows


def _use(run: Run, book: PriceBook, rows: dict[str, list[dict[str, Any]]]) -> HostUse:
    """What was measured, by reading of the monitor."""
    times = {time_s: k for k, time_s in enumerate(sorted({one["time_s"] for one in rows["queue"]}))}
    places = {name: k for k, name in enumerate(run.topology.operator_names)}
    instances = np.zeros((len(places), len(times)), dtype=np.int64)
    for one in rows["queue"]:
        if one["operator"] in places:  # a chained operator has no instances of its own
            instances[places[one["operator"]], times[one["time_s"]]] = one["instances"]
    hosts = np.zeros(len(times), dtype=np.int64)
    for one in rows["host_utilisation"]:
        if one["time_s"] in times:
            hosts[times[one["time_s"]]] += one["instances"] > 0
    leased = [(one["ended_s"] - one["ordered_s"], one) for one in rows["lease"]]
    prolonged = book.btu_s == 60 * run.spec.btu_min
    billed = sum(
        book.resource_cost(took_s, one["paid_until_s"] - one["ordered_s"] if prolonged else 0.0)
        for took_s, one in leased
    )
    return HostUse(
        instances=instances,
        hosts=hosts,
        leased_s=sum(took_s for took_s, _ in leased),
        billed=billed,
    )
