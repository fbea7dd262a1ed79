"""Why hosts of measured runs cost more than a schedule with foresight, by run and price book."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from include.results.bounds.parts import CostParts, HostUse, leased_for, parts_of
from include.results.tables.measured import measured_rows
from include.runs.measurements.store import RunStore

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from include.experiment.run import Run
    from include.model.host import PriceBook
    from include.results.bounds.demand import Series
    from include.results.bounds.report import BoundRow


MEASURED = ("queue", "host_utilisation", "lease")


@dataclass(frozen=True, slots=True)
class RegretRow:
    """What one run was billed under one price book, in parts."""

    run: Run
    price_book: str
    parts: CostParts


def regret_rows(folder: Path, rows: Iterable[BoundRow]) -> Iterator[RegretRow]:
    """One row per run that has readings and price book of these bounds.

    Raises StoreError, naming it, when a file of a run cannot be read.
    """
    for _, (first, *others) in groupby(rows, lambda row: id(row.load)):
        load, books = first.load, [row.book for row in (first, *others)]
        for run in load.runs:
            store = RunStore(folder, run.spec.experiment, run.spec.run_id)
            queue, hosts, leases = (measured_rows(store, name) for name in MEASURED)
            if not queue.num_rows:
                continue
            use = _use(run, queue, hosts, leases)
            leased_s = leased_for(load.demand, load.cover, run.flavor, use)
            for book in books:
                parts = parts_of(leased_s, book, _billed(run, book, leases))
                yield RegretRow(run, book.name, parts)


def _use(run: Run, queue: pa.Table, hosts: pa.Table, leases: pa.Table) -> HostUse:
    """What was measured, by reading of the monitor."""
    times_s = np.unique(queue["time_s"].to_numpy())
    names = run.topology.operator_names
    instances = np.zeros((len(names), len(times_s)), dtype=np.int64)
    places = {name: place for place, name in enumerate(names)}
    # A chained operator has no instances of its own.
    operator_at = np.array([places.get(name, -1) for name in queue["operator"].to_pylist()])
    has_instances, read_at = operator_at >= 0, np.searchsorted(times_s, queue["time_s"].to_numpy())
    instances[operator_at[has_instances], read_at[has_instances]] = queue["instances"].to_numpy()[
        has_instances
    ]
    used_s = hosts["time_s"].to_numpy()[hosts["instances"].to_numpy() > 0]
    used_s = used_s[np.isin(used_s, times_s)]
    return HostUse(
        times_s=times_s,
        instances=instances,
        hosts=np.bincount(np.searchsorted(times_s, used_s), minlength=len(times_s)),
        leased_s=float(_lasted_s(leases).sum()),
    )


def _billed(run: Run, book: PriceBook, leases: pa.Table) -> float:
    """What all leases cost under a price book, as the table ``cost`` has it."""
    paid_for_s = leases["paid_until_s"].to_numpy() - leases["ordered_s"].to_numpy()
    if book.btu_s != 60 * run.spec.btu_min:
        paid_for_s = np.zeros(len(paid_for_s))  # it was prolonged by another BTU
    return sum(map(book.resource_cost, _lasted_s(leases).tolist(), paid_for_s.tolist()))


def _lasted_s(leases: pa.Table) -> Series:
    lasted: Series = leases["ended_s"].to_numpy() - leases["ordered_s"].to_numpy()
    return lasted
