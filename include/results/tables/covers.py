"""The covers of runs and the parts of their costs, kept in ``<experiment>/bounds.json``.

``tidebench bound FOLDER`` writes it and every report reads it; without it cover, regret and parts
are absent. By run it has the hash of the resolved spec with the cost of the cover and of the floor
by price book, which depend on the load alone; and the SHA-256 of the run's manifest with the parts
by price book, which depend on what was measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, NonNegativeFloat, TypeAdapter, ValidationError

from include.files.whole import digest, read_json, write_json
from include.model.errors import StoreError, command
from include.results.tables.measured import arrow_columns, complete_runs
from include.runs.measurements.rows import COST_PART, COVER, CostPartRow
from include.runs.measurements.store import RunStore
from include.runs.stored import stored_run

if TYPE_CHECKING:
    import pyarrow as pa

    from include.experiment.run import Run
    from include.results.bounds.report import BoundRow

NAME = "bounds.json"


@dataclass(frozen=True, slots=True)
class _RunBounds:
    spec_hash: str
    cover_cost: Mapping[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]]
    floor_cost: Mapping[str, tuple[NonNegativeFloat, NonNegativeFloat | None]] = field(
        default_factory=dict
    )
    """By price book a lower bound and the best leases found; only where a floor was asked for."""
    measured: str = ""
    parts: tuple[CostPartRow, ...] = field(default=())


_STORED = TypeAdapter(dict[str, _RunBounds])


def stored_runs(folder: Path) -> list[Run]:
    """The complete runs of an experiment as they were resolved. Raises StoreError without any."""
    return [stored_run(RunStore(folder, run)) for run in complete_runs(folder)]


def write_covers(
    folder: Path, rows: Iterable[BoundRow], regrets: Iterable[tuple[Run, CostPartRow]] = ()
) -> None:
    """Write the covers of runs and the parts of their costs in place of those that were there."""
    by_run: dict[str, dict[str, Any]] = {}
    for row in rows:
        for run in row.load.runs if row.cover_found else ():  # free hosts have no regret
            new = {"spec_hash": run.spec_hash, "cover_cost": {}, "floor_cost": {}}
            about = by_run.setdefault(run.spec.run_id, new)
            about["cover_cost"][row.book.name] = row.cover_found
            if row.floor:
                about["floor_cost"][row.book.name] = astuple(row.floor)
    for run, parts in regrets:
        if of_run := by_run.get(name := run.spec.run_id):
            of_run["measured"] = _measured(folder, name)
            of_run.setdefault("parts", []).append(asdict(parts))
    write_json(folder / NAME, by_run)


def read_covers(folder: Path) -> pa.Table:
    """One row per run and price book; none without the file.

    Raises StoreError when it is damaged.
    """
    return _table(
        COVER,
        (
            {"experiment": folder.name, "run": run, "spec_hash": bounds.spec_hash,
             "price_book": book, "cover_cost": cost, "floor_cost": low, "floor_found_cost": high}
            for run, bounds in _stored(folder).items()
            for book, cost in bounds.cover_cost.items()
            for low, high in [bounds.floor_cost.get(book, (None, None))]
        ),
    )  # fmt: skip


def read_parts(folder: Path) -> pa.Table:
    """One row per run and price book with the parts of its cost; none of runs measured since."""
    return _table(
        COST_PART,
        (
            {"experiment": folder.name, "run": run, **asdict(parts)}
            for run, bounds in _stored(folder).items()
            if bounds.parts and bounds.measured == _measured(folder, run)
            for parts in bounds.parts
        ),
    )


def _stored(folder: Path) -> Mapping[str, _RunBounds]:
    path = folder / NAME
    if not path.is_file():
        return {}
    try:
        return _STORED.validate_python(read_json(path))
    except ValidationError as error:
        raise StoreError(
            f"{path} is damaged; remove it, or write it again: {command('bound', folder)}"
        ) from error


def _measured(folder: Path, run: str) -> str:
    """SHA-256 of a run's manifest, which has those of its rows; "" where the run is gone."""
    manifest = folder / "runs" / run / "manifest.json"
    return digest(manifest) if manifest.is_file() else ""


def _table(name: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_pylist(list(rows), pa.schema(arrow_columns(name)))
