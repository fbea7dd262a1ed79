"""Why hosts of measured runs cost more than a schedule with foresight, by run and price book."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from include.results.bounds.parts import HostUse, leased_for, parts_of
from include.results.tables.measured import measured_rows
from include.runs.measurements.store import RunStore

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from include.experiment.run import Run
    from include.model.host import PriceBook
    from include.results.bounds.report import BoundRow
    from include.runs.measurements.rows import CostPartRow


MEASURED = ("queue", "host_utilisation", "lease")
LEASE_TIMES = ["ordered_s", "ended_s", "paid_until_s"]


def regret_rows(folder: Path, rows: Iterable[BoundRow]) -> Iterator[tuple[Run, CostPartRow]]:
    """One row per run that has readings and price book of these bounds.

    Raises StoreError, naming it, when a file of a run cannot be read.
    """
    for _, (first, *others) in groupby(rows, lambda row: id(row.load)):
        load, books = first.load, [row.book for row in (first, *others)]
        for run in load.runs:
            store = RunStore(folder, run.spec.run_id)
            queue, hosts, leases = (measured_rows(store, name) for name in MEASURED)
            if not queue.num_rows:
                continue
            use = _use(run, queue, hosts, leases)
            lease_times = leases.select(LEASE_TIMES).to_pydict()
            leased_s = leased_for(load.demand, load.cover, run.flavor, use)
            for book in books:
                billed = resource_cost(lease_times, book, run.spec.window_s)
                yield run, parts_of(leased_s, book, billed)


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
    used = np.bincount(np.searchsorted(times_s, used_s), minlength=len(times_s))
    # An engine that has just started says of no host what it has: as many as at the next reading.
    read = np.flatnonzero((used > 0) | (instances.sum(axis=0) == 0))
    if read.size:
        next_read = np.searchsorted(read, np.arange(len(times_s)))
        used = used[read[np.minimum(next_read, read.size - 1)]]
    return HostUse(
        times_s=times_s,
        instances=instances,
        hosts=used,
        leased_s=float((leases["ended_s"].to_numpy() - leases["ordered_s"].to_numpy()).sum()),
    )


def resource_cost(
    leases: Mapping[str, Sequence[float]], book: PriceBook, run_btu_s: float
) -> float:
    """What leases cost under a price book, as the table ``cost`` has it, in a run that planned with
    BTUs of ``run_btu_s``; ``leases`` are columns of that table."""
    planned = book.btu_s == run_btu_s  # else it was prolonged by another BTU
    times = zip(*(leases[name] for name in LEASE_TIMES), strict=True)
    return sum(
        book.resource_cost(ended_s - ordered_s, (paid_until_s - ordered_s) if planned else 0.0)
        for ordered_s, ended_s, paid_until_s in times
    )
