"""A stored run counts when it is whole, and inputs and code that measured it are those of now.

What is damaged is named, and measured again with the same bytes; a live run is not.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from include.experiment.problems import problems_of
from include.experiment.run import Run
from include.model.errors import StoreError
from include.runs import stages, stored, versions
from include.runs.batch import run_batch
from include.runs.measurements.store import RunStore
from include.runs.stored import Stored
from include.testbeds import TESTBEDS
from include.testbeds.simulated.testbed import SimulatedTestbed
from tests.builders import begun, run_spec
from tests.digests import digests

SPEC = run_spec(experiment="stored", btu_min=2, duration_min=4)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    root = tmp_path_factory.mktemp("measured")
    stages.run_all(SPEC, root)
    return root


@pytest.fixture
def root(measured, tmp_path):
    """A data root with one complete run."""
    return shutil.copytree(measured, tmp_path / "data")


@pytest.fixture
def change_code(monkeypatch):
    return lambda: monkeypatch.setattr(stored, "code_digest", lambda _: "other code")


def parts(root):
    return {path: path.stat().st_mtime_ns for path in root.rglob("*.parquet")}


def measure(root):
    (result,) = run_batch([SPEC], root, processes=1)
    return result


def test_runs_that_were_asked_for_are_kept_until_they_are_removed(root):
    folder = root / SPEC.experiment
    assert stored.asked_runs(folder) == [], "nobody said what was asked for"
    stored.forget_asked(folder, [SPEC.run_id])
    assert stored.asked_runs(folder) == []
    stored.mark_asked(folder, ["tide-s2", "tide-s1"])
    stored.forget_asked(folder, ["tide-s2", SPEC.run_id])
    assert stored.asked_runs(folder) == ["tide-s1"]


def test_a_run_of_other_code_is_measured_anew_and_says_so(root, change_code):
    before = parts(root)
    change_code()
    result = measure(root)
    assert result.outcome == "measured"
    assert result.how.endswith("measured anew, what was stored is of other code")
    after = parts(root)
    assert after.keys() == before.keys()
    assert all(after[path] > before[path] for path in before)
    assert measure(root).outcome == "reused"


def test_a_report_names_runs_that_would_not_be_measured_so_now(tmp_path, change_code):
    calibration = tmp_path / "mine.yaml"
    calibration.write_text("based_on: manufacturing\n", encoding="utf-8")
    spec = replace(SPEC, calibration=str(calibration))
    stages.run_all(spec, tmp_path)
    folder = stages.store_of(spec, tmp_path).folder
    assert stages.outdated_runs(folder) == []
    calibration.write_text("based_on: manufacturing\nservice_cv: 0.7\n", encoding="utf-8")
    (sentence,) = stages.outdated_runs(folder)
    assert sentence.startswith("measured before")
    assert sentence.endswith(spec.run_id)
    calibration.write_text("based_on: manufacturing\nservice_cv: much\n", encoding="utf-8")
    assert stages.outdated_runs(folder) == [sentence], "no run could be of it"
    calibration.unlink()
    assert stages.outdated_runs(folder) == []
    change_code()
    (sentence,) = stages.outdated_runs(folder)
    assert sentence.startswith("measured by other code")
    assert sentence.endswith(spec.run_id)


@pytest.mark.parametrize(("controller", "told"), [("not_here:Own", 0), ("renamed", 1)])
def test_of_the_code_of_an_own_controller_that_is_not_here_a_report_says_nothing(
    root, controller, told
):
    store = stages.store_of(SPEC, root)
    mark = {"sha256": "before", "controllers": [controller]}
    (store.home / "code.json").write_text(json.dumps(mark))
    assert len(stages.outdated_runs(store.folder)) == told


def test_a_run_stored_before_code_was_marked_is_of_other_code(root):
    (stages.store_of(SPEC, root).home / "code.json").unlink()
    assert stages.stored_state(SPEC, root) is Stored.OTHER_CODE


def test_a_run_that_was_cut_off_before_its_inputs_is_not_of_other_code(root):
    before, store = digests(root), stages.store_of(SPEC, root)
    for path in (store.home / "code.json", store.run_json, store.manifest):
        path.unlink()
    assert measure(root).stored == Stored.CUT_OFF
    assert digests(root) == before


def test_windows_of_other_code_are_never_gone_on_from(root, change_code):
    store = stages.store_of(SPEC, root)
    store.commit(1).unlink()
    store.manifest.unlink()
    assert stages.stored_state(SPEC, root) is Stored.BEGUN
    change_code()
    with pytest.raises(StoreError, match="provision it again"):
        stages.control_windows(SPEC, root, 1, 1)
    stages.provision(SPEC, root)
    assert not store.commit(0).exists()
    assert not parts(root)


@pytest.fixture
def in_real_time(monkeypatch):
    slow = replace(TESTBEDS["simulated"], real_time=True)
    monkeypatch.setattr(stages, "TESTBEDS", {"simulated": slow})


@pytest.mark.usefixtures("in_real_time")
def test_what_other_code_measured_in_real_time_is_not_thrown_away(root, change_code):
    before = parts(root)
    assert measure(root).outcome == "reused"
    change_code()
    assert "takes as long as it did" in measure(root).error
    assert parts(root) == before


@pytest.fixture
def interrupted(root):
    """A run that ended after its first window."""
    stages.forget(SPEC, root)
    return begun(SPEC, root, 1)


@pytest.mark.usefixtures("in_real_time")
def test_an_interrupted_run_that_was_given_back_is_forgotten(root, interrupted, monkeypatch):
    snapshot = interrupted.snapshot(0).stat().st_mtime_ns
    stages.provision(SPEC, root)
    stages.deploy(SPEC, root)
    assert interrupted.commit(0).is_file(), "its testbed still has it: it goes on"
    assert interrupted.snapshot(0).stat().st_mtime_ns == snapshot, "and is not deployed again"

    def gone(*_):
        raise StoreError("what it had leased was given back")

    with monkeypatch.context() as patch:
        patch.setattr(SimulatedTestbed, "restore", gone)
        stages.provision(SPEC, root)
    assert not interrupted.commit(0).exists()
    assert not interrupted.snapshot(0).exists()
    assert measure(root).outcome == "measured"


@pytest.mark.usefixtures("in_real_time", "interrupted")
def test_an_interrupted_run_of_other_code_in_real_time_is_measured_anew(root, change_code):
    change_code()
    assert measure(root).outcome == "measured"


def test_what_a_run_holds_is_given_back_whatever_became_of_its_controller(tmp_path, monkeypatch):
    given_back = []
    leasing = replace(TESTBEDS["simulated"], reaped_by="of a test")
    monkeypatch.setattr(stages, "TESTBEDS", {"simulated": leasing})
    monkeypatch.setattr(
        SimulatedTestbed, "give_back", lambda testbed: given_back.append(testbed), raising=False
    )
    begun(SPEC, tmp_path, 1)
    monkeypatch.setattr(Run, "build_controller", lambda run: 1 / 0)
    stages.release(SPEC, tmp_path)
    assert len(given_back) == 1


def test_nothing_stored_is_no_reason_to_say_anything(tmp_path):
    assert stages.stored_state(SPEC, tmp_path) is Stored.NOTHING
    assert "," not in measure(tmp_path).how


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        ("controllers/btu.py", False),  # counts for those that import it, below
        ("model/host.py", True),
        ("workloads/manufacturing/random_walk_levels.csv", True),
        ("testbeds/virtual/calibrations/mine.yaml", True),
        ("experiment/specs/mine.yaml", False),
        ("results/reports/page.py", False),
        ("controllers/notes.txt", False),
    ],
)
def test_the_digest_is_of_what_decides_what_is_measured(file, counts, tmp_path, monkeypatch):
    of_each = []
    monkeypatch.setattr(versions, "INCLUDE", tmp_path)
    (tmp_path / file).parent.mkdir(parents=True)
    for text in ("a", "b"):
        (tmp_path / file).write_text(text)
        of_each.append(versions.trunk_digest.__wrapped__())
    assert (of_each[0] != of_each[1]) is counts


def test_a_package_of_another_version_is_other_code(monkeypatch):
    before = versions.trunk_digest.__wrapped__()
    monkeypatch.setattr(versions, "version", lambda name: f"another {name}")
    assert versions.trunk_digest.__wrapped__() != before


def test_an_edited_controller_makes_only_its_own_runs_stale(tmp_path, monkeypatch):
    """Of a user's own: an edit of what it imports counts, from its package or from beside it."""
    package = tmp_path / "edited_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "rule.py").write_text("LIMIT = 1\n")
    (package / "other.py").write_text("")
    (package / "mine.py").write_text(
        "from dataclasses import dataclass\n"
        "from include.controllers.fixed import Fixed\n"
        "from edited_beside import EACH\n"
        "from .rule import LIMIT\n"
        "@dataclass(frozen=True, kw_only=True)\n"
        "class Mine(Fixed):\n"
        "    limit: int = LIMIT * EACH\n"
    )
    (tmp_path / "edited_beside.py").write_text("EACH = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def of_both():
        versions._controller_digest.cache_clear()
        versions._source.cache_clear()
        return [versions.code_digest([name]) for name in ("edited_package.mine:Mine", "btu")]

    before = of_both()
    (package / "other.py").write_text("# nobody imports this\n")
    assert of_both() == before
    for edited in (package / "rule.py", tmp_path / "edited_beside.py"):
        edited.write_text(edited.read_text() + "# other\n")
        assert of_both()[0] != before[0]
        assert of_both()[1] == before[1]
        before = of_both()


def test_code_that_is_imported_is_not_marked_as_what_it_is_edited_to(tmp_path, monkeypatch):
    """A second controller of a module, and one that imports from it, as an experiment reaches them
    in a process that has imported the module for another."""
    both = "from include.controllers.fixed import Fixed\nclass A(Fixed): ...\nclass B(Fixed): ...\n"
    (tmp_path / "edited_meanwhile.py").write_text(both)
    (tmp_path / "imports_edited.py").write_text("from edited_meanwhile import B as C\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    names = "edited_meanwhile:B", "imports_edited:C"
    ask = "import sys; from include.runs.versions import code_digest as of; print(of(sys.argv[1:]))"

    def of_another_process():
        asked = [sys.executable, "-c", ask, *names]
        path = os.pathsep.join([str(tmp_path), str(versions.INCLUDE.parent)])
        done = subprocess.run(asked, capture_output=True, env={"PYTHONPATH": path}, check=True)
        return done.stdout.decode().strip()

    before = of_another_process()
    versions.code_digest(["edited_meanwhile:A"])
    (tmp_path / "edited_meanwhile.py").write_text(f"import json\n{both}")
    assert versions.code_digest(names) == before != of_another_process()


def test_before_the_first_run_the_code_of_all_in_this_process_is_looked_at(tmp_path, monkeypatch):
    names = {name: f"looked_at_{name}" for name in ("first", "second")}
    for module in names.values():
        own = "from include.controllers.fixed import Fixed\nclass Own(Fixed): ...\n"
        (tmp_path / f"{module}.py").write_text(own)
    monkeypatch.syspath_prepend(str(tmp_path))
    specs = [run_spec(controller=f"{name}:Own", duration_min=1) for name in names.values()]

    def edit(result):
        if result.spec == specs[0]:
            (tmp_path / "looked_at_second.py").write_text("EDITED = True\n")

    for spec in specs:
        assert problems_of(spec) == []  # imports it, as a command does first
    run_batch(specs, tmp_path, processes=1, report=edit)
    assert stages.stored_state(specs[1], tmp_path) is Stored.COMPLETE
    versions._controller_digest.cache_clear()
    versions._source.cache_clear()
    assert stages.stored_state(specs[1], tmp_path) is Stored.OTHER_CODE


def test_of_a_controller_count_its_family_and_what_that_imports_of_ours(tmp_path, monkeypatch):
    behind = versions.modules_behind("include.controllers.tide.controller")
    assert {"include.controllers.tide.loss", "include.controllers.plan"} <= behind.keys()
    assert not [name for name in behind if "fugu" in name or name == "include.controllers"]
    (tmp_path / "with_a_plan.py").write_text("import numpy\nfrom include.controllers import plan\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    own = versions.modules_behind("with_a_plan").keys()
    assert {"with_a_plan", "include.controllers.plan"} <= own
    assert not [name for name in own if name.startswith(("numpy", "include.model"))]
    installed = versions.modules_behind("jinja2.utils")  # imports markupsafe, installed beside it
    assert {name.partition(".")[0] for name in installed} == {"jinja2"}


def test_what_acts_in_every_run_counts_in_every_run():
    """What the folders that take part import of controllers, but for their list."""
    asked = set()
    for folder in versions.COMPUTES:
        for path in (versions.INCLUDE / folder).rglob("*.py"):
            asked |= set(re.findall(r"include\.controllers\.\w+", path.read_text()))
    counted = versions.modules_behind(*versions.ACTS).keys()
    assert "include.controllers.deployment" in asked & counted
    assert asked - counted == {"include.controllers.registry"}


def test_the_digest_costs_next_to_nothing():
    took_s = []
    for _ in range(5):
        begin_s = time.process_time()
        versions.trunk_digest.__wrapped__()
        took_s.append(time.process_time() - begin_s)
    assert min(took_s) < 0.05


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


def torn_inputs(store: RunStore) -> None:
    store.run_json.write_text(store.run_json.read_text()[:-100])


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
        (torn_inputs, "run.json is damaged"),
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
    result = measure(root)
    assert result.outcome == "measured"
    assert named in result.how
    assert digests(root, files="*.parquet") == digests(measured, files="*.parquet")
    assert measure(root).outcome == "reused"


def test_an_interrupted_run_with_a_damaged_commit_is_measured_anew(root, measured):
    store = stages.store_of(SPEC, root)
    store.manifest.unlink()
    store.commit(1).unlink()
    no_summary_at_first = store.commit(0)
    no_summary_at_first.write_text("{}")
    with pytest.raises(StoreError, match=r"000\.json is damaged: it is not what a window commits"):
        stages.control_windows(SPEC, root, 0, 1)
    result = measure(root)
    assert "commits/000.json is damaged" in result.how
    assert digests(root, files="*.parquet") == digests(measured, files="*.parquet")


@pytest.mark.usefixtures("in_real_time")
def test_a_damaged_live_run_is_kept_and_its_command_said(root):
    store = stages.store_of(SPEC, root)
    empty(store)
    before = digests(root, files="*.parquet")
    result = measure(root)
    assert result.outcome == "failed"
    assert f"tidebench remove {store.folder} {SPEC.run_id}" in result.error
    assert digests(root, files="*.parquet") == before
