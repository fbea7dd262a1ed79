"""The results database: published tables of every experiment, in SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.schema import CreateColumn

from include.model.errors import PublishError
from include.results.tables.catalogue import PUBLISHED, is_by_run, schema_of
from include.runs.measurements.origin import BY_HAND, DagRun, Origin, origin_of
from include.runs.measurements.store import RunStore


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """One publication of an experiment. ``edition`` is a hash of its tables."""

    experiment: str
    edition: str
    checks: int
    """How many checks its tables passed; with one that failed they would not be published."""
    left_out: tuple[str, ...] = ()
    """Runs that did not pass; what an earlier edition says of them goes."""
    by: DagRun = BY_HAND
    origins: Sequence[Origin] = ()
    """Where its runs come from; of a run that is not here nothing is known."""
    published_at: str = field(default_factory=_now)
    """ISO 8601 in UTC, so that text order is time order."""


def origins_of(folder: Path, runs: Iterable[str]) -> list[Origin]:
    """Where the runs of an experiment come from, of those that are stored in its folder."""
    stores = (RunStore(folder, run) for run in runs)
    return [origin for store in stores if (origin := origin_of(store))]


WAIT_S = 10
"""For a lock or a server."""


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
    with transaction(database_url) as connection:
        _add_new_columns(connection, tables)
        runs = [*(row["run"] for row in tables["runs"]), *publication.left_out]
        mark = {"experiment": publication.experiment, "edition": publication.edition}
        for name, rows in tables.items():
            table = _published(name)
            upsert(connection, table, [{**row, **mark} for row in rows])
            _forget(connection, table, publication, runs)
        _note(connection, publication)
        yield


@contextmanager
def removed_rows(database_url: str, experiment: str, runs: Sequence[str] | None) -> Iterator[int]:
    """Delete rows in one transaction that is committed when the block ends without error.

    ``runs`` None means everything of the experiment. Yields the number of rows deleted. Raises
    PublishError as ``sent_rows`` does.
    """
    with transaction(database_url) as connection:
        stored = set(sa.inspect(connection).get_table_names())
        of_all = {"experiment": experiment}
        keys = [of_all] if runs is None else [{**of_all, "run": run} for run in runs]
        tables = [name for name in PUBLISHED if runs is None or is_by_run(name)]
        deleted = sum(_remove(connection, name, keys) for name in tables if name in stored)
        # With their runs: a later run of the same name begins without.
        about_runs = ("labels", "origins", *(("publications",) if runs is None else ()))
        for name in stored.intersection(about_runs):
            _remove(connection, name, keys)
        yield deleted


def _remove(connection: Connection, name: str, keys: Sequence[Mapping[str, str]]) -> int:
    statements = (sa.delete(sa.table(name, *map(sa.column, key))).filter_by(**key) for key in keys)
    return sum(connection.execute(statement).rowcount for statement in statements)


@contextmanager
def transaction(database_url: str) -> Iterator[Connection]:
    """Committed when the block ends without error, else nothing has changed.

    Raises PublishError, without any password, when the database is down, locked or unknown.
    """
    with connected(engine_of(database_url), _cannot) as connection:
        yield connection
        connection.commit()


@contextmanager
def connected(
    engine: Engine, problem: Callable[[URL, Exception], PublishError]
) -> Iterator[Connection]:
    """A connection for the block; an error of the database is raised as the ``problem`` it is."""
    try:
        with engine.connect() as connection:
            yield connection
    except SQLAlchemyError as error:
        raise problem(engine.url, error) from None
    finally:
        engine.dispose()


def engine_of(database_url: str) -> Engine:
    """An engine of the results database. Raises PublishError for a URL that cannot be used."""
    try:
        url = make_url(database_url)
        return sa.create_engine(url, connect_args=_patience(url), poolclass=sa.NullPool)
    except (ArgumentError, NoSuchModuleError, ImportError, ValueError) as error:
        raise PublishError(
            "the URL of the results database is not one that can be used "
            f"({type(error).__name__}). Give sqlite:///FILE or "
            "postgresql+psycopg://USER:PASSWORD@HOST/DATABASE."
        ) from None


def _patience(url: URL) -> dict[str, Any]:
    """How long to wait, unless the URL says otherwise."""
    if url.get_backend_name() == "sqlite":
        return {"timeout": WAIT_S}
    return {
        "connect_timeout": url.query.get("connect_timeout", WAIT_S),
        "options": f"-c lock_timeout={WAIT_S}s {url.query.get('options', '')}",
    }


def _published(name: str) -> Table:
    """A published table over all experiments, whose rows know their edition."""
    schema = schema_of(name)
    types = {column.name: column.type for column in schema.columns}
    types = {"experiment": "string", **types, "edition": "string"}
    return table_of(name, types, ("experiment", *schema.key))


def table_of(name: str, types: Mapping[str, str], key: Sequence[str]) -> Table:
    """A table with these columns; types are those of the schemas of published tables."""
    sql_types = {
        "string": sa.Text, "double": sa.Double, "bigint": sa.BigInteger, "boolean": sa.Boolean,
    }  # fmt: skip
    columns: list[sa.Column[Any]] = [
        sa.Column(column, sql_types[type_], primary_key=column in key)
        for column, type_ in types.items()
    ]
    return Table(name, sa.MetaData(), *columns)


def upsert(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Make the table where there is none; a row that is there is replaced."""
    table.create(connection, checkfirst=True)
    if not rows:
        return
    dialect = {"postgresql": postgresql, "sqlite": sqlite}[connection.dialect.name]
    statement = dialect.insert(table)
    others = [column.name for column in table.columns if not column.primary_key]
    statement = statement.on_conflict_do_update(
        index_elements=list(table.primary_key),
        set_={name: statement.excluded[name] for name in others},
    )
    # Compiled once and handed to the driver: of half a million rows each would be looked at twice.
    compiled = statement.compile(dialect=connection.dialect)
    if compiled.positional:
        names = compiled.positiontup or ()
        connection.exec_driver_sql(compiled.string, [tuple(map(row.get, names)) for row in rows])
    else:
        connection.exec_driver_sql(compiled.string, list(rows))


def _forget(
    connection: Connection, table: Table, publication: Publication, runs: Sequence[str]
) -> None:
    """Delete what an earlier edition published and this one does not have any more.

    Rows of a run that this edition does not hold stay, unless the table is about the experiment
    as a whole.
    """
    older = (
        sa.delete(table)
        .filter_by(experiment=publication.experiment)
        .where(table.c.edition != publication.edition)
    )
    connection.execute(older.where(table.c.run.in_(runs)) if "run" in table.c else older)


def _add_new_columns(connection: Connection, tables: Iterable[str]) -> None:
    """Give tables of an earlier version the columns that they have got since.

    They are empty in the rows that are there, until those are published again. Raises PublishError
    where a table lacks a part of its key or has columns that this version does not know.
    """
    database = sa.inspect(connection)
    stored = set(database.get_table_names())
    there = {
        _published(name): {column["name"] for column in database.get_columns(name)}
        for name in tables
        if name in stored
    }
    if other := [table.name for table, names in there.items() if not _may_grow(table, names)]:
        raise PublishError(
            "the results database was made by another version of Tidebench: "
            f"{', '.join(other)} have other columns, and not only fewer. Nothing is lost, every "
            "experiment's folder keeps its published tables: remove the database (the file, if it "
            "is SQLite) or give another one, then publish again"
        )
    for table, names in there.items():
        quoted = connection.dialect.identifier_preparer.format_table(table)
        for column in (column for column in table.columns if column.name not in names):
            defined = CreateColumn(column).compile(dialect=connection.dialect)
            connection.execute(sa.text(f"ALTER TABLE {quoted} ADD COLUMN {defined}"))


def _may_grow(table: Table, names: set[str]) -> bool:
    """Whether columns that are no part of the key are all that a stored table lacks."""
    return names <= set(table.columns.keys()) and names >= {key.name for key in table.primary_key}


def _note(connection: Connection, publication: Publication) -> None:
    """Record a publication and the origins of its runs, in place of earlier records of them.

    A row per edition: who published it last, and when. A row per published run: which DAG run
    measured it, and when it was complete.
    """
    edition_of = ("experiment", "edition", "published_at", "dag_id", "dag_run")
    types = {**dict.fromkeys(edition_of, "string"), "checks": "bigint"}
    publications = table_of("publications", types, ("experiment", "edition"))
    names = ("experiment", "edition", "published_at", "checks")
    about = {name: getattr(publication, name) for name in names}
    upsert(connection, publications, [{**about, **asdict(publication.by)}])
    origin_of_run = ("experiment", "run", "measured_at", "dag_id", "dag_run")
    origins = table_of("origins", dict.fromkeys(origin_of_run, "string"), ("experiment", "run"))
    rows = [
        {"experiment": publication.experiment, "run": origin.run, "measured_at": origin.measured_at}
        | asdict(origin.by)
        for origin in publication.origins
    ]
    upsert(connection, origins, rows)
    labels_table().create(connection, checkfirst=True)


def labels_table() -> Table:
    """What people say of published runs (`labels.py`); publishing makes the table, without rows."""
    names = ("experiment", "run", "tags", "note", "changed_at", "changed_by")
    types = {**dict.fromkeys(names, "string"), "archived": "boolean"}
    return table_of("labels", types, ("experiment", "run"))


def _cannot(url: URL, error: Exception) -> PublishError:
    reason = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
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
