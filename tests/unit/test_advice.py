"""Advisors see what the controller would in their place, and change nothing of the run."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from include.controllers.base import Registration
from include.controllers.deployment import first_deployment
from include.controllers.fixed import Fixed
from include.experiment.matrix import runs_in_file
from include.experiment.params import matrix_from_params, run_from_params
from include.experiment.run import resolve
from include.experiment.spec import RunSpec, parse_spec
from include.files.whole import digest, read_json
from include.model.decision import Decision, Reason
from include.model.observation import Observation
from include.runs import stages
from include.runs.advice import NO_CHANGES, advice_rows, ask
from include.runs.session import Session
from include.testing.builders import a_setting, an_observation
from tests.builders import begun
from tests.command_line import said
from tests.digests import digests
from tests.problems import problems_told
from tests.unit.test_session import Recorder

ADVISORS = ["keda", {"name": "tide", "care": 2}, {"name": "fugu-local", "interval_s": 7.3}]
FAULTS = {
    "host_losses_per_hour": 2, "instance_crashes_per_hour": 4, "monitoring_gaps_per_hour": 6,
}  # fmt: skip
WORLDS: dict[str, dict[str, Any]] = {
    "items": {"controllers": "btu", "faults": FAULTS, "seeds": 2, "duration_min": 45},
    "rates": {"controllers": "tide", "testbed": "flow", "faults": FAULTS, "duration_min": 20},
    "tenants": {
        "controllers": "henge", "topology": "tenants_diurnal", "patterns": "diurnal",
        "btus_min": 10, "duration_min": 20,
    },
}  # fmt: skip


def a_spec(**fields: Any) -> RunSpec:
    raw = {"name": "beside", "controllers": "btu", "patterns": "random_walk_1"} | fields
    (spec,) = parse_spec(raw, source="a test").points()
    return spec


def measured(spec: RunSpec, root: Path) -> dict[str, Path]:
    """The file of every measured table of a run."""
    stages.run_all(spec, root)
    folder = root / spec.experiment / "measurements"
    return {path.relative_to(folder).parts[0]: path for path in sorted(folder.rglob("*.parquet"))}


def rows_of(file: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.ParquetFile(file).read().to_pylist()
    return rows


@pytest.mark.parametrize("world", WORLDS)
def test_a_run_goes_on_as_if_nobody_advised(world: str, tmp_path: Path) -> None:
    alone = measured(a_spec(**WORLDS[world]), tmp_path / "alone")
    beside = measured(a_spec(**WORLDS[world], advisors=ADVISORS), tmp_path / "beside")
    advice = rows_of(beside.pop("advice"))
    assert {row["advisor"] for row in advice} == {
        "keda",
        "tide care=2",
        "fugu-local interval_s=7.3",
    }
    assert any(row["advised_instances"] != row["acted_instances"] for row in advice)
    of_run = [rows_of(tables.pop("run")) for tables in (alone, beside)]
    assert [row | {"spec_hash": ""} for row in of_run[0]] == [
        row | {"spec_hash": ""} for row in of_run[1]
    ]
    assert {table: digest(file) for table, file in beside.items()} == {
        table: digest(file) for table, file in alone.items()
    }


def test_a_run_without_advisors_is_what_it_was(tmp_path: Path) -> None:
    """Ids of runs that were measured before there were advisors, and every byte of them."""
    demo = run_from_params({"experiment": "demo"})
    assert demo.run_id == "btu-random_walk_1-btu10-s1-1ba515"
    spec = a_spec(duration_min=10)
    stages.run_all(spec, tmp_path)
    assert "advi" not in resolve(spec).to_json() + spec.to_json()
    assert not [name for name in digests(tmp_path) if "advi" in name]
    store = stages.store_of(spec, tmp_path)
    assert "advisors_failed" not in read_json(store.commit(0))["summary"]


def test_advice_window_by_window_gives_the_same_bytes(tmp_path: Path) -> None:
    """Each window in a process of its own, one of them killed after its rows were written."""
    spec = a_spec(advisors=ADVISORS, btus_min=5, duration_min=15, faults=FAULTS)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    stages.run_all(spec, whole)
    store = begun(spec, cut)
    for window in range(spec.windows):
        stages.control_windows(spec, cut, window, window)
        if window == 1:
            store.commit(1).unlink()
            stages.control_windows(spec, cut, window, window)
    stages.release(spec, cut)
    assert digests(cut) == digests(whole)


def test_a_controller_agrees_with_itself(tmp_path: Path) -> None:
    for name in ("btu", "tide", "hpa"):
        spec = a_spec(controllers=name, advisors=name, duration_min=30, name=name)
        advice = rows_of(measured(spec, tmp_path)["advice"])
        for row in advice:
            assert row["advised_instances"] == row["acted_instances"], row
            assert row["hosts"] + row["would_lease"] - row["would_release"] == row["acted_hosts"]
        assert any(row["acted_instances"] > row["instances"] for row in advice), "it never acted"


class Onlooker(Recorder):
    """Keeps what a controller would be shown, and waits."""

    def decide(self, memory: Any, observation: Observation) -> tuple[Any, Decision]:
        self.observations.append(observation)
        return memory, Decision((), "it only looks", Reason.NOTHING_TO_DO)


@pytest.mark.parametrize("testbed", ["simulated", "flow"])
@pytest.mark.parametrize("interval_s", [60.0, 25.0])
def test_an_advisor_sees_what_it_would_in_the_controllers_place(
    testbed: str, interval_s: float
) -> None:
    """Counts and shares of work are since its own last look, whoever else looks in between."""
    target = {"name": "target-tracking", "interval_s": interval_s}
    where = {"testbed": testbed, "patterns": "stepwise", "duration_min": 10}
    acting = Session.open(resolve(a_spec(controllers=target, **where)))
    recorder = Onlooker(acting.loop.controller)
    acting.loop = replace(acting.loop, controller=recorder)
    # Its own first deployment is another than that of tide, whom nobody obeys here either.
    beside = Session.open(resolve(a_spec(controllers="tide", advisors=target, **where)))
    (label,) = beside.loop.advisors
    advisor = Onlooker(beside.loop.advisors[label])
    idle = Onlooker(beside.loop.controller)
    beside.loop = replace(beside.loop, controller=idle, advisors={label: advisor})
    deployment = first_deployment(beside.loop.setting, beside.loop.controller.initial_instances())
    for session in (acting, beside):
        session.loop.testbed.deploy(deployment)
        session.loop.testbed.take_measurements()
        for start_s in range(0, 600, 200):
            session.run(start_s, start_s + 200)
            session.loop.testbed.take_measurements()
            session.loop.testbed.restore(session.loop.testbed.snapshot())
    assert len(advisor.observations) == len(recorder.observations) == -(-600 // int(interval_s))
    assert len(idle.observations) == 40
    assert advisor.observations == recorder.observations
    assert any(
        sample.busy_share
        for observation in advisor.observations
        for sample in observation.operators.values()
    )


@dataclass(frozen=True, kw_only=True)
class Faulty(Fixed):
    """Decides every second time; the others it divides by zero."""

    def decide(self, memory: Any, observation: Observation) -> tuple[Any, Decision]:
        1 // (int(observation.now_s / self.interval_s) % 2)
        return Fixed.decide(self, memory, observation)


FAULTY = "tests.unit.test_advice:FAULTY_REGISTERED"
FAULTY_REGISTERED = Registration(Faulty, needs_peak=True)


def test_an_advisor_that_fails_is_told_and_harms_nobody(tmp_path: Path) -> None:
    where = {"duration_min": 10}
    alone = measured(a_spec(**where, advisors="keda"), tmp_path / "alone")
    file = tmp_path / "spec.yaml"
    raw = {"name": "beside", "controllers": "btu", "patterns": "random_walk_1", **where}
    file.write_text(json.dumps(raw | {"advisors": ["keda", FAULTY]}))
    done = said("run", str(file), "--root", str(tmp_path / "beside"))
    warning = f"advisor {FAULTY} failed, and the run went on without it: ZeroDivisionError"
    assert warning in done
    beside = measured(a_spec(**where, advisors=["keda", FAULTY]), tmp_path / "beside")
    assert digest(beside["decision"]) == digest(alone["decision"])
    advice = rows_of(beside["advice"])
    assert [row for row in advice if row["advisor"] == "keda"] == rows_of(alone["advice"])
    rows = [row for row in advice if row["advisor"] == FAULTY]
    interval_s = rows[-1]["time_s"] - rows[0]["time_s"]
    assert interval_s > 0
    for row in rows:
        assert row["failed"] == ("ZeroDivisionError" in row["because"])
        assert row["failed"] <= (row["advised_instances"] == row["instances"])
    assert {row["failed"] for row in rows} == {True, False}


class Undecided(Fixed):
    """What it returns is no decision, and its memory is of another class."""

    def decide(self, memory: Any, observation: Observation) -> tuple[Any, Decision]:
        reason: Any = "nothing_to_do" if observation.now_s else Reason.NOTHING_TO_DO
        return (memory if observation.now_s else 5), Decision((), "quiet", reason)


@pytest.mark.parametrize(("now_s", "fault"), [(0.0, "a memory of class int"), (9.0, "reason must")])
def test_what_no_row_or_window_could_store_is_a_fault_of_the_advisor(
    now_s: float, fault: str
) -> None:
    advisor = Undecided(setting=a_setting())
    memory = advisor.initial_memory()
    advice = ask("mine", advisor, memory, an_observation(now_s=now_s), advisor.setting)
    assert (advice.decided, advice.memory) == (None, memory)
    assert fault in advice.fault
    assert advice_rows([(advice, NO_CHANGES)], ["O1"])["failed"] == [True]


def test_every_row_has_the_reason_of_its_operator(tmp_path: Path) -> None:
    spec = a_spec(advisors=["tide"], duration_min=20)
    advice = rows_of(measured(spec, tmp_path)["advice"])
    grows = [row for row in advice if row["advised_instances"] > row["instances"]]
    for row in grows:
        of_its_own = row["because"].startswith(f"{row['operator']} has ")
        assert of_its_own or f"; {row['operator']}-" in row["because"], "first it gives a place"
        assert row["reason"] == (Reason.SLO_AT_RISK if of_its_own else Reason.MAKE_ROOM).value
    assert {row["reason"] for row in grows} == {"slo_at_risk", "make_room"}


# ------------------------------------------------------------------ what is asked for

WRONG = ["kedaa", {"name": "tide", "caer": 2}, {"name": "keda", "interval_s": -1}]
SAID = (
    "unknown advisor 'kedaa'. Did you mean 'keda'?",
    "advisor tide: unknown option 'caer'",
    "advisor keda: interval_s must be above 0",
)


def test_everything_wrong_with_advisors_is_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "spec.yaml"
    swept = {"name": "hpa", "interval_s": {"sweep": [15, 30]}}
    raw = {"name": "mine", "controllers": "btuu", "patterns": "constant", "advisors": WRONG}
    lines = ["kedaa", "{name: tide, caer: 2}", "{name: keda, interval_s: -1}", ""]
    file.write_text(json.dumps(raw))
    ways = [
        problems_told(runs_in_file, file),
        problems_told(run_from_params, {"controller": "btuu", "advisors": lines}),
        problems_told(run_from_params, {"controller": "btuu", "advisors": "\n".join(lines)}),
        problems_told(matrix_from_params, {"controllers": ["btuu"], "advisors": lines}, 10),
    ]
    for reported in ways:
        assert len(reported) == 4
        assert "unknown controller 'btuu'" in reported[0]
        assert [message in text for message, text in zip(SAID, reported[1:], strict=True)] == [
            True
        ] * 3
    file.write_text(json.dumps(raw | {"advisors": [*WRONG, swept]}))
    unknown, sweep = problems_told(runs_in_file, file)
    assert "unknown controller 'btuu'" in unknown
    assert "advisors: option interval_s: every run has all of these" in sweep


@pytest.mark.parametrize(
    ("advisors", "message"),
    [
        (["keda", "keda"], "advisors: keda is listed twice; list it once"),
        ([3], "give a name, or a mapping with name and options"),
        ({"care": 2}, "give a name, or a mapping with name and options"),
        ([{"name": "tide", "care": {"sweep": [1, 2]}}], "list one per value in place of a sweep"),
    ],
)
def test_what_is_no_list_of_advisors_is_refused(advisors: Any, message: str) -> None:
    assert message in "\n".join(problems_told(lambda: a_spec(advisors=advisors)))


@pytest.mark.parametrize("line", ["{name: tide, care", "{name: [", "{{"])
def test_a_line_that_is_no_yaml_is_told_beside_the_others(line: str) -> None:
    reported = problems_told(run_from_params, {"advisors": [line, "kedaa"], "seed": -1})
    assert len(reported) == 3
    assert "advisors: write {name: ..., option: value}" in reported[1]
    assert "unknown advisor 'kedaa'" in reported[2]
