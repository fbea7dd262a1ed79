"""Publication is complete or does not happen, and publishing twice changes nothing.

A run that is removed is gone from what is measured, from the database and the next report.
"""

from __future__ import annotations

import csv
import fcntl
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from hashlib import sha256
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import sqlalchemy as sa

from include.model.errors import GateFailed, PublishError, StoreError
from include.results.reports.database import transaction
from include.results.reports.publish import publish
from include.results.reports.removal import remove_runs
from include.results.tables.catalogue import INPUT_CHECKS, PUBLISHED, is_by_run, schema_of
from include.results.tables.measured import complete_runs
from include.results.tables.staged import read_staged
from include.runs.measurements.locks import REPORT, lock_of
from include.runs.measurements.rows import TABLES
from include.runs.measurements.store import RunStore
from include.runs.stored import mark_asked
from tests.builders_staged import RUN, change, let_pass, restage, stage, tables_of
from tests.command_line import said
from tests.full_disk import no_file_above
from tests.killed import killed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Tables that passed and were not published yet."""
    return let_pass(stage(tmp_path / "demo"))


@pytest.fixture(scope="module")
def published_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = let_pass(stage(tmp_path_factory.mktemp("once") / "demo"))
    publish(folder, _url(folder))
    return folder


@pytest.fixture
def published(published_once: Path, tmp_path: Path) -> Path:
    """A published experiment and its results database, to be changed at will."""
    shutil.copytree(published_once.parent, tmp_path, dirs_exist_ok=True)
    return tmp_path / "demo"


def _url(folder: Path) -> str:
    return f"sqlite:///{folder.parent / 'results.db'}"


def _published(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "published").iterdir())}


def _rows(folder: Path, table: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(folder.parent / "results.db") as database:
        return sorted(database.execute(f'SELECT * FROM "{table}"'), key=str)


def _runs_in(folder: Path, table: str) -> set[str]:
    with sqlite3.connect(folder.parent / "results.db") as database:
        return {run for (run,) in database.execute(f'SELECT run FROM "{table}"')}


def test_every_table_is_published_in_every_format(folder: Path) -> None:
    files = publish(folder, _url(folder))
    names = {path.name for path in files}
    suffixes = ("parquet", "csv", "md", "tex")
    wanted = {f"{table}.{suffix}" for table in PUBLISHED for suffix in suffixes}
    assert names == {*wanted, "report.html", "quarantine.csv", "manifest.json"}
    header = (folder / "published" / "cost.csv").read_text().splitlines()[0]
    assert header == ",".join(schema_of("cost").column_names)


def test_the_manifest_names_runs_rows_and_hashes(published: Path) -> None:
    files = _published(published)
    manifest = json.loads(files.pop("manifest.json"))
    assert manifest["sha256"] == {name: sha256(data).hexdigest() for name, data in files.items()}
    assert manifest["rows"]["timeline"] == 8
    (run,) = manifest["runs"]
    assert (run["run"], run["seed"], run["spec_hash"]) == (RUN, 1, "0123456789abcdef")
    assert manifest["versions"]["pyspark"]


def test_runs_that_are_not_measured_are_missed_on_the_page(published: Path) -> None:
    mark_asked(published, [RUN, *(f"tide-s{seed}" for seed in range(1, 9))])
    publish(let_pass(published), _url(published))
    page = (published / "published" / "report.html").read_text()
    manifest = json.loads((published / "published" / "manifest.json").read_text())
    assert manifest["not_measured"][-1] == "tide-s8"
    assert f"{len(manifest['not_measured'])} of the runs that were asked for last are" in page


def test_a_later_edition_replaces_rows_and_forgets_those_that_are_gone(published: Path) -> None:
    change(published, "cost", leases=1)
    restage(published, "compliance", read_staged(published, "compliance")[:2])
    publish(let_pass(published), _url(published))
    assert len(_rows(published, "compliance")) == 2
    assert len(_rows(published, "cost")) == 2
    leases = ["experiment", *schema_of("cost").column_names].index("leases")
    assert sorted(row[leases] for row in _rows(published, "cost")) == [1, 2]


def test_a_database_of_an_earlier_version_gets_the_new_columns(published: Path) -> None:
    before = _rows(published, "compliance")
    with sqlite3.connect(published.parent / "results.db") as database:
        for column in ("unprocessed_items", "age_p95_ms", "strict_relaxed_compliance_percent"):
            database.execute(f"ALTER TABLE compliance DROP COLUMN {column}")
        database.execute("UPDATE compliance SET experiment = 'older', edition = 'older'")
    publish(published, _url(published))
    with sqlite3.connect(published.parent / "results.db") as database:
        rows = database.execute(
            "SELECT experiment, unprocessed_items, age_p95_ms, strict_relaxed_compliance_percent "
            "FROM compliance WHERE scope = 'overall' ORDER BY experiment"
        ).fetchall()
    assert rows == [("demo", 40, 9000.0, 85.0), ("older", None, None, None)]
    assert len(_rows(published, "compliance")) == 2 * len(before)


@pytest.mark.parametrize(
    "change_of_it",
    [
        "ALTER TABLE cost ADD COLUMN told_by_a_later_version BIGINT",
        "ALTER TABLE cost RENAME COLUMN price_book TO book",
    ],
)
def test_a_database_of_another_version_says_what_to_do_and_stays(
    published: Path, change_of_it: str
) -> None:
    with sqlite3.connect(published.parent / "results.db") as database:
        database.execute(change_of_it)
    before = _published(published), _rows(published, "cost")
    with pytest.raises(PublishError, match=r"cost have other columns(.|\n)*publish again"):
        publish(published, _url(published))
    assert (_published(published), _rows(published, "cost")) == before


def test_tables_that_were_not_checked_are_not_published(folder: Path) -> None:
    change(folder, "cost", leases=1)
    with pytest.raises(GateFailed, match="Check them again before publishing"):
        publish(folder, _url(folder))
    assert not (folder / "published").exists()
    assert not (folder.parent / "results.db").exists()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with closing(sqlite3.connect(folder.parent / "results.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


def _full(folder: Path) -> AbstractContextManager[None]:
    return no_file_above(20_000)  # the page is larger


@pytest.mark.parametrize(
    ("disturbed", "url", "message"),
    [
        (nullcontext, "sqlite:////dev/null/results.db", "Check that the folder"),
        (nullcontext, "postgresql+psycopg://user:s3cret@127.0.0.1:9/lab", "that the server runs"),
        (nullcontext, "oracle-of-delphi://user:s3cret@nowhere", "Give sqlite:///FILE or"),
        (nullcontext, "no url at all", "Give sqlite:///FILE or"),
        (_locked, None, r"database is locked.*no other program holds"),
        (_full, None, r"cannot be written: File too large.*Free some"),
    ],
)
def test_where_it_cannot_be_published_everything_is_as_it_was_and_later_it_can(
    published: Path,
    disturbed: Callable[[Path], AbstractContextManager[None]],
    url: str | None,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("include.results.reports.database.WAIT_S", 1)
    before, rows = _published(published), _rows(published, "cost")
    change(published, "cost", leases=1)
    let_pass(published)
    with disturbed(published), pytest.raises(PublishError, match=message) as caught:
        publish(published, url or _url(published))
    assert "s3cret" not in str(caught.value)
    assert (_published(published), _rows(published, "cost")) == (before, rows)
    assert not list(published.glob(".published*"))
    publish(published, _url(published))
    assert _published(published) != before


def test_an_error_of_the_database_without_a_text_is_told_all_the_same() -> None:
    error = sa.exc.OperationalError("SELECT 1", {}, sqlite3.OperationalError())
    with pytest.raises(PublishError, match="cannot be written"), transaction("sqlite://"):
        raise error


@pytest.mark.parametrize("at_change", [1, 2, 3])
def test_killed_while_folders_change_places_and_repeated_it_is_as_if_it_never_was(
    published: Path, tmp_path: Path, at_change: int
) -> None:
    rows = _rows(published, "cost")
    change(published, "cost", leases=1)
    undisturbed = shutil.copytree(let_pass(published), tmp_path / "elsewhere" / "demo")
    publish(undisturbed, _url(undisturbed))
    # Just before the folder steps aside, the new one comes, and the old one is removed.
    assert killed(lambda: publish(published, _url(published)), at_change, within="published")
    assert (published / "published").exists() == (at_change != 2)
    assert _rows(published, "cost") == rows, "nothing is committed"
    publish(published, _url(published))
    assert _published(published) == _published(undisturbed)
    assert _rows(published, "cost") == _rows(undisturbed, "cost")
    assert not list(published.glob(".published*"))


def test_a_run_that_is_left_out_now_leaves_the_database_and_is_told(published: Path) -> None:
    rows = {table: tables_of("good")[table] for table in (*PUBLISHED, INPUT_CHECKS)}
    for table in rows:
        restage(published, table, rows[table])
    publish(let_pass(published, RUN), _url(published))
    for table in filter(is_by_run, PUBLISHED):
        left = {"good"} if rows[table] else set()
        assert _runs_in(published, table) == left, table
    with (published / "published" / "quarantine.csv").open() as file:
        (line,) = csv.DictReader(file)
    assert (line["run"], line["table"], line["columns"]) == (RUN, "cost", "leases")
    assert json.loads(line["rows"]) == [{"leases": -1}]
    page = (published / "published" / "report.html").read_text()
    assert f"left out: run {RUN} because It has leases." in page
    for table in filter(is_by_run, rows):
        restage(published, table, [row | {"run": RUN} for row in rows[table]])
    publish(let_pass(published), _url(published))
    assert _runs_in(published, "runs") == {"good", RUN}
    assert "left out: run" not in (published / "published" / "report.html").read_text()


RUNS = ("bad", "good")


@pytest.fixture
def two_runs(tmp_path: Path) -> Path:
    """Of one experiment, stored and published."""
    folder = tmp_path / "demo"
    each = {run: tables_of(run) for run in RUNS}
    for table in (*PUBLISHED, INPUT_CHECKS):
        whose = RUNS if is_by_run(table) else RUNS[:1]
        restage(folder, table, [row for run in whose for row in each[run][table]])
    publish(let_pass(folder), _url(folder))
    for run in RUNS:
        store = RunStore(folder, run)
        for file in (store.manifest, store.run_json, store.whole("queue"), store.whole("lease")):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("{}")
    return folder


def files_of(folder: Path, run: str) -> list[Path]:
    store = RunStore(folder, run)
    return [store.home, *(store.part(table, 0).parent for table in TABLES)]


def test_what_is_removed_is_gone_everywhere_and_the_others_stay(two_runs: Path) -> None:
    done = said("remove", str(two_runs), "bad")
    assert "removed the measurements of run bad" in done
    assert "1 complete runs of demo are left" in done
    assert not any(path.exists() for path in files_of(two_runs, "bad"))
    assert complete_runs(two_runs) == ("good",)
    for table in filter(is_by_run, PUBLISHED):
        left = {"good"} if tables_of("good")[table] else set()
        assert _runs_in(two_runs, table) == left, table


def test_tables_of_a_run_that_was_removed_since_are_not_published(two_runs: Path) -> None:
    """A DAG run has the lock of the report while it builds them and again to publish them."""
    of = {f"runs/{run}/manifest.json": "of then" for run in RUNS}
    (two_runs / "staged" / "sources.json").write_text(json.dumps(of))
    publish(two_runs, _url(two_runs))
    RunStore(two_runs, "bad").manifest.unlink()
    with pytest.raises(StoreError, match=r"bad of demo was removed .* clear build_tables"):
        publish(two_runs, _url(two_runs))


def test_a_report_that_is_being_made_is_waited_for(two_runs: Path) -> None:
    """It would publish again what is removed meanwhile."""
    lock, removes = (
        lock_of(two_runs, REPORT),
        Thread(target=remove_runs, args=(two_runs, ["bad"], _url(two_runs))),
    )
    lock.parent.mkdir()
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        removes.start()
        removes.join(0.5)
        assert removes.is_alive()
        assert complete_runs(two_runs) == RUNS
    removes.join(10)
    assert complete_runs(two_runs) == ("good",)


def test_an_unknown_run_is_told_with_those_that_are_there_and_nothing_is_removed(
    two_runs: Path,
) -> None:
    with pytest.raises(StoreError, match=r"unknown run 'bda'. Did you mean 'bad'\? Known: bad, go"):
        remove_runs(two_runs, ["good", "bda", "../demo"], _url(two_runs))
    assert complete_runs(two_runs) == RUNS
    assert _runs_in(two_runs, "runs") == set(RUNS)
    with pytest.raises(StoreError, match="holds no run"):
        remove_runs(two_runs.parent / "none", ["bad"], _url(two_runs))


def test_with_the_last_run_goes_the_report(two_runs: Path) -> None:
    assert_without_report(two_runs, remove_runs(two_runs, RUNS, _url(two_runs)))


def test_a_run_that_was_only_begun_keeps_no_report(two_runs: Path) -> None:
    RunStore(two_runs, "bad").manifest.unlink()
    assert_without_report(two_runs, remove_runs(two_runs, ["good"], _url(two_runs)))
    assert files_of(two_runs, "bad")[0].is_dir()


def assert_without_report(folder: Path, sentences: list[str]) -> None:
    assert sentences[-1] == "no complete run of demo is left, so its report is removed, too"
    assert not any((folder / name).exists() for name in ("published", "staged", "data_docs"))
    with sqlite3.connect(folder.parent / "results.db") as database:
        for table in PUBLISHED:
            assert database.execute(f'SELECT count(*) FROM "{table}"').fetchone() == (0,), table


def test_a_run_that_is_published_only_can_be_removed(two_runs: Path) -> None:
    RunStore(two_runs, "bad").remove()
    assert "what was published of run bad" in remove_runs(two_runs, ["bad"], _url(two_runs))[0]
    assert _runs_in(two_runs, "cost") == {"good"}


@pytest.mark.parametrize("what", ["bad", "report"])
def test_a_run_that_a_dag_run_may_be_measuring_is_left_alone(two_runs: Path, what: str) -> None:
    store = RunStore(two_runs, "bad")
    turns = two_runs / "turns.json"
    turns.write_text(json.dumps({what: ["experiment", "manual__1"]}))
    store.manifest.unlink()
    with pytest.raises(StoreError, match="manual__1 of the DAG experiment may be measuring it"):
        remove_runs(two_runs, ["bad"], _url(two_runs))
    assert store.home.is_dir()
    assert _runs_in(two_runs, "runs") == set(RUNS)
    remove_runs(two_runs, ["bad"], _url(two_runs), even_if_taken=True)
    assert not store.home.exists()
