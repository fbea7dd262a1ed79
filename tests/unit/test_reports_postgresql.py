"""Publication into a real PostgreSQL server, where one can be started."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from include.model.errors import PublishError
from include.results.reports.labels import Change, change_labels
from include.results.reports.publish import publish
from include.results.reports.results import ORDERS, Query, find_runs, read_runs
from include.runs.measurements.origin import DagRun
from tests.builders_staged import RUN, change, let_pass, stage
from tests.live.world import wait_until
from tests.ports import free_port

pytestmark = pytest.mark.live


def _program(name: str) -> str | None:
    programs = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(programs[-1]) if programs else shutil.which(name)


def _account() -> str | None:
    """PostgreSQL refuses to run as root, so root needs the account of the Debian package."""
    if os.getuid() != 0:
        return pwd.getpwuid(os.getuid()).pw_name
    return next((user.pw_name for user in pwd.getpwall() if user.pw_name == "postgres"), None)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    initdb, postgres, account = _program("initdb"), _program("postgres"), _account()
    if not (initdb and postgres and account):
        pytest.skip("no PostgreSQL here (Debian: apt-get install postgresql)")
    home = Path(tempfile.mkdtemp(prefix="tidebench-postgresql-"))
    shutil.chown(home, account)
    port = free_port()
    subprocess.run(
        [initdb, "-D", home / "data", "-U", "lab", "--auth=trust", "--no-sync"],
        user=account, check=True, capture_output=True, cwd=home,
    )  # fmt: skip
    settings = [
        f"-cport={port}",
        "-clisten_addresses=127.0.0.1",
        f"-cunix_socket_directories={home}",
    ]
    process = subprocess.Popen(
        [postgres, "-D", home / "data", *settings, "-cfsync=off"],
        user=account, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    url = f"postgresql+psycopg://lab:s3cret@127.0.0.1:{port}/postgres"
    try:
        wait_until(lambda: _answers(url), "a server of PostgreSQL")
        yield url
    finally:
        process.send_signal(signal.SIGINT)  # shut down without waiting for clients
        process.wait(timeout=30)
        shutil.rmtree(home, ignore_errors=True)


def _answers(url: str) -> bool:
    try:
        return _count(url, "SELECT 1") == 1
    except sa.exc.OperationalError:
        return False


def _count(url: str, question: str) -> int:
    with sa.create_engine(url, poolclass=sa.NullPool).connect() as connection:
        return int(connection.execute(sa.text(question)).scalar_one())


def test_publishing_twice_gives_the_same_rows(server: str, tmp_path: Path) -> None:
    folder = let_pass(stage(tmp_path / "demo"))
    publish(folder, server)
    change(folder, "cost", leases=1)
    publish(let_pass(folder), server)
    publish(folder, server)
    assert _count(server, "SELECT count(*) FROM cost WHERE experiment = 'demo'") == 2
    assert _count(server, "SELECT sum(leases) FROM cost") == 3
    assert _count(server, "SELECT count(DISTINCT edition) FROM runs") == 1
    assert _count(server, "SELECT count(*) FROM decisions WHERE accepted") == 1


def test_a_locked_table_leaves_everything(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("include.results.reports.database.WAIT_S", 2)
    folder = let_pass(stage(tmp_path / "locked"))
    publish(folder, server)
    before = (folder / "published" / "manifest.json").read_bytes()
    change(folder, "cost", leases=1)
    let_pass(folder)
    with sa.create_engine(server, poolclass=sa.NullPool).begin() as other:
        other.execute(sa.text('LOCK TABLE "cost" IN ACCESS EXCLUSIVE MODE'))
        with pytest.raises(PublishError, match="lock timeout") as caught:
            publish(folder, server)
    assert "s3cret" not in str(caught.value)
    assert (folder / "published" / "manifest.json").read_bytes() == before


def test_what_was_published_is_found_labelled_and_read(server: str, tmp_path: Path) -> None:
    folder = let_pass(stage(tmp_path / "found"))
    publish(folder, server, DagRun("experiment", "manual__1"))
    for order in ORDERS:
        query = Query(equal={"experiment": "found"}, text="FOUND walk_1", sort=order)
        (row,) = find_runs(server, query).runs
        assert (row["run"], row["total_cost"], row["dag_run"]) == (RUN, 1.0, "manual__1")
    for text in ("%' OR 1=1", "\0"):
        assert find_runs(server, Query(text=text)).total == 0
    (tables,) = read_runs(server, [("found", RUN)], ("cost", "timeline"))
    assert tables is not None
    assert [len(tables[table]) for table in ("runs", "cost", "timeline")] == [1, 2, 8]

    labels = Change(tags=["paper"], note="It was cold.", archived=True)
    for change_of_it in (labels, Change(add_tags=["two"])):
        assert change_labels(server, [("found", RUN)], change_of_it, "ada") == 1
    values = {"experiment": "found"}
    assert find_runs(server, Query(equal=values)).total == 0
    everything = Query(
        equal={**values, "btu_min": 10.0, "seed": 1, "testbed": "simulated"},
        ranges={"cost_from": 0.0, "cost_to": 1e6, "date_from": "2020-01-01",
                "date_to": "2999-01-01"},
        tag="paper", shown="archived",
    )  # fmt: skip
    (row,) = find_runs(server, everything).runs
    assert (row["tags"].split(), row["note"], row["archived"]) == (
        ["paper", "two"], "It was cold.", True,
    )  # fmt: skip


def test_a_table_of_an_earlier_version_gets_the_column_that_it_lacks(
    server: str, tmp_path: Path
) -> None:
    folder = let_pass(stage(tmp_path / "earlier"))
    publish(folder, server)
    with sa.create_engine(server, poolclass=sa.NullPool).begin() as other:
        other.execute(sa.text('ALTER TABLE "compliance" DROP COLUMN age_p95_ms'))
    publish(folder, server)
    filled = "SELECT count(age_p95_ms) FROM compliance WHERE experiment = 'earlier'"
    assert _count(server, filled) == 3


def test_options_of_the_connection_hold(server: str, tmp_path: Path) -> None:
    with sa.create_engine(server, poolclass=sa.NullPool).begin() as other:
        other.execute(sa.text("CREATE SCHEMA lab"))
    publish(let_pass(stage(tmp_path / "apart")), f"{server}?options=-csearch_path%3Dlab")
    assert _count(server, "SELECT count(*) FROM lab.runs") == 1


def test_tags_that_are_added_at_the_same_time_are_all_kept(server: str, tmp_path: Path) -> None:
    publish(let_pass(stage(tmp_path / "shared")), server)

    def add(tag: str) -> int:
        return change_labels(server, [("shared", RUN)], Change(add_tags=[tag]), "ada")

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(add, (tags := [f"t{k}" for k in range(12)]))) == {1}
    (row,) = find_runs(server, Query(equal={"experiment": "shared"})).runs
    assert sorted(row["tags"].split()) == sorted(tags)
