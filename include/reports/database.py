"""The results database: published tables of every experiment, in SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from include.model.errors import PublishError
from include.reports.publication import Publication
from include.tables.catalogue import PUBLISHED, SQL_ROOT, is_by_run, schema_of

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.engine import URL

_WAIT_S = 10
_TYPES = {
    "string": "TEXT",
    "double": "DOUBLE PRECISION",
    "bigint": "BIGINT",
    "boolean": "BOOLEAN",
}
_SQL = Environment(
    loader=FileSystemLoader(SQL_ROOT / "publish"),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


@contextmanager
def sent_rows(
    database_url: str,
    publication: Publication,
    tables: Mapping[str, Sequence[Mapping[str, Any]]],
) -> Iterator[None]:
    """Send the rows in one transaction that is committed when the block ends without error.

    Rows of the same runs from another edition of the experiment are removed, and all rows of
    runs that this edition leaves out: they do not stay as if they were good.
    Raises PublishError, without any password, when the database is down, locked or unknown;
    nothing in it has changed then. Errors of the block pass through and roll back.
    """
    with _transaction(database_url) as connection:
        _send(connection, publication, tables)
        yield


@contextmanager
def removed_rows(database_url: str, experiment: str, runs: Sequence[str] | None) -> Iterator[int]:
    """Delete rows in one transaction that is committed when the block ends without error.

    ``runs`` None means everything of the experiment. Yields the number of rows deleted. Raises
    PublishError as ``sent_rows`` does.
    """
    from sqlalchemy import inspect

    with _transaction(database_url) as connection:
        stored = set(inspect(connection).get_table_names())
        deleted = 0
        for table in (name for name in PUBLISHED if name in stored):
            if runs is None:
                deleted += _remove(connection, table, {"experiment": experiment})
            elif is_by_run(table):
                values = [{"experiment": experiment, "run": run} for run in runs]
                deleted += sum(_remove(connection, table, of_run) for of_run in values)
        yield deleted


def _remove(connection: Connection, table: str, of: Mapping[str, str]) -> int:
    from sqlalchemy import text

    shape = {"table": schema_of(table), "of_run": "run" in of}
    return connection.execute(text(_SQL.get_template("remove.sql.j2").render(shape)), of).rowcount


@contextmanager
def _transaction(database_url: str) -> Iterator[Connection]:
    """Committed when the block ends without error, else nothing has changed."""
    from sqlalchemy.exc import SQLAlchemyError

    engine = engine_of(database_url)
    try:
        with engine.connect() as connection:
            yield connection
            connection.commit()
    except SQLAlchemyError as error:
        raise _cannot(engine.url, error) from None
    finally:
        engine.dispose()


def engine_of(database_url: str) -> Engine:
    """Of the results database; PublishError for a URL that is none."""
    from sqlalchemy import create_engine
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError
    from sqlalchemy.pool import NullPool

    try:
        url = make_url(database_url)
        return create_engine(url, connect_args=_patience(url), poolclass=NullPool)
    except (ArgumentError, NoSuchModuleError, ImportError, ValueError) as error:
        raise PublishError(
            "the URL of the results database is not one that can be used "
            f"({type(error).__name__}). Give sqlite:///FILE or "
            "postgresql+psycopg://USER:PASSWORD@HOST/DATABASE."
        ) from None


def _patience(url: URL) -> dict[str, Any]:
    """How long to wait for a lock or a server: seconds, not for ever."""
    if url.get_backend_name() == "sqlite":
        return {"timeout": _WAIT_S}
    return {"connect_timeout": _WAIT_S, "options": f"-c lock_timeout={_WAIT_S}s"}


def _send(
    connection: Connection,
    publication: Publication,
    tables: Mapping[str, Sequence[Mapping[str, Any]]],
) -> None:
    _require_these_columns(connection, tables)
    runs = [*(row["run"] for row in tables["runs"]), *publication.left_out]
    mark = {"experiment": publication.experiment, "edition": publication.edition}
    for table, rows in tables.items():
        _execute(connection, "create", table)
        if rows:
            _execute(connection, "upsert", table, [{**row, **mark} for row in rows])
        _execute(connection, "forget", table, [{"run": run, **mark} for run in runs])
    _note(connection, publication)


def _require_these_columns(connection: Connection, tables: Iterable[str]) -> None:
    """A database of an earlier version has other columns, and other keys with them."""
    from sqlalchemy import inspect

    known = inspect(connection)
    stored = set(known.get_table_names())
    older = [
        table
        for table in tables
        if table in stored
        and {column["name"] for column in known.get_columns(table)}
        != {"experiment", "edition", *schema_of(table).column_names}
    ]
    if older:
        raise PublishError(
            "the results database was made by another version of Tidebench: "
            f"{', '.join(older)} have other columns. Nothing is lost, every experiment's folder "
            "keeps its published tables: remove the database (the file, if it is SQLite) or give "
            "another one, then publish again"
        )


def _execute(
    connection: Connection, statement: str, table: str, rows: list[dict[str, Any]] | None = None
) -> None:
    from sqlalchemy import text

    shape = {"table": schema_of(table), "types": _TYPES}
    connection.execute(text(_SQL.get_template(f"{statement}.sql.j2").render(shape)), rows)


def _note(connection: Connection, publication: Publication) -> None:
    from sqlalchemy import text

    row = asdict(publication)
    row |= row.pop("by")
    del row["left_out"]  # the page of checks has them, with what they failed
    origins = [{"experiment": row["experiment"], **one} for one in row.pop("origins")]
    for one in origins:
        one |= one.pop("by")
    statements = [("publications", None), ("note", row), ("origins", None)]
    statements += [("note_origin", one) for one in origins]
    for statement, values in statements:
        connection.execute(text(_SQL.get_template(f"{statement}.sql").render()), values)


def _cannot(url: URL, error: Exception) -> PublishError:
    reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
    # Options of a connection can be secrets, too: sslpassword, say.
    for secret in (url.password, *url.query.values()):
        reason = reason.replace(str(secret), "***") if secret else reason
    if url.get_backend_name() == "sqlite":
        todo = (
            f"Check that the folder of {url.database} exists and can be written and that no other "
            "program holds the file, then publish again."
        )
    else:
        todo = "Check that the server runs and that user and database are right, then try again."
    return PublishError(
        f"the results database {url.set(query={}).render_as_string()} cannot be written: "
        f"{reason}. {todo}"
    )
