"""What tasks read and wrote, for OpenLineage. Its provider asks for it where it is configured.

Files and folders are datasets named as OpenLineage names local ones: namespace ``file``, the
absolute path. A measured table is one dataset, the folder of all its runs: who builds tables reads
it whole. Tables of the results database are named by server and database, never by user or
password. Columns stand beside datasets that have a schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import Dataset

    from include.results.tables.catalogue import TableSchema


class Traced:
    """A task that can tell what it reads and writes; asked before and after it has run.

    What it reads is named when it begins, what it wrote once it has succeeded. Among the bases of
    a class it comes behind the operator: Airflow loses the defaults of what is mapped otherwise.
    """

    def reads(self) -> Iterable[Dataset]:
        """Datasets that this task reads."""
        return ()

    def writes(self) -> Iterable[Dataset]:
        """Datasets that this task has written."""
        return ()

    def get_openlineage_facets_on_start(self) -> OperatorLineage[Any, Any]:
        """Asked by the provider when the task begins, with its templates rendered."""
        return _lineage(self.reads(), ())

    def get_openlineage_facets_on_complete(self, ti: Any) -> OperatorLineage[Any, Any]:
        """Asked by the provider when the task has succeeded, or was skipped and did nothing."""
        if getattr(ti, "state", None) == "skipped":
            return _lineage((), ())
        return _lineage(self.reads(), self.writes())

    def get_openlineage_facets_on_failure(self, ti: Any) -> OperatorLineage[Any, Any]:
        """Asked by the provider when the task has failed."""
        return _lineage(self.reads(), ())


def _lineage(reads: Iterable[Dataset], writes: Iterable[Dataset]) -> OperatorLineage[Any, Any]:
    from airflow.providers.openlineage.extractors import OperatorLineage

    return OperatorLineage(inputs=list(reads), outputs=list(writes))


def file_of(path: Path, columns: Mapping[str, str] | None = None) -> Dataset:
    """A file or folder; ``columns`` are the types of its columns by name."""
    from openlineage.client.event_v2 import Dataset

    return Dataset(namespace="file", name=str(path), facets=_facets(columns))


def measured(folder: Path, run_ids: Iterable[str] = ("*",)) -> Iterator[Dataset]:
    """The measured tables of an experiment in which any of these runs has rows by now."""
    from include.runs.measurements.rows import TABLES
    from include.runs.measurements.store import schema

    runs = list(run_ids)
    for table in TABLES:
        of_table = folder / "measurements" / table
        if any(any(of_table.glob(f"experiment=*/run={run}")) for run in runs):
            yield file_of(of_table, {one.name: str(one.type) for one in schema(table)})


def staged(folder: Path) -> Iterator[Dataset]:
    """The staged tables of an experiment that are there."""
    return _tables(folder / "staged")


def published(folder: Path) -> Iterator[Dataset]:
    """The published tables of an experiment, and its page."""
    yield from _tables(folder / "published")
    for page in ("report.html", "advice.html"):
        if (folder / "published" / page).is_file():
            yield file_of(folder / "published" / page)


def _tables(folder: Path) -> Iterator[Dataset]:
    from include.results.tables.catalogue import ADVICE_RANKING, INPUT_CHECKS, PUBLISHED, schema_of

    for table in (*PUBLISHED, INPUT_CHECKS, ADVICE_RANKING):
        for path in sorted(folder.glob(f"{table}.parquet")) or sorted(folder.glob(f"{table}.csv")):
            yield file_of(path, _columns(schema_of(table)))


def results(database_url: str) -> list[Dataset]:
    """The tables of the results database, named as OpenLineage names those of PostgreSQL.

    It has no names for SQLite; there the namespace is ``sqlite://`` and the path of the file.
    """
    from openlineage.client.event_v2 import Dataset
    from sqlalchemy.engine import make_url

    from include.results.tables.catalogue import PUBLISHED, schema_of

    url = make_url(database_url)
    if url.get_backend_name() == "sqlite":
        namespace, schema = f"sqlite://{url.database}", "main"
    else:
        namespace = f"postgres://{url.host or 'localhost'}:{url.port or 5432}"
        schema = f"{url.database}.public"
    return [
        Dataset(namespace, f"{schema}.{table}", facets=_facets(_columns(schema_of(table))))
        for table in PUBLISHED
    ]


def _columns(schema: TableSchema) -> dict[str, str]:
    return {column.name: column.type for column in schema.columns}


def _facets(columns: Mapping[str, str] | None) -> dict[str, Any]:
    from openlineage.client.facet_v2 import schema_dataset

    if not columns:
        return {}
    fields = [
        schema_dataset.SchemaDatasetFacetFields(name=name, type=kind)
        for name, kind in columns.items()
    ]
    return {"schema": schema_dataset.SchemaDatasetFacet(fields=fields)}
