"""The covers of runs, kept beside their measurements in ``<experiment>/bounds.json``.

``python -m include.cli bound FOLDER`` writes it and every report reads it; without it nothing is
known of the cover and the regret. By run it has the hash of the resolved spec that it was computed
for, and the cost of the cover by price book.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from include.files import read_json, write_json
from include.measurements.rows import COVER
from include.model.errors import StoreError
from include.tables.measured import arrow_columns, complete_runs

if TYPE_CHECKING:
    import pyarrow as pa

    from include.bounds.report import BoundRow
    from include.experiment.run import Run
    from include.measurements.store import RunStore

NAME = "bounds.json"


@dataclass(frozen=True, slots=True)
class _OfRun:
    spec_hash: str
    cover_cost: Mapping[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]]


_STORED = TypeAdapter(dict[str, _OfRun])


def stored_runs(folder: Path) -> list[Run]:
    """The complete runs of an experiment as they were resolved. Raises StoreError without any."""
    from include.measurements.store import RunStore

    return [_stored_run(RunStore(folder, folder.name, run)) for run in complete_runs(folder)]


def _stored_run(store: RunStore) -> Run:
    from include.experiment.run import Run

    try:
        return Run.from_json(store.run_json.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{store.run_json} cannot be read: it is missing, damaged or of another version. "
            f"Remove the run (python -m include.cli remove {store.folder} {store.run_id}) "
            "and measure it again."
        ) from error


def write_covers(folder: Path, rows: Iterable[BoundRow]) -> None:
    """Write the covers of runs in place of those that were there."""
    by_run: dict[str, dict[str, Any]] = {}
    for row in rows:
        for run in row.runs if row.cover_found else ():  # free hosts have no regret
            about = {"spec_hash": run.spec_hash, "cover_cost": {}}
            costs = by_run.setdefault(run.spec.run_id, about)["cover_cost"]
            costs[row.price_book] = row.cover_found
    write_json(folder / NAME, by_run)


def read_covers(folder: Path) -> pa.Table:
    """One row per run and price book; none without the file.

    Raises StoreError when it is damaged.
    """
    import pyarrow as pa

    stored: Mapping[str, _OfRun] = {}
    if (path := folder / NAME).is_file():
        try:
            stored = _STORED.validate_python(read_json(path))
        except ValidationError as error:
            raise StoreError(
                f"{path} is damaged; remove it, or write it again: "
                f"python -m include.cli bound {folder}"
            ) from error
    rows = [
        {"experiment": folder.name, "run": run, "spec_hash": of.spec_hash,
         "price_book": book, "cover_cost": cost}
        for run, of in stored.items()
        for book, cost in of.cover_cost.items()
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, pa.schema(arrow_columns(COVER)))
