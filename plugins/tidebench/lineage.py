"""What tasks read and wrote: the inlets and outlets that the OpenLineage provider looks at.

A task adds to them as it works, because what it reads and writes is known only then. Files and
folders are named as OpenLineage names local ones, tables of the results database by server and
database, never by user or password. Nothing is looked for where no transport is configured.
"""

from __future__ import annotations

from glob import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from openlineage.client.event_v2 import Dataset

MEASURED = "measurements/*"
"""Below the folder of an experiment. A table is one dataset, the folder of all its runs: who builds
tables reads it whole."""
STAGED = "staged/*.parquet"
PUBLISHED = ("published/*.parquet", "published/*.html")


def files(folder: Path, *patterns: str) -> list[Dataset]:
    """What is there below a folder; a table of ours comes with its columns."""
    from airflow.providers.openlineage.conf import is_disabled

    if is_disabled():
        return []
    from openlineage.client.event_v2 import Dataset

    paths = (path for pattern in patterns for path in sorted(folder.glob(pattern)))
    return [Dataset("file", str(path), facets=_columns(path.stem)) for path in paths]


def file(path: Path) -> list[Dataset]:
    """One file, if it is there, whatever its name."""
    return files(path.parent, escape(path.name))


def results(database_url: str) -> list[Dataset]:
    """The tables of the results database, named as OpenLineage names those of PostgreSQL.

    It has no names for SQLite; there the namespace is ``sqlite://`` and the path of the file.
    """
    from airflow.providers.openlineage.conf import is_disabled

    if is_disabled():
        return []
    from openlineage.client.event_v2 import Dataset
    from sqlalchemy.engine import make_url

    from include.results.tables.catalogue import PUBLISHED

    url = make_url(database_url)
    if url.get_backend_name() == "sqlite":
        namespace, schema = f"sqlite://{url.database}", "main"
    else:
        namespace = f"postgres://{url.host or 'localhost'}:{url.port or 5432}"
        schema = f"{url.database}.public"
    return [Dataset(namespace, f"{schema}.{table}", facets=_columns(table)) for table in PUBLISHED]


def _columns(table: str) -> dict[str, Any]:
    from openlineage.client.facet_v2 import schema_dataset as facet

    from include.results.tables.catalogue import DOCUMENTED, schema_of

    if table not in DOCUMENTED:
        return {}
    columns = [
        facet.SchemaDatasetFacetFields(column.name, column.type)
        for column in schema_of(table).columns
    ]
    return {"schema": facet.SchemaDatasetFacet(columns)}
