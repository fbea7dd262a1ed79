"""What is damaged of a run is named, and measured again with the same bytes; a live run is not."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest

from include.model.errors import StoreError
from include.runs import stages
from include.runs.batch import run_batch
from include.runs.measurements.store import RunStore
from include.testbeds import TESTBEDS
from tests.builders import run_spec
from tests.digests import digests

SPEC = run_spec(experiment="kx", btu_min=2, duration_min=4)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    root = tmp_path_factory.mktemp("measured")
    stages.run_all(SPEC, root)
    return root


@pytest.fixture
def root(measured, tmp_path):
    return shutil.copytree(measured, tmp_path / "data")


def empty(store: RunStore) -> None:
    store.part("operator", 0).write_bytes(b"")


def deleted(store: RunStore) -> None:
    store.whole("host_utilisation").unlink()


def overwritten(store: RunStore) -> None:
    path = store.whole("queue")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def no_manifest(store: RunStore) -> None:
    store.manifest.write_text("{")


def no_parts(store: RunStore) -> None:
    store.manifest.write_text("[]")


def no_summary(store: RunStore) -> None:
    store.commit(1).write_text(json.dumps({"x": 1}))


def no_commit(store: RunStore) -> None:
    store.commit(0).unlink()


def other_arrivals(store: RunStore) -> None:
    (store.home / "arrivals.csv").write_text("source,time_s,level\n")


@pytest.mark.parametrize(
    ("harm", "named"),
    [
        (empty, "part-000.parquet of operator is not what was measured"),
        (deleted, "part-all.parquet of host_utilisation is missing"),
        (overwritten, "part-all.parquet of queue is not what was measured"),
        (no_manifest, "manifest.json is damaged"),
        (no_parts, "manifest.json is not what was written"),
        (no_summary, "commits/001.json is damaged: it is not what a window commits"),
        (no_commit, "commits/000.json is missing"),
        (other_arrivals, "arrivals.csv is missing or is not what arrived"),
    ],
)
def test_what_is_damaged_is_named_and_measured_again(harm, named, root, measured):
    store = stages.store_of(SPEC, root)
    harm(store)
    assert named in store.damage(SPEC.windows)
    (result,) = run_batch([SPEC], root, processes=1)
    assert result.outcome == "measured"
    assert named in result.how
    assert digests(root, files="*.parquet") == digests(measured, files="*.parquet")
    (again,) = run_batch([SPEC], root, processes=1)
    assert again.outcome == "reused"


def test_an_interrupted_run_with_a_damaged_commit_is_measured_anew(root, measured):
    store = stages.store_of(SPEC, root)
    store.manifest.unlink()
    store.commit(1).unlink()
    no_summary_at_first = store.commit(0)
    no_summary_at_first.write_text("{}")
    with pytest.raises(StoreError, match=r"000\.json is damaged: it is not what a window commits"):
        stages.control_windows(SPEC, root, 0, 1)
    (result,) = run_batch([SPEC], root, processes=1)
    assert "commits/000.json is damaged" in result.how
    assert digests(root, files="*.parquet") == digests(measured, files="*.parquet")


def test_a_damaged_live_run_is_kept_and_its_command_said(root, monkeypatch):
    slow = replace(TESTBEDS["simulated"], real_time=True)
    monkeypatch.setattr(stages, "TESTBEDS", {"simulated": slow})
    store = stages.store_of(SPEC, root)
    empty(store)
    before = digests(root, files="*.parquet")
    (result,) = run_batch([SPEC], root, processes=1)
    assert result.outcome == "failed"
    assert f"tidebench remove {store.folder} {SPEC.run_id}" in result.error
    assert digests(root, files="*.parquet") == before
