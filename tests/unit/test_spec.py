"""Specs: the product of axes, every problem at once, and what each problem says."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from include.controllers.fixed import Fixed
from include.experiment.options import checked_options
from include.experiment.params import experiment_params, run_from_params
from include.experiment.run import Run, resolve
from include.experiment.spec import load_spec, parse_spec
from include.model.errors import SpecError
from tests.builders import run_spec
from tests.conftest import REPOSITORY
from tests.problems import problems_told

SPECS = sorted((REPOSITORY / "include" / "experiment" / "specs").glob("*.yaml"))


def a_point(**changes):
    return run_spec(**({"pattern": "constant"} | changes))


def problems(**changes):
    return problems_told(resolve, a_point(**changes))


def test_lists_are_axes_of_a_product():
    spec = parse_spec(
        {
            "name": "product",
            "controllers": ["btu", {"name": "threshold", "scale_up_above_items": 100}],
            "patterns": ["stepwise", "two_level"],
            "calibration": ["manufacturing", "manufacturing_paused"],
            "btus_min": [10, 30, 60],
            "seeds": [1, 2, 3],
        },
        source="test",
    )
    points = list(spec.points())
    assert len(points) == spec.runs == 2 * 2 * 2 * 3 * 3
    assert len({point.run_id for point in points}) == len(points)
    assert points[-1].controller_options == {"scale_up_above_items": 100}


def test_tables_call_a_calibration_by_its_file():
    raw = {"name": "two", "controllers": "btu", "calibration": ["a/mine.yaml", "b/mine.yaml"]}
    with pytest.raises(SpecError, match=r"several files are called mine.yaml"):
        parse_spec(raw, source="test")


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_every_spec_that_comes_with_the_project_can_run(path):
    spec = load_spec(path)
    points = list(spec.model_copy(update={"seeds": spec.seeds[:1]}).points())
    assert points
    for point in points:  # seeds differ in nothing that is looked up
        run = resolve(point)
        assert Run.from_json(run.to_json()) == run


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pattern_options": {"level": 0}}, "nothing would ever arrive"),
        ({"pattern_options": {"level": -2}}, "must not be negative, got -2"),
        ({"pattern_options": {"levell": 2}}, "Did you mean 'level'?"),
        ({"pattern_options": {"level": "many"}}, "pattern constant.level: input should be a valid"),
        ({"pattern": "random_walk_1", "pattern_options": {"number": 2}}, "takes no options"),
        ({"pattern": "trace"}, "needs the option path"),
        ({"pattern": "trace", "pattern_options": {"path": "none"}}, "there is no file none; check"),
        ({"controller_options": {"interval": 5}}, "Did you mean 'interval_s'?"),
        ({"controller_options": {"interval_s": 0}}, "interval_s must be above 0"),
        (
            {"controller_options": {"interval_s": float("inf")}},
            "interval_s: must be a finite number",
        ),
        ({"controller_options": {"scaling_threshold_items": 10**400}}, "must be a finite number"),
        ({"controller_options": {"interval_s": 1e-4}}, "decisions in a run of"),
        ({"monitor_every_s": 0.001, "duration_min": 120}, "readings in a run of"),
        ({"monitor_every_s": 0.6, "btu_min": 0.01, "duration_min": 720}, "may be 20160; take"),
        ({"hosts": 10**9, "max_hosts": 10**9}, "hosts must be at most 10000"),
        ({"controller": "fixed", "controller_options": {"instances_each": 10**9}}, "start fewer"),
        ({"pattern": "stepwise", "pattern_options": {"hold_s": 0.01}}, "must be at least 0.1"),
        (
            {"pattern": "stepwise", "pattern_options": {"levels": [True, 2]}},
            "levels: write a number",
        ),
        (
            {"pattern": "stepwise", "pattern_options": {"levels": [2, float("inf")]}},
            "levels: must be a finite number",
        ),
        (
            {"pattern": "stepwise", "pattern_options": {"levels": [2, float("nan")]}},
            "levels: must be a finite number",
        ),
        ({"pattern": "diurnal", "pattern_options": {"hour_s": 0.1}}, "hour_s must be at least 1 "),
        (
            {"pattern": "diurnal", "pattern_options": {"noise_cv": 1e200}},
            "from 0 to 10, got 1e+200",
        ),
        ({"pattern": "pyramid", "pattern_options": {"step": 2**-40}}, "into at most 1000"),
        ({"pattern": "pyramid", "pattern_options": {"high": 0.3, "step": 0.11}}, "must divide"),
        ({"pattern": "espa_cosine", "pattern_options": {"period_s": 1e-320}}, "at least 0.1 s"),
        ({"pattern": "lab", "pattern_options": {"hold_s": 1e12}}, "hold_s <= 86400"),
        ({"pattern": "step_wise"}, "Did you mean 'stepwise'?"),
        ({"flavor": "docker-4cpu"}, "Did you mean 'docker-4cpu-7gb'?"),
        ({"faults": {"host_losses_per_hour": -1}}, "faults.host_losses_per_hour"),
        ({"faults": {"host_losses_per_hour": 1e9}}, "at most 3600, one a second"),
        ({"faults": {"host_boot_delay_s": 30}}, "write a list, such as [30, 60], got 30"),
        ({"faults": {"host_boot_delay_s": [1, 1e300]}}, "at most 1000000000 (times"),
        ({"topology": "manufactoring"}, "Did you mean 'manufacturing'?"),
        ({"duration_min": 1, "monitor_every_s": 60}, "at least 2 (the monitor"),
        ({"seed": -1}, "seed must not be negative"),
    ],
)
def test_a_problem_says_what_to_do(changes, message):
    assert any(message in problem for problem in problems(**changes)), problems(**changes)


class Rule:
    """What no spec can give."""


@dataclass(frozen=True, kw_only=True)
class Ruled(Fixed):
    rule: Rule | None = None


def test_an_option_that_no_spec_can_give_is_told():
    (problem,) = checked_options("controller mine", Ruled, {"rule": 3})[1]
    assert "controller mine.rule: no spec can give a " in problem


TOPOLOGY = """
name: mine
emission_period_s: 1
sources: {S: {label: Source, items_per_level: 1}}
operators:
  A: {label: First, slo_ms: 500, cpu_shares: 100, memory_mb: 400, service_ms: 50}
  B: {label: Second, slo_ms: 500, cpu_shares: 100, memory_mb: 400, service_ms: 50}
edges: [{from: S, to: A}, {from: A, to: B}]
"""


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("{from: A, to: B}", "{from: A, to: B}, {from: B, to: A}", "form a cycle; a topology must"),
        ("memory_mb: 400", "memory_mb: 40000", "fits no host: an instance reserves"),
        ("cpu_shares: 100", "cpu_shares: -2", "A.cpu_shares: input should be greater than or"),
        ("cpu_shares: 100", "cpu_shares: 5.0e-324", "cpu_shares: input should be greater than or"),
        ("memory_mb: 400", "memory_mb: -4", "memory_mb: input should be greater than 0"),
        (", service_ms: 50", "", "has no service_ms"),
        ("{from: A, to: B}", "{from: A, to: B, out: 1/0}", "whole numbers of at least 1"),
        ("{from: A, to: B}", f"{{from: A, to: B, out: {'9' * 400}}}", "with 9 digits at most"),
        ("slo_ms: 500", "slo_ms: .nan", "operators.A.slo_ms: input should be a finite number"),
        ("service_ms: 50", "service_ms: 1e+300", "service_ms: must be at most 1000000000 (times"),
        ("name: mine", "name: [", "not readable as YAML"),
        ("B", "overall", "operator overall: tables call totals overall or without_..."),
        ("B", "without_o2", "operator without_o2: tables call totals overall or without_..."),
        (TOPOLOGY, "", "mine.yaml is empty; write a topology (docs/adding.md has one)"),
    ],
)
def test_a_wrong_topology_says_where_and_what(tmp_path, before, after, message):
    path = tmp_path / "mine.yaml"
    path.write_text(TOPOLOGY.replace(before, after))
    reported = problems(topology=str(path))
    assert any(message in problem for problem in reported), reported


def test_a_topology_of_ones_own_runs(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(TOPOLOGY)
    run = resolve(a_point(topology=str(path)))
    assert run.topology.operator_names == ("A", "B")
    assert run.calibration["timestamp_resolution_s"] == 0  # honest, unlike the reproduction


def test_a_parquet_trace_equals_its_csv(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"time_s": [0.0, 60.0], "level": [1, 4]}), tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("time_s,level\n0,1\n60,4\n")
    runs = [
        resolve(a_point(pattern="trace", pattern_options={"path": str(tmp_path / name)}))
        for name in ("t.parquet", "t.csv")
    ]
    assert runs[0].levels_of == runs[1].levels_of


def test_the_form_has_a_default_for_everything_and_runs_as_it_comes():
    params = experiment_params()
    point = run_from_params({name: param["default"] for name, param in params.items()})
    assert resolve(point).spec.pattern == "random_walk_1"
    assert all(param["title"] for param in params.values())
    sections = list(dict.fromkeys(param["section"] for param in params.values()))
    assert sections[0] is None  # the one that the form opens with
    assert all(sections[1:])


def test_the_run_id_tells_two_specs_apart_and_the_hash_two_inputs(tmp_path):
    assert a_point().run_id == a_point().run_id
    assert a_point().run_id != a_point(duration_min=30).run_id
    path = tmp_path / "trace.csv"
    hashes = set()
    for level in (1, 2):
        path.write_text(f"time_s,level\n0,{level}\n")
        hashes.add(resolve(a_point(pattern="trace", pattern_options={"path": str(path)})).spec_hash)
    assert len(hashes) == 2


def test_a_form_for_one_run_refuses_a_sweep():
    options = {"scaling_threshold_items": {"sweep": [10, 50]}}
    with pytest.raises(SpecError, match="these are 2 runs, and this DAG makes one"):
        run_from_params({"controller": "btu", "controller_options": options})


def test_controllers_that_cannot_act_on_a_topology_are_left_out():
    spec = parse_spec(
        {
            "name": "two",
            "topology": ["manufacturing", "manufacturing_preprint"],
            "controllers": ["btu", "fixed"],
            "without": {"manufacturing": ["fixed"]},
        },
        source="test",
    )
    assert [(point.topology, point.controller) for point in spec.points()] == [
        ("manufacturing", "btu"),
        ("manufacturing_preprint", "btu"),
        ("manufacturing_preprint", "fixed"),
    ]


@pytest.mark.parametrize(
    ("without", "message"),
    [
        ({"manufactoring": ["btu"]}, "Did you mean 'manufacturing'?"),
        ({"manufacturing": ["btuu"]}, "Did you mean 'btu'?"),
        ({"manufacturing": ["btu"]}, "no controller is left for manufacturing"),
    ],
)
def test_what_leaves_out_nothing_or_everything_is_refused(without, message):
    raw = {"name": "two", "controllers": ["btu"], "patterns": "stepwise", "without": without}
    with pytest.raises(SpecError, match=re.escape(message)):
        parse_spec(raw, source="test")


def test_a_file_left_out_is_the_file_beside_the_spec(tmp_path):
    (tmp_path / "mine.yaml").write_text("name: mine\nbased_on: manufacturing\n")
    (tmp_path / "spec.yaml").write_text(
        "name: two\ntopology: [mine.yaml, manufacturing]\ncontrollers: [btu, fixed]\n"
        "without: {mine.yaml: [fixed]}\n"
    )
    points = load_spec(tmp_path / "spec.yaml").points()
    assert [point.controller for point in points] == ["btu", "btu", "fixed"]


def test_the_field_that_is_closest_to_an_unknown_one_is_told(tmp_path):
    spec = {"name": "two", "controllers": ["btu"], "patterns": ["stepwise"], "flavour": "m3.medium"}
    with pytest.raises(SpecError) as refused:
        parse_spec(spec | {"zone": 1, "seeds": "few"}, source="test")
    flavour, zone = sorted(one for one in refused.value.problems if "unknown" in one)
    assert flavour == "flavour: unknown field; did you mean flavor?"
    assert zone == "zone: unknown field; remove it or correct its spelling"
    assert len(refused.value.problems) == 3

    path = tmp_path / "mine.yaml"
    path.write_text("based_on: manufacturing\nname: mine\nedges: [{form: a, to: b}]\n")
    told = problems(topology=str(path))
    assert any(one.endswith(".form: unknown field; did you mean from?") for one in told)


def test_fields_and_graph_of_a_topology_are_told_at_once(tmp_path):
    """Where a field cannot be read, the graph has another value of it."""
    path = tmp_path / "mine.yaml"
    path.write_text(
        """
name: Mine
emission_period_s: -1
sources:
  S: {label: s, items_per_level: 0}
  T: {label: t, items_per_level: null}
operators:
  A: {label: a, slo_ms: 10, cpu_shares: 100}
  B: {label: b, slo_ms: -1, cpu_shares: 100, memory_mb: 100}
  C: {label: c, slo_ms: 10, cpu_shares: 100, memory_mb: 100, colour: red}
edges:
  - {from: S, to: A}
  - {from: A, to: B}
  - {from: B, to: nowhere}
"""
    )
    assert problems(topology=str(path)) == [
        "name: use small letters, digits and _, got 'Mine'",
        "emission_period_s: input should be greater than 0, got -1",
        "sources.S.items_per_level: input should be greater than 0, got 0",
        "sources.T.items_per_level: is empty; give a value, or remove the field",
        "operators.A.memory_mb: missing; add it",
        "operators.B.slo_ms: input should be greater than 0, got -1",
        "operators.C.colour: unknown field; remove it or correct its spelling",
        "edge B -> nowhere: nowhere is not an operator",
        "operator C receives nothing; add an edge to it or remove it",
        "source T feeds nothing; add an edge from it or remove it",
    ]
