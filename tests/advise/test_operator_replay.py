"""Policies over a model of every operator do what they do on the job that was recorded."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from include.advise.candidates import policy
from include.advise.case import keep_case, open_case
from include.advise.edges import parse_edges
from include.advise.job import JobModel
from include.advise.margins import margin_of, read_errors
from include.advise.operator_replay import replay_operators
from include.advise.operators import (
    JobGraph,
    OperatorModel,
    fit_operators,
    operators_of_job,
)
from include.advise.outcomes import measure_policy, scalings_of
from include.advise.replay import ReplayConditions, Replayed
from include.advise.request import AdviceRequest
from include.advise.restarts import Restart
from include.advise.times import FittedValue
from include.controllers import CONTROLLERS
from include.controllers.base import Registration, Setting
from include.controllers.fixed import Fixed
from include.experiment.matrix import runs_in_file
from include.experiment.run import resolve
from include.model.decision import Decision, StartInstance, StopInstance
from include.model.errors import SpecError
from include.model.observation import Observation
from include.runs.session import Session
from include.testbeds.columns import as_text
from include.testing.builders import decision
from include.workloads.recordings.operators import read_operators
from include.workloads.recordings.recording import FloatArray
from tests.advise.synthetic import EDGES, QUIET_LATENCY_S, STEP_S, job
from tests.command_line import refused, said

CONDITIONS = ReplayConditions(instances_at_start=6, max_instances=12, takes_s=5.0, seed=1)
LOAD: FloatArray = np.array([110 + 50 * math.sin(at / 600) for at in range(0, 7200, 15)])
DOWN = Restart(cpu_excess=(0.0,), lag_s=(20.0,), latency_excess_s=(0.0, 20.0, 10.0), seen=5)


@pytest.fixture(scope="module")
def operators(exported: Path) -> JobGraph:
    graph = fit_operators(read_operators(str(exported), {}), parse_edges(EDGES))
    return operators_of_job(graph, LOAD, np.full(LOAD.size, 6.0))


def run(
    operators: JobGraph,
    controller: str,
    conditions: ReplayConditions = CONDITIONS,
    of: JobModel | None = None,
    **options: object,
) -> Replayed:
    build = policy(controller, options, conditions).build
    return replay_operators(of or job(), operators, LOAD, conditions, build)


@pytest.mark.parametrize(("controller", "options"), [("ds2", {"factor": 2.0}), ("threshold", {})])
def test_a_policy_does_what_it_does_on_the_real_job(
    operators: JobGraph, exported: Path, controller: str, options: dict[str, float]
) -> None:
    """The job was recorded with two instances of everything; here it runs under another policy."""
    folder = exported.parent
    (folder / "calibration_real.yaml").write_text(
        (folder / "calibration.yaml").read_text() + "instance_start_s: [5, 5]\n"
    )
    spec = (folder / "spec.yaml").read_text()
    spec = spec.replace("calibration.yaml", "calibration_real.yaml")
    spec = spec.replace("{name: fixed, instances_each: 2}", str({"name": controller} | options))
    (folder / f"{controller}.yaml").write_text(spec)
    session = Session.open(resolve(runs_in_file(folder / f"{controller}.yaml")[0]))
    session.deploy()
    session.run(0, 7200)
    queue = as_text(session.loop.testbed.take_measurements()["queue"])
    real = np.array(queue["instances"], dtype=float).reshape(-1, 3).sum(axis=1)
    replayed = run(operators, controller, **options)
    assert replayed.instances.mean() == pytest.approx(real.mean(), rel=0.05)


def test_nothing_is_late_while_nothing_changes(operators: JobGraph) -> None:
    still = run(operators, "fixed", instances_each=2)
    assert set(still.instances.tolist()) == {6.0}
    assert np.allclose(still.latency_s, QUIET_LATENCY_S, atol=0.1)
    assert not still.beyond.any()  # that is how it was recorded
    assert [(one.ordered_s, one.ends_s) for one in still.leases] == [(0.0, LOAD.size * STEP_S)] * 6


def test_a_scaling_takes_the_job_down(operators: JobGraph) -> None:
    """What comes then waits for the job, so the first record is late by all of it."""
    whole = job(restart=DOWN)
    scaled = run(operators, "ds2", of=whole, factor=2.0)
    late_s = scaled.latency_s - QUIET_LATENCY_S
    assert late_s.max() > 5
    redeployed = replace(CONDITIONS, redeploy_s=60.0)
    deployed = run(operators, "ds2", redeployed, of=whole, factor=2.0)
    assert (deployed.latency_s - QUIET_LATENCY_S).max() == pytest.approx(60, abs=STEP_S)


def test_what_never_comes_out_is_late(operators: JobGraph) -> None:
    """One instance of each for a load of five."""
    stuck = run(replace(operators, per_record=5.0), "fixed", instances_each=1)
    assert stuck.latency_s[-120] > 1000
    assert stuck.beyond.all()


def test_operators_that_share_slots_take_as_many_as_the_widest(operators: JobGraph) -> None:
    assert not operators.shares_slots
    shared = operators_of_job(operators, LOAD, np.full(LOAD.size, 2.0))
    assert shared.shares_slots
    conditions = replace(CONDITIONS, instances_per_host=2, instances_at_start=3)
    found = run(shared, "fixed", conditions, instances_each=3)
    assert found.instances[-1] == 3
    assert sum(math.isclose(one.ends_s, LOAD.size * STEP_S) for one in found.leases) == 2


def test_slots_of_no_operator_take_free_places_before_they_take_a_host(
    operators: JobGraph,
) -> None:
    """Six instances and one more slot, as of a source that does no work."""
    beside = operators_of_job(operators, LOAD, np.full(LOAD.size, 7.0))
    assert beside.others == 1
    for per_host, hosts in ((4, 2), (3, 3)):
        conditions = replace(CONDITIONS, instances_per_host=per_host, instances_at_start=7)
        found = run(beside, "fixed", conditions, instances_each=2)
        assert set(found.instances.tolist()) == {7}
        leases = [(one.ordered_s, one.ends_s) for one in found.leases]
        assert leases == [(0.0, LOAD.size * STEP_S)] * hosts


@dataclass(frozen=True)
class Replaces:
    """Stops an instance and starts another one in its place, in one decision."""

    setting: Setting
    interval_s: float = 60.0

    def initial_memory(self) -> None:
        return None

    def decide(self, memory: None, observation: Observation) -> tuple[None, Decision]:
        one = next(iter(observation.instances.values()))
        return None, decision(StartInstance(one.operator, one.host), StopInstance(one.instance))


def test_an_operator_keeps_its_last_instance(operators: JobGraph) -> None:
    """The host has room for four, but three slots are all there may be: the start is refused."""
    conditions = replace(CONDITIONS, max_instances=3, instances_at_start=3, instances_per_host=4)
    replaced = replay_operators(job(), operators, LOAD, conditions, Replaces)
    assert replaced.by_operator is not None
    assert (replaced.by_operator == 1).all()


def test_there_are_no_more_slots_than_allowed(operators: JobGraph) -> None:
    """Eight instances of each are asked for."""
    eight = {"instances_each": 8}
    found = run(operators, "fixed", replace(CONDITIONS, max_instances=7), **eight)
    assert found.instances.max() == 7
    shared = replace(operators, shares_slots=True)
    found = run(shared, "fixed", replace(CONDITIONS, max_instances=4), **eight)
    assert found.instances.max() == 4


def two_ends(slow_ms: float) -> JobGraph:
    """A map whose records go to a quick and to a slow operator, each with one instance."""
    exact = {
        name: FittedValue(value=ms, low=ms, high=ms)
        for name, ms in (("map", 1.0), ("quick", 1.0), ("slow", slow_ms), ("all", 1.0))
    }
    graph = JobGraph(
        name="two ends",
        operators=tuple(
            OperatorModel(
                name=name,
                demand_ms=exact[name],
                overhead=FittedValue(value=0.0, low=0.0, high=0.0),
                capacity_per_s=exact["all"],
                selectivity=None,
                known_to_per_s=1e9,
                instances=1,
                rows=100,
            )
            for name in ("map", "quick", "slow")
        ),
        edges=(("map", "quick", exact["all"]), ("map", "slow", exact["all"])),
        roots={"map": 1.0},
        times_s=np.arange(LOAD.size) * STEP_S,
        load_per_s=LOAD,
    )
    return operators_of_job(graph, LOAD, np.full(LOAD.size, 3.0))


@pytest.mark.parametrize(("slow_ms", "in_time"), [(1.0, 1.0), (20.0, 0.0)])
def test_the_end_where_records_take_longest_counts(slow_ms: float, in_time: float) -> None:
    """At 20 ms a record the slow one does half of what comes."""
    conditions = replace(CONDITIONS, instances_at_start=3)
    found = run(two_ends(slow_ms), "fixed", conditions, instances_each=1)
    late = found.latency_s > QUIET_LATENCY_S + 1
    assert 1 - late[8:].mean() == pytest.approx(in_time, abs=0.01)


def test_a_scaling_of_any_operator_counts(operators: JobGraph) -> None:
    """One more of one and one fewer of another leave the sum as it was."""
    counts = np.full((3, 100), 2.0)
    counts[0, 40:], counts[1, 40:] = 3.0, 1.0
    assert scalings_of(counts.sum(axis=0), STEP_S) == 0
    assert scalings_of(counts, STEP_S) == 1


def test_fewer_slots_than_one_operator_has_are_no_slots(operators: JobGraph) -> None:
    with pytest.raises(SpecError, match="map the column that counts its slots"):
        operators_of_job(operators, LOAD, np.full(LOAD.size, 1.0))


@pytest.fixture(scope="module")
def recorded(exported: Path) -> Path:
    """The operators and the whole job in the columns of one file."""
    read = read_operators(str(exported), {})
    heads, columns = ["time_s"], [read.times_s]
    for name, of in read.readings.items():
        heads += [f"in_per_s[{name}]", f"busy_share[{name}]", f"instances[{name}]"]
        columns += [of["in"], of["busy"], of["instances"]]
    heads += ["rate_per_s", "latency_p95_s", "cpu_share", "instances"]
    rate = read.readings["parse"]["in"]
    latency = np.full(rate.size, 0.2)
    latency[30:33] += (8.0, 5.0, 2.0)
    busy = np.max([of["busy"] for of in read.readings.values()], axis=0)
    columns += [rate, latency, busy, np.full(rate.size, 6.0)]
    path = exported.parent / "both.csv"
    rows = [
        ",".join(heads),
        *(",".join(f"{cell!r}" for cell in row) for row in np.column_stack(columns).tolist()),
    ]
    path.write_text("\n".join(rows) + "\n")
    return path


def asking(recorded: Path, **options: Any) -> AdviceRequest:
    return AdviceRequest(recording=str(recorded), objective="latency p95 < 2 s", **options)


def test_a_controller_of_one_job_is_checked_with_its_operators(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def problems(self: Fixed) -> tuple[str, ...]:
        return self.setting.topology.operator["parse"] and ()

    picky = Registration(type("Picky", (Fixed,), {"problems": problems}))
    registered = {**dict(CONTROLLERS._registered), "picky": picky}
    monkeypatch.setattr(CONTROLLERS, "_registered", registered)
    request = asking(recorded, controllers=("picky",))
    case = keep_case(replace(request, edges=EDGES), tmp_path / "with")
    assert [one.name for one in case.policies] == ["picky"]
    with pytest.raises(SpecError, match=r"picky: problems failed \(KeyError: 'parse'\)"):
        keep_case(request, tmp_path / "without")


def test_policies_by_busy_time_are_no_guess_where_operators_were_recorded(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read of them is kept whole, also outside of the folder of inputs."""
    monkeypatch.setenv("TIDEBENCH_INPUTS", str(recorded.parent))
    request = asking(recorded, controllers=("ds2", "hpa"), seeds=1)
    without = keep_case(request, tmp_path / "without")
    assert {one.name for one in without.policies if one.guessed} == {"ds2"}
    case = keep_case(replace(request, edges=EDGES), tmp_path / "with")
    assert not any(one.guessed for one in case.policies)
    again = open_case(tmp_path / "with")
    first = measure_policy(case, 3, tmp_path / "first").read_bytes()
    assert case.policies[3].name == "hpa, CPU 70 %" or case.policies[3].controller == "ds2"
    assert measure_policy(again, 3, tmp_path / "again").read_bytes() == first


def test_a_backtest_replays_operators_too(recorded: Path) -> None:
    """Fixed at what was recorded; busy time of the job stands in for its CPU without operators."""
    asked = ("backtest", str(recorded), "--against", str(recorded), "--controller", "drs")
    by_operator = said(*asked, "--seeds", "1", "--edges", EDGES)
    assert re.search(r"mean instances +3\.\d+ ", by_operator), by_operator
    assert said(*asked, "--seeds", "1") != by_operator
    few = "--controller", "flink-autoscaler", "--set", "max_instances=2", "--edges", EDGES
    assert "takes 3 slots at least; allow as many" in refused(*asked[:-2], *few)


def test_backtests_by_operator_give_margins_of_their_own(recorded: Path, tmp_path: Path) -> None:
    """Held against the recording under `ds2` every operator is replayed, against the fixed one the
    whole job; half an hour is too short for models of operators."""
    listed, table = recorded.parent / "mine.yaml", tmp_path / "errors.csv"
    same = f"recording: {recorded.name}, job: j, edges: '{EDGES}'"
    listed.write_text(
        f"- {{{same}, controller: fixed, options: {{instances_each: 6}}}}\n"
        f"- {{{same}, controller: ds2}}\n"
    )
    said("backtest-errors", str(listed), "--out", str(table))
    errors = read_errors(table.read_text(), "mine")
    assert {one.under for one in errors if one.by_operator} == {"busy time"}
    options = {"controllers": ("ds2",), "seeds": 1, "edges": EDGES, "errors": str(table)}
    case = keep_case(asking(recorded, **options), tmp_path / "advice")
    alone = [one for one in errors if one.by_operator]
    assert case.margin(case.policies[0]) == margin_of(
        alone, None, "busy time", 2.0 / case.job.quiet_latency_s, by_operator=True
    )
    listed.write_text(f"- {{recording: {recorded.name}, job: j, controller: ds2, edges: a>b}}\n")
    assert "store is in none of them" in refused("backtest-errors", str(listed))
    whole = replace(case, job=replace(case.job, operators=None))
    assert whole.margin(case.policies[0]) != case.margin(case.policies[0])


def test_operators_without_a_model_are_refused_if_they_were_asked_for(
    recorded: Path, tmp_path: Path
) -> None:
    with pytest.raises(SpecError, match="store is in none of them"):
        keep_case(asking(recorded, edges="parse>enrich"), tmp_path)
    with pytest.raises(SpecError, match="takes 3 slots at least"):
        keep_case(asking(recorded, edges=EDGES, max_instances=2), tmp_path)
