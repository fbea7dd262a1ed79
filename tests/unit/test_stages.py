"""Stages: whole or not at all, the same bytes however a run is cut, killed or repeated."""

from __future__ import annotations

import gc
import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from include.controllers import CONTROLLERS
from include.experiment.run import resolve
from include.files.whole import read_json
from include.model.decision import Reason
from include.model.errors import SetupError, StoreError, TestbedError
from include.runs import stages
from include.runs import versions as code_versions
from include.runs.measurements.rows import UNREAD
from include.runs.measurements.store import RunStore
from include.runs.session import Session
from tests.builders import begun, run_spec
from tests.builders_prices import BOOK, write_book
from tests.digests import digests
from tests.killed import killed

KILLS = (2, 8, 10, 13, 20, 24, 26, 28)


def a_spec(**changes):
    usual: dict[str, Any] = {"experiment": "stages", "btu_min": 5, "seed": 3, "duration_min": 15}
    usual |= {"controller": "btu-runtime", "pattern": "random_walk_2"}
    usual |= {"faults": {"instance_crashes_per_hour": 2, "monitoring_gaps_per_hour": 6}}
    return run_spec(**(usual | changes))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    root = tmp_path_factory.mktemp("whole")
    stages.run_all(a_spec(), root)
    return digests(root)


def test_window_by_window_gives_the_same_bytes(whole, tmp_path):
    spec = a_spec()
    stages.provision(spec, tmp_path)
    stages.deploy(spec, tmp_path)
    assert not stages.window_reached(spec, tmp_path, 0)
    stages.replay_arrivals(spec, tmp_path)
    for window in range(spec.windows):
        assert stages.window_reached(spec, tmp_path, window)
        assert not stages.window_reached(spec, tmp_path, window + 1)
        stages.control_windows(spec, tmp_path, window, window)
    stages.release(spec, tmp_path)
    assert digests(tmp_path) == whole


def test_the_billing_of_a_book_of_ones_own_is_stored(whole, tmp_path):
    """And nothing is, where there is none: what was measured before has the same files."""
    assert not [name for name in whole if "billing" in name]
    spec = a_spec(price_books=("btu10", write_book(tmp_path / "mine.yaml")))
    stages.run_all(spec, tmp_path)
    (file,) = (tmp_path / "stages" / "measurements" / "billing").rglob("*.parquet")
    (row,) = pq.ParquetFile(file).read().to_pylist()
    assert (row.pop("price_book"), row.pop("minimum_s")) == ("mine", 3600.0)
    assert row == {name: BOOK[name] for name in row}
    (prices,) = (tmp_path / "stages" / "measurements" / "price").rglob("*.parquet")
    assert pq.ParquetFile(prices).read()["btu_s"].to_pylist() == [600.0, 3600.0]


def test_everything_may_be_repeated(whole, tmp_path):
    spec = a_spec()
    for _ in range(2):
        stages.run_all(spec, tmp_path)
    stages.deploy(spec, tmp_path)
    assert digests(tmp_path) == whole


def test_a_window_behind_a_gap_of_commits_is_not_reached(tmp_path, monkeypatch):
    """Commits are written from the last to the first, and a process may be killed in between."""
    spec = a_spec()
    monkeypatch.setattr(stages, "TOGETHER_S", 0)
    begun(spec, tmp_path, 2).commit(0).unlink()
    assert stages.window_reached(spec, tmp_path, 0)
    assert not stages.window_reached(spec, tmp_path, 2)


def test_many_samples_are_committed_sooner_and_give_the_same_bytes(whole, tmp_path, monkeypatch):
    spec = a_spec()
    monkeypatch.setattr(stages, "TOGETHER_S", 60)
    monkeypatch.setattr(stages, "TOGETHER_SAMPLES", 1)
    seen = list[bool]()
    rows = stages.store_of(spec, tmp_path).rows(0)
    stages.run_all(spec, tmp_path, lambda _: seen.append(rows.is_file()))
    assert seen == [True, True, True]
    assert digests(tmp_path) == whole


def test_what_a_killed_task_left_of_windows_is_removed_with_the_next_try(whole, tmp_path):
    spec = a_spec()
    stages.run_all(spec, tmp_path)
    rows = stages.store_of(spec, tmp_path).rows(0)
    rows.parent.mkdir()
    rows.touch()
    stages.control_windows(spec, tmp_path, spec.windows - 1, spec.windows - 1)
    assert digests(tmp_path) == whole


@pytest.mark.parametrize(
    ("together_s", "at_write"), [*((60, at) for at in KILLS), *((0, at) for at in KILLS)]
)
def test_killed_at_any_file_and_repeated_it_gives_the_same_bytes(
    whole, tmp_path, monkeypatch, together_s, at_write
):
    spec = a_spec()
    monkeypatch.setattr(stages, "TOGETHER_S", together_s)
    assert killed(lambda: stages.run_all(spec, tmp_path), at_write, within=str(tmp_path))
    stages.run_all(spec, tmp_path)
    assert digests(tmp_path) == whole


def test_killed_between_manifest_and_commits_it_may_go_on_window_by_window(
    whole, tmp_path, monkeypatch
):
    spec = a_spec()
    monkeypatch.setattr(stages, "TOGETHER_S", 60)
    assert killed(lambda: stages.run_all(spec, tmp_path), 26, within=str(tmp_path))
    store = stages.store_of(spec, tmp_path)
    assert store.manifest.is_file()
    assert not store.commit(spec.windows - 1).is_file()
    for window in range(spec.windows):
        stages.control_windows(spec, tmp_path, window, window)
    assert digests(tmp_path) == whole


def test_nobody_holds_what_was_simulated_while_the_rows_of_all_windows_are_joined(
    tmp_path, monkeypatch
):
    def sessions() -> int:
        return sum(isinstance(found, Session) for found in gc.get_objects())

    def joined(*arguments):
        held.append(sessions())
        return join(*arguments)

    join = RunStore.write_wholes
    monkeypatch.setattr(RunStore, "write_wholes", joined)
    gc.collect()
    of_other_tests, held = sessions(), []
    stages.run_all(a_spec(), tmp_path)
    assert held == [of_other_tests]


def test_without_arrivals_nothing_is_deployed(tmp_path, monkeypatch):
    spec = a_spec()
    monkeypatch.setattr(stages, "_arrivals_csv", lambda run: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        stages.run_all(spec, tmp_path)
    assert not stages.store_of(spec, tmp_path).snapshot(0).is_file()


def test_a_damaged_snapshot_says_what_to_do(tmp_path):
    spec = a_spec()
    snapshot = begun(spec, tmp_path, 1).snapshot(1)
    snapshot.write_bytes(snapshot.read_bytes()[:-100])
    with pytest.raises(StoreError, match=r"not the one that was stored; remove .* run again"):
        stages.control_windows(spec, tmp_path, 1, 1)
    assert not stages.store_of(spec, tmp_path).commit(1).exists()
    snapshot.unlink()
    with pytest.raises(StoreError, match="is missing"):
        stages.control_windows(spec, tmp_path, 1, 1)


def test_a_window_before_its_stages_says_what_to_run(tmp_path):
    with pytest.raises(StoreError, match="run provision_testbed first"):
        stages.control_windows(a_spec(), tmp_path, 0, 0)


def test_an_unwritable_root_says_what_to_do(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SetupError, match="TIDEBENCH_DATA_ROOT"):
        stages.provision(a_spec(), tmp_path / "file" / "root")


def test_a_run_that_has_ended_has_one_file_per_table_and_says_its_variant(tmp_path):
    spec = a_spec(controller_options={"observations": 3}, duration_min=10)
    stages.run_all(spec, tmp_path)
    files = list((tmp_path / "stages" / "measurements").rglob("*.parquet"))
    assert len(files) == len({file.parent for file in files})
    row = pq.ParquetFile(stages.store_of(spec, tmp_path).part("run", 0)).read().to_pylist()[0]
    assert row["variant"] == "observations=3"
    assert row["conditions"].startswith("duration_min=10, faults.instance_crashes_per_hour=2")


def test_what_tables_have_to_know_of_a_run_stands_in_its_rows(tmp_path):
    spec = a_spec(controller="threshold", duration_min=5)
    stages.run_all(spec, tmp_path)
    rows = {
        name: pq.ParquetFile(stages.store_of(spec, tmp_path).part(name, 0)).read().to_pydict()
        for name in ("run", "operator")
    }
    assert (rows["run"]["monitor_every_s"], rows["run"]["pays_by_btu"]) == ([15.0], [False])
    high = zip(rows["operator"]["operator"], rows["operator"]["high_volume"], strict=True)
    assert [name for name, is_high in high if is_high] == ["O2", "O6"]
    decided = pq.ParquetFile(stages.store_of(spec, tmp_path).whole("decision")).read()
    assert {Reason(reason) for reason in decided["reason"].to_pylist()} >= {
        Reason.QUEUE_SHORT,
        Reason.NOTHING_TO_DO,
    }


def test_an_oracle_is_told_the_peak_of_the_run_and_of_nothing_after_it():
    """The step to twice the level comes after an hour."""
    short = a_spec(pattern="step", duration_min=30)
    constant = a_spec(pattern="constant", pattern_options={"level": 1})
    assert resolve(short).instances_at_peak == resolve(constant).instances_at_peak
    longer = resolve(a_spec(pattern="step", duration_min=90))
    assert longer.instances_at_peak != resolve(constant).instances_at_peak


def test_only_an_oracle_is_told_of_the_peak():
    for name, registered in CONTROLLERS.items():
        run = resolve(a_spec(controller=name))
        at_peak = run.build_controller().setting.instances_at_peak
        assert at_peak == (run.instances_at_peak if registered.needs_peak else {}), name
    assert [name for name, registration in CONTROLLERS.items() if registration.needs_peak] == [
        "fixed"
    ]


def test_the_manifest_lists_every_part_with_its_hash(tmp_path):
    spec = a_spec()
    stages.run_all(spec, tmp_path)
    store = stages.store_of(spec, tmp_path)
    manifest = read_json(store.manifest)
    parts = {path.relative_to(store.folder).as_posix() for path in store.folder.rglob("*.parquet")}
    assert {part["path"] for part in manifest["parts"]} == parts
    for part in manifest["parts"]:
        content = (store.folder / part["path"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == part["sha256"]
    assert manifest["windows"] == 3
    assert manifest["seed"] == 3


def test_every_lease_is_stored_once_in_order_whenever_it_ended(tmp_path):
    spec = a_spec(btu_min=2, duration_min=30)
    stages.run_all(spec, tmp_path)
    store = stages.store_of(spec, tmp_path)
    log = pq.ParquetFile(store.part("lease", 0)).read().to_pylist()
    assert [lease["host"] for lease in log] == [f"host-{i + 1}" for i in range(len(log))]
    commits = [read_json(store.commit(k))["ended_leases"] for k in range(spec.windows)]
    ended = [host for commit in commits for host in commit["host"]]
    assert sorted(ended) == sorted(lease["host"] for lease in log if lease["released"])
    assert sum(bool(commit["host"]) for commit in commits) > 1, "they end in several windows"
    assert all(lease["ended_s"] <= 1800 for lease in log)


def test_a_run_whose_last_window_is_shorter_ends_on_time(tmp_path):
    spec = a_spec(duration_min=12, faults={})
    last = stages.run_all(spec, tmp_path)[-1]
    assert (last["start_min"], last["end_min"]) == (10, 12)


def test_forgetting_a_run_removes_all_of_it_and_nothing_else(tmp_path):
    kept, gone = a_spec(duration_min=5), a_spec(duration_min=5, seed=4)
    for spec in (kept, gone):
        stages.run_all(spec, tmp_path)
    before = digests(tmp_path)
    stages.forget(gone, tmp_path)
    assert set(digests(tmp_path)) == {name for name in before if gone.run_id not in name}


@pytest.mark.parametrize("ends", [KeyboardInterrupt, StoreError])
def test_what_ended_a_run_is_not_hidden_by_its_release(ends, tmp_path, monkeypatch, caplog):
    """Taken for a failure of the testbed, Ctrl-C would begin the next run."""

    def fails(*_):
        raise TestbedError("a host is still there")

    def end(_):
        raise ends("that is why")

    monkeypatch.setattr(stages, "release", fails)
    spec = a_spec(duration_min=5)
    with pytest.raises(ends, match="that is why"):
        stages.run_all(spec, tmp_path, report=end)
    assert "a host is still there" in caplog.text
    with pytest.raises(TestbedError, match="a host is still there"):
        stages.run_all(spec, tmp_path)


@pytest.mark.parametrize("kept", ["runs", "measurements"])
def test_what_cannot_be_removed_is_told_and_not_gone_on_with(kept, tmp_path, monkeypatch):
    spec, remove = a_spec(duration_min=5), shutil.rmtree
    stages.run_all(spec, tmp_path)

    def keep_some(path: Path, **how: Any) -> None:
        if kept not in path.parts:
            remove(path, **how)

    monkeypatch.setattr(shutil, "rmtree", keep_some)
    with pytest.raises(SetupError, match=rf"{kept}/.* cannot be removed; make it writable"):
        stages.forget(spec, tmp_path)
    assert stages.store_of(spec, tmp_path).home.is_dir(), "without it the rows would be nobody's"
    monkeypatch.undo()
    stages.forget(spec, tmp_path)
    assert not list(tmp_path.rglob("*.parquet"))


def test_summaries_only_stores_the_same_but_for_what_no_table_is_made_of(whole, tmp_path):
    spec = a_spec(summaries_only=True)
    stages.run_all(spec, tmp_path)
    constants = {
        path.replace(spec.run_id, a_spec().run_id): digest
        for path, digest in digests(tmp_path).items()
        if "/measurements/" in path
    }
    measured = {path: digest for path, digest in whole.items() if "/measurements/" in path}
    left_out = {path.split("/")[2] for path in measured.keys() - constants.keys()}
    assert left_out == set(UNREAD)
    # The table `run` has the hash of the spec.
    assert {path.split("/")[2] for path in constants if constants[path] != measured[path]} == {
        "run"
    }


def test_the_commit_of_a_run_says_when_files_differ(tmp_path, monkeypatch):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first", "--allow-empty"]):
        (tmp_path / "file").write_text("as committed")
        subprocess.run([*git, *words], check=True)
    monkeypatch.setattr(code_versions, "INCLUDE", tmp_path)
    commit = code_versions.git_commit()
    assert len(commit) == 40
    (tmp_path / "file").write_text("changed")
    assert code_versions.git_commit() == f"{commit}-dirty"
