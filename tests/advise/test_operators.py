"""Operators of a topology that is known, simulated and exported, are found again."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from include.advise.operators import fit_operators, parse_edges, write_graph
from include.cli import app
from include.control.session import Session
from include.control.stages import run_all
from include.experiment.asked import runs_in_file
from include.experiment.run import resolve
from include.model.errors import SpecError
from include.recordings.operators import read_operators

TOPOLOGY = """\
name: known
emission_period_s: 1.0
sources: {load: {label: Load, items_per_level: 1}}
operators:
  parse: {label: Parse, slo_ms: 1000, cpu_shares: 1024, memory_mb: 9, service_ms: 4, instances: 2}
  enrich: {label: Enrich, slo_ms: 1000, cpu_shares: 1024, memory_mb: 9, service_ms: 9, instances: 2}
  store: {label: Store, slo_ms: 1000, cpu_shares: 1024, memory_mb: 9, service_ms: 3, instances: 1}
edges:
  - {from: load, to: parse}
  - {from: parse, to: enrich, out: 1/2}
  - {from: enrich, to: store, out: 2}
"""
SPEC = """\
name: known
testbed: flow
topology: topology.yaml
calibration: calibration.yaml
flavor: kvm-1cpu
max_hosts: 12
patterns: {name: trace, path: load.csv}
controllers: [{name: fixed, instances_each: 2}]
btus_min: 60
duration_min: 120
monitor_every_s: 15
"""
OVERHEAD = 0.05
BUSY_MS = {name: ms / (1 - OVERHEAD) for name, ms in (("parse", 4), ("enrich", 9), ("store", 3))}
"""What a record keeps an instance busy for: overhead leaves so much of its core."""
SELECTIVITY = {"parse": 0.5, "enrich": 2.0}
EDGES = "parse>enrich>store"


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a monitor would have kept of two hours on the fluid testbed, every 60 s."""
    folder = tmp_path_factory.mktemp("known")
    (folder / "topology.yaml").write_text(TOPOLOGY)
    (folder / "calibration.yaml").write_text(f"overhead_cores: {OVERHEAD}\n")
    rows = (f"{at},{110 + 50 * math.sin(at / 600)}" for at in range(0, 7200, 15))
    (folder / "load.csv").write_text("\n".join(["time_s,rate_items_per_s", *rows, ""]))
    (folder / "spec.yaml").write_text(SPEC)
    session = Session.open(resolve(runs_in_file(folder / "spec.yaml")[0]))
    session.deploy()
    testbed, lines, before = (
        session.loop.testbed,
        ["time_s,operator,in_per_s,out_per_s,busy_share,instances"],
        {},
    )
    for at_s in range(60, 7200, 60):
        testbed.advance_to(at_s)
        seen = testbed.observe()
        for name, one in seen.operators.items():
            done = one.completed_in_all - before.get(name, 0)
            before[name] = one.completed_in_all
            out = done * SELECTIVITY.get(name, 0) / 60
            row = (at_s, name, done / 60, out, one.busy_share, len(seen.serving(name)))
            lines.append(",".join(map(str, row)))
    session.close()
    (folder / "recording.csv").write_text("\n".join(lines) + "\n")
    return folder / "recording.csv"


def test_demand_and_selectivity_of_every_operator_are_found_again(exported: Path) -> None:
    graph = fit_operators(read_operators(str(exported), {}), parse_edges(EDGES))
    for one in graph.operators:
        assert one.demand_ms.value == pytest.approx(BUSY_MS[one.name], rel=0.001)
        assert one.capacity_per_s.value == pytest.approx(1000 / BUSY_MS[one.name], rel=0.001)
        assert one.overhead.value == pytest.approx(0, abs=0.001)
    factors = {(origin, target): of for origin, target, of in graph.edges}
    assert factors["parse", "enrich"] == pytest.approx(0.5, rel=0.02)
    assert factors["enrich", "store"] == pytest.approx(2.0, rel=0.02)


def test_intervals_cover_the_truth_when_the_monitor_is_noisy(exported: Path) -> None:
    read = read_operators(str(exported), {})
    covered = []
    for seed in range(15):
        draw = np.random.default_rng(seed)
        noisy = {
            name: {**of, "busy": of["busy"] + draw.normal(0, 0.01, read.times_s.size)}
            for name, of in read.readings.items()
        }
        for one in fit_operators(replace(read, readings=noisy), parse_edges(EDGES)).operators:
            truth = BUSY_MS[one.name]
            assert one.demand_ms.value == pytest.approx(truth, rel=0.1)
            covered.append(one.demand_ms.low <= truth <= one.demand_ms.high)
            covered.append(one.capacity_per_s.low <= 1000 / truth <= one.capacity_per_s.high)
    assert np.mean(covered) >= 0.8


def test_the_model_is_an_experiment_that_runs(exported: Path, tmp_path: Path) -> None:
    asked = ["operators", str(exported), "--edges", EDGES, "--out", str(tmp_path)]
    ran = CliRunner().invoke(app, asked)
    assert ran.exit_code == 0, ran.output
    assert "busy per record, ms  4.2" in ran.output
    points = runs_in_file(tmp_path / "job_experiment.yaml")
    topology = resolve(points[0]).topology
    assert [(one.origin, one.target) for one in topology.edges] == [
        ("load_parse", "parse"),
        ("parse", "enrich"),
        ("enrich", "store"),
    ]
    assert topology.operator["enrich"].service_ms == pytest.approx(BUSY_MS["enrich"], rel=0.01)
    assert run_all(points[0], tmp_path / "var")


def wide(path: Path, columns: str, rows: int = 200) -> str:
    """A file in which a source gives on half of what it reads; busy in percent."""
    lines = [columns]
    for step in range(rows):
        rate = 100 + 50 * math.sin(step / 20)
        busy = (10 + 0.2 * rate, 5 + 0.4 * rate)
        lines.append(f"{15 * step},{rate / 2},{busy[0]},2,{rate / 2},{busy[1]},4")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


WIDE = (
    "time_s,out_per_s[Source: A],busy_percent[Source: A],instances[Source: A],"
    "in_per_s[B],busy_percent[B],instances[B]"
)


def test_wide_columns_are_read_and_a_source_takes_in_what_it_gives_on(tmp_path: Path) -> None:
    read = read_operators(wide(tmp_path / "a.csv", WIDE), {})
    graph = fit_operators(read, parse_edges("Source: A>B"))
    source, b = graph.operators
    assert (source.name, b.name) == ("source_a", "b")
    assert b.overhead.value == pytest.approx(0.05)
    assert b.demand_ms.value == pytest.approx(32)  # 0.4 % of rate, half of it, by four
    ((origin, target, factor),) = graph.edges
    assert (origin, target) == ("source_a", "b")
    assert factor == pytest.approx(1.0)
    assert write_graph(graph, tmp_path / "out").is_file()


def test_other_names_are_mapped_with_their_unit(tmp_path: Path) -> None:
    columns = WIDE.replace("busy_percent", "u").replace("time_s", "at")
    read = read_operators(wide(tmp_path / "a.csv", columns), {"busy": "u@percent", "time": "at"})
    assert read.readings["B"]["busy"].max() < 1


def test_everything_that_is_missing_is_said_at_once(tmp_path: Path) -> None:
    columns = WIDE.replace("busy_percent[B]", "x[B]").replace("instances[Source: A]", "y[A]")
    read = read_operators(wide(tmp_path / "a.csv", columns), {})
    with pytest.raises(SpecError) as error:
        fit_operators(read, ())
    told = "\n".join(error.value.problems)
    assert "b has no busy; record busy_share[b]" in told
    assert "source_a has no instances; record instances[source_a]" in told
    assert "write --edges 'A>B>C' with b, source_a" in told


@pytest.mark.parametrize(
    ("columns", "mapping", "said"),
    [
        (WIDE.replace("busy_percent", "busy_share"), {}, "is above 1"),
        (WIDE, {"bussy": "x"}, "bussy"),
        (WIDE, {"busy": "x"}, "there is no column x[OPERATOR]"),
        ("time_s,a,b,c,d,e,f", {}, "no column names an operator"),
        (WIDE.replace("busy_percent", "busy_ns"), {"busy": "busy_ns"}, "unknown unit ns"),
    ],
)
def test_what_cannot_be_read_is_told(
    tmp_path: Path, columns: str, mapping: dict[str, str], said: str
) -> None:
    with pytest.raises(SpecError, match=re.escape(said)):
        read_operators(wide(tmp_path / "a.csv", columns), mapping)


@pytest.mark.parametrize(
    ("edges", "said"), [("b", "is no chain"), ("source_a>c", "c"), ("b>source_a>b", "circle")]
)
def test_wrong_edges_are_told(tmp_path: Path, edges: str, said: str) -> None:
    columns = WIDE.replace("out_per_s", "in_per_s")
    read = read_operators(wide(tmp_path / "a.csv", columns), {})
    with pytest.raises(SpecError, match=said):
        fit_operators(read, parse_edges(edges))
