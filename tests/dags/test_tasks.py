"""What the tasks add to the stages they call: names, and which errors are worth a retry."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from include.controllers.peerj141.btu import Btu
from include.controllers.peerj141.threshold import Threshold
from include.experiment.form import experiment_params
from include.experiment.matrix import runs_in_file
from include.experiment.params import run_from_params
from include.experiment.spec import RunSpec
from include.files.whole import write_json
from include.model.errors import (
    CapacityExhausted,
    GateFailed,
    PublishError,
    SetupError,
    SpecError,
    StoreError,
    TestbedNotReady,
    TidebenchError,
)
from include.results.tables.catalogue import PUBLISHED
from include.results.tables.quarantine import Check, write_quarantine
from include.runs.stages import deploy, provision, replay_arrivals, store_of
from include.runs.stored import mark_code
from include.testbeds import TESTBEDS
from tests.builders_staged import let_pass, stage
from tests.dags.ends import execute, fails_for_good

if TYPE_CHECKING:
    from tidebench.stage import Stage


def resolve(**params: Any) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Windows and XComs of `resolve_spec` for the default parameters and these."""
    from tidebench.tasks import ResolveSpec

    defaults = {name: keywords["default"] for name, keywords in experiment_params().items()}
    xcoms: dict[str, str] = {}
    task = ResolveSpec(task_id="resolve_spec")
    return execute(task, xcoms=xcoms, params=defaults | params), xcoms


@pytest.mark.parametrize(
    "error",
    [
        SpecError("params", ["a problem"]),
        CapacityExhausted("no quota"),
        GateFailed("not true"),
        SetupError("no Java"),
        StoreError("damaged"),
    ],
)
def test_what_a_retry_cannot_fix_fails_for_good_with_its_message(error: TidebenchError) -> None:
    from tidebench.stage import without_vain_retries

    with fails_for_good() as raised, without_vain_retries():
        raise error
    assert str(raised.value) == str(error)
    assert raised.value.__suppress_context__  # its log shows no second traceback
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("error", [TestbedNotReady("booting"), PublishError("locked")])
def test_what_a_retry_may_fix_is_retried(error: TidebenchError) -> None:
    from tidebench.stage import without_vain_retries

    with pytest.raises(type(error)), without_vain_retries():
        raise error


def test_a_set_up_that_fails_says_why_and_not_what_its_clean_up_met(data_root: Path) -> None:
    from tidebench.tasks import ProvisionTestbed

    run = run_from_params({"experiment": "damaged"})
    mark_code(store_of(run, data_root), run)
    store_of(run, data_root).run_json.write_text("{}")
    task = ProvisionTestbed(task_id="provision_testbed", run=run.to_json())
    with fails_for_good(match="with other inputs"):
        execute(task)


def test_windows_are_named_by_their_minutes_and_the_last_ends_with_the_run() -> None:
    windows, xcoms = resolve(duration_min=25, btu_min=10)
    assert windows == [
        {"index": 0, "name": "window 000, minute 0 to 10"},
        {"index": 1, "name": "window 001, minute 10 to 20"},
        {"index": 2, "name": "window 002, minute 20 to 25"},
    ]
    assert '"duration_min":25' in xcoms["run"]


def test_a_wrong_parameter_is_reported_before_anything_is_provisioned() -> None:
    with fails_for_good(match=r"controller 'btuu'.*Did you mean 'btu'"):
        resolve(controller="btuu")


@pytest.fixture
def deployed(data_root: Path) -> RunSpec:
    """A run of one window of a day, ready for it."""
    return deployed_for(data_root, duration_min=1440, btu_min=1440)


def deployed_for(data_root: Path, **params: Any) -> RunSpec:
    run = run_from_params({"experiment": "a-day", **params})
    provision(run, data_root)
    deploy(run, data_root)
    replay_arrivals(run, data_root)
    return run


@contextmanager
def ended_by_hand(task: Stage, after_s: float) -> Iterator[None]:
    """Send the signal that Airflow sends, handled as Airflow handles it."""
    from airflow.sdk.exceptions import AirflowTaskTimeout

    before = signal.signal(signal.SIGTERM, lambda number, frame: task.on_kill())
    timer = threading.Timer(after_s, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    try:
        with pytest.raises(AirflowTaskTimeout, match="ended by hand"):
            yield
    finally:
        timer.cancel()
        signal.signal(signal.SIGTERM, before)


def test_a_task_that_is_ended_by_hand_stops_at_once_and_commits_nothing(
    deployed: RunSpec, data_root: Path
) -> None:
    from tidebench.windows import ControlWindow

    window = {"index": 0, "name": "the only one"}
    task = ControlWindow(task_id="control_window", run=deployed.to_json(), window=window)
    with ended_by_hand(task, after_s=0.3):
        execute(task)
    assert not store_of(deployed, data_root).commit(0).exists()


@pytest.mark.parametrize("kind", [Btu, Threshold], ids=["controller", "advisor"])
def test_a_task_that_is_ended_while_a_controller_or_an_advisor_decides_stops_too(
    kind: type, data_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ends it is no failure of theirs."""
    from tidebench.windows import ControlWindow

    run = deployed_for(data_root, duration_min=10, btu_min=10, advisors=["threshold"])
    monkeypatch.setattr(kind, "decide", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    window = {"index": 0, "name": "the only one"}
    task = ControlWindow(task_id="control_window", run=run.to_json(), window=window)
    with ended_by_hand(task, after_s=60.0):
        execute(task)
    assert not store_of(run, data_root).commit(0).exists()


def test_a_task_stops_although_c_code_dropped_the_first_attempt(deployed: RunSpec) -> None:
    """An exception raised in what C code calls back is printed and forgotten."""
    from tidebench.stage import Stage

    class InC(Stage):
        def work(self, run: RunSpec, root: Path) -> None:
            until_the_signal = time.sleep
            ctypes.CFUNCTYPE(None)(lambda: until_the_signal(1.0))()
            end_s = time.monotonic() + 30
            while time.monotonic() < end_s:
                time.sleep(0.01)

    task = InC(task_id="in_c", run=deployed.to_json())
    with ended_by_hand(task, after_s=0.3):
        execute(task)


@pytest.mark.parametrize(
    ("real_time", "is_over", "releases"), [(True, True, 1), (True, False, 2), (False, False, 1)]
)
def test_a_run_in_real_time_that_was_cut_short_is_released_once_more(
    real_time: bool,
    is_over: bool,
    releases: int,
    deployed: RunSpec,
    data_root: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A window, or a deployment, that was under way notices late, and leases until then."""
    from tidebench import tasks

    released: list[str] = []
    testbed = SimpleNamespace(real_time=real_time, in_cloud=False)
    monkeypatch.setitem(TESTBEDS, deployed.testbed, testbed)
    monkeypatch.setattr(tasks, "STOPPING_S", 0.0)
    release = tasks.ReleaseTestbed(task_id="release_testbed", run=deployed.to_json())
    monkeypatch.setattr(release, "work", lambda run, root: released.append(run.run_id))
    if is_over:
        write_json(store_of(deployed, data_root).commit(0), {})
    execute(release)
    assert released == [deployed.run_id] * releases


@pytest.mark.parametrize("kind", ["run_ids", "cells"])
def test_a_dag_run_whose_run_is_not_in_the_report_publishes_the_others_and_then_fails(
    kind: str, data_root: Path
) -> None:
    from airflow.sdk.execution_time.context import OutletEventAccessors

    from tidebench.tasks import PublishReport

    run, other = (run_from_params({"experiment": "mine", "seed": seed}) for seed in (1, 2))
    folder = stage(data_root / "mine", other.run_id)
    page = folder / "published" / "report.html"
    events: list[OutletEventAccessors] = []

    def publish(run: RunSpec) -> None:
        page.unlink(missing_ok=True)
        cells = [{"name": "a", "runs": [run.to_json()]}]
        whose: Any = {kind: {"run_ids": [run.run_id], "cells": cells}[kind]}
        events.append(OutletEventAccessors())
        task = PublishReport(task_id="publish_report", experiment="mine", **whose)
        execute(task, outlet_events=events[-1])

    let_pass(folder)  # who built the tables did not see it
    with fails_for_good(match=f"published without {run.run_id}: not measured by the code"):
        publish(run)
    assert (len(events[-1]), page.is_file()) == (0, True)

    check = Check(
        table="elasticity", columns=("run",), expectation="made_up", sentence="It is there.",
        passed=False, rows=({"missing": run.run_id},),
    )  # fmt: skip
    write_quarantine(folder / "staged", {run.run_id: (check,)})
    let_pass(folder, run.run_id)
    with fails_for_good(match=f"left out: run {run.run_id} because"):
        publish(run)
    assert (len(events[-1]), page.is_file()) == (0, True)

    publish(other)
    assert len(events[-1]) == len(PUBLISHED)
    if kind == "cells":  # a night publishes one experiment after the other
        publish(replace(run, experiment="yours"))


def test_links_lead_to_the_page_as_its_experiment_is_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tidebench.tasks import CheckTables, PublishReport

    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://lab.example/air/")
    links = {}
    for kind in (CheckTables, PublishReport):
        task = kind(task_id="one", experiment="mine")
        key: Any = None
        links |= {link.name: link.get_link(task, ti_key=key) for link in task.operator_extra_links}
    assert links == {
        "Checks": "/air/tidebench/checks/mine",
        "Report": "/air/tidebench/files/mine/published/report.html",
        "Runs": "/air/tidebench/?experiment=mine",
    }


def test_a_sweep_hands_down_which_runs_are_its_own(tmp_path: Path) -> None:
    from tidebench.sweep import MeasurePoints, ResolvePoints

    spec = tmp_path / "spec.yaml"
    spec.write_text("{name: mine, controllers: btu, patterns: constant, seeds: [1, 2]}")
    xcoms: dict[str, list[str]] = {}
    task = ResolvePoints(task_id="resolve_points", spec=str(spec))
    assert execute(task, xcoms=xcoms) == "mine"
    assert xcoms == {"run_ids": [run.run_id for run in runs_in_file(spec)]}
    assert len(xcoms["run_ids"]) == 2
    spec.write_text("{name: mine, controllers: btu, patterns: constant, seeds: [1, 3]}")
    points = MeasurePoints(task_id="measure_points", spec=str(spec), run_ids=xcoms["run_ids"])
    with fails_for_good(match="has been changed since .* clear resolve_points"):
        execute(points)
    nobodys = ResolvePoints(task_id="resolve_points", spec="~nobody-here/spec.yaml")
    with fails_for_good(match="there is no file"):
        execute(nobodys)
