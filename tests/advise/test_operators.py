"""Operators of a topology that is known, simulated and exported, are found again."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from include.advise.edges import edges_of, parse_edges
from include.advise.export import write_graph
from include.advise.operators import JobGraph, fit_operators
from include.advise.times import FittedValue
from include.cli.advise import graph_lines
from include.experiment.matrix import runs_in_file
from include.experiment.run import resolve
from include.model.errors import SpecError
from include.runs.stages import run_all
from include.workloads.recordings.operators import read_operators
from tests.advise.synthetic import BUSY_MS, EDGES
from tests.command_line import said
from tests.problems import problems_told


def test_demand_and_selectivity_of_every_operator_are_found_again(exported: Path) -> None:
    graph = fit_operators(read_operators(str(exported), {}), parse_edges(EDGES))
    for one in graph.operators:
        assert one.demand_ms.value == pytest.approx(BUSY_MS[one.name], rel=0.001)
        assert one.capacity_per_s.value == pytest.approx(1000 / BUSY_MS[one.name], rel=0.001)
        assert one.overhead.value == pytest.approx(0, abs=0.001)
    factors = {(origin, target): of for origin, target, of in graph.edges}
    for ends, truth in ((("parse", "enrich"), 0.5), (("enrich", "store"), 2.0)):
        assert factors[ends].value == pytest.approx(truth, rel=0.02)
        assert factors[ends].low <= factors[ends].value <= factors[ends].high


@pytest.mark.parametrize(
    ("column", "mapping", "factor"),
    [("time_ms", {"time": "time_ms"}, 1000), ("ts", {"time": "ts@ms"}, 1000), ("time_s", {}, 1)],
)
def test_the_clock_of_operators_has_the_unit_that_its_column_or_the_user_says(
    tmp_path: Path, column: str, mapping: dict[str, str], factor: int
) -> None:
    rows = [f"{column},busy_share[map]", *(f"{factor * 15 * i},0.5" for i in range(4))]
    (tmp_path / "rec.csv").write_text("\n".join(rows) + "\n")
    assert read_operators(str(tmp_path / "rec.csv"), mapping).times_s.tolist() == [0, 15, 30, 45]


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


def test_a_source_whose_busy_time_is_noise_is_the_load_of_what_it_feeds(exported: Path) -> None:
    """A source on Flink wakes up and waits: busy by some hundredths, whatever it gives on."""
    read = read_operators(str(exported), {})
    parse = read.readings["parse"]
    wakes = np.random.default_rng(1).exponential(0.04, read.times_s.size)
    source = {"in": parse["in"], "out": parse["in"], "busy": wakes, "instances": np.ones(119)}
    with_source = replace(read, readings={"kafka": source, **read.readings})
    assert wakes.max() > 0.2
    graph = fit_operators(with_source, parse_edges(f"kafka>{EDGES}"))
    assert [one.name for one in graph.operators] == ["parse", "enrich", "store"]
    assert graph.notes == ("kafka: a source that is hardly busy; it is the load of what it feeds",)
    works = {**source, "busy": 0.1 + 0.001 * parse["in"]}
    working = replace(read, readings={"kafka": works, **read.readings})
    assert fit_operators(working, parse_edges(f"kafka>{EDGES}")).operators[0].name == "kafka"


def test_the_model_is_an_experiment_that_runs(exported: Path, tmp_path: Path) -> None:
    asked = ["operators", str(exported), "--edges", EDGES, "--out", str(tmp_path)]
    ran = said(*asked)
    assert "busy per record, ms  4.2" in ran
    points = runs_in_file(tmp_path / "job_experiment.yaml")
    assert {one.duration_min for one in points} == {119}  # 119 readings, one a minute
    topology = resolve(points[0]).topology
    assert [(one.origin, one.target) for one in topology.edges] == [
        ("load_parse", "parse"),
        ("parse", "enrich"),
        ("enrich", "store"),
    ]
    assert topology.operator["enrich"].service_ms == pytest.approx(BUSY_MS["enrich"], rel=0.01)
    assert run_all(points[0], tmp_path / "var")


def test_runs_of_two_recordings_are_never_averaged(exported: Path, tmp_path: Path) -> None:
    """Files of the same name in two folders, of which one has a quarter of the time."""
    short = tmp_path / "short" / exported.name
    short.parent.mkdir()
    lines = exported.read_text().splitlines(keepends=True)
    short.write_text("".join(lines[: 1 + 3 * 80]))
    names = set()
    for k, recording in enumerate((exported, short)):
        graph = fit_operators(read_operators(str(recording), {}), parse_edges(EDGES))
        write_graph(graph, tmp_path / f"again{k}")
        spec = write_graph(graph, tmp_path / f"out{k}")
        (one, *_), (again, *_) = (
            runs_in_file(spec),
            runs_in_file(tmp_path / f"again{k}" / "job_experiment.yaml"),
        )
        assert one.experiment == again.experiment
        names.add((one.experiment, resolve(one).topology.name))
    assert len({name for name, _ in names}) == len({name for _, name in names}) == 2
    assert all(name.startswith("recorded_recording_") for name, _ in names)


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
    assert (factor.low, factor.value, factor.high) == pytest.approx((1.0, 1.0, 1.0))
    assert write_graph(graph, tmp_path / "out").is_file()


def operator_rows(absent: dict[tuple[str, str], range] | None = None) -> list[str]:
    """Two sources that join: a gives on half, b all it takes in; ``absent`` cells are empty."""
    lines = ["time_s,operator,in_per_s,out_per_s,busy_share,instances"]
    for step in range(200):
        rate = 100 + 50 * math.sin(step / 20)
        other = 80 + 30 * math.cos(step / 15)
        rows = {"a": (rate, rate / 2), "b": (other, other), "sink": (rate / 2 + other, None)}
        for name, (taken, given) in rows.items():
            cells = {"in": taken, "out": given}
            for (who, kind), steps in (absent or {}).items():
                if who == name and step in steps:
                    cells[kind] = None
            read = ",".join("" if one is None else str(one) for one in cells.values())
            lines.append(f"{15 * step},{name},{read},{0.1 + 0.002 * taken},2")
    return lines


def fitted(path: Path, lines: list[str], edges: str = "a>sink,b>sink") -> JobGraph:
    path.write_text("\n".join(lines) + "\n")
    return fit_operators(read_operators(str(path), {}), parse_edges(edges))


ALL = range(200)


def test_a_load_that_was_not_read_is_bridged_and_counted_never_zero(tmp_path: Path) -> None:
    whole = fitted(tmp_path / "a.csv", operator_rows())
    gap = fitted(tmp_path / "b.csv", operator_rows({("a", "in"): range(50, 60)}))
    assert gap.load_per_s == pytest.approx(whole.load_per_s, rel=0.05)
    assert graph_lines(gap)[-1].startswith("note: a: 10 of 200 readings of records in are absent")
    assert not whole.notes


def test_rows_of_operators_are_sorted_on_request(tmp_path: Path) -> None:
    head, *rows = operator_rows()
    whole, shuffled = str(tmp_path / "whole.csv"), str(tmp_path / "shuffled.csv")
    Path(whole).write_text("\n".join([head, *rows]))
    for again in (0, 1):
        Path(shuffled).write_text("\n".join([head, *rows[300:], *rows[: 300 + again]]))
        with pytest.raises(SpecError, match="--sort"):
            read_operators(shuffled, {})
        found = read_operators(shuffled, {}, sort=True)
        assert found.times_s.tolist() == read_operators(whole, {}).times_s.tolist()
        for operator, readings in read_operators(whole, {}).readings.items():
            for kind, values in readings.items():
                np.testing.assert_array_equal(found.readings[operator][kind], values)
    asked = ["operators", shuffled, "--edges", "a>sink,b>sink", "--out", str(tmp_path / "out")]
    said(*asked, "--sort")


def test_what_was_not_recorded_is_said_to_be_so(tmp_path: Path) -> None:
    graph = fitted(tmp_path / "a.csv", operator_rows())
    assert "  out per record in    not recorded" in graph_lines(graph)
    half = fitted(tmp_path / "b.csv", operator_rows({("b", "out"): range(100)}))
    b = next(one for one in half.operators if one.name == "b")
    assert b.selectivity is not None
    assert b.selectivity.value == pytest.approx(1.0)


@pytest.mark.parametrize("cell", ["", "0"], ids=["nothing", "a count that stays 0"])
def test_a_source_whose_input_was_not_read_takes_in_what_it_gives_on(
    tmp_path: Path, cell: str
) -> None:
    """Of older sources of Flink numRecordsIn of their vertex stays 0."""
    rows = [re.sub(r"^([^,]*,b),[^,]*", rf"\1,{cell}", row) for row in operator_rows()]
    whole = fitted(tmp_path / "b.csv", operator_rows())
    assert fitted(tmp_path / "a.csv", rows).load_per_s == pytest.approx(whole.load_per_s)


def test_the_interval_of_a_factor_covers_what_changes(tmp_path: Path) -> None:
    """a gives on half of what it takes in for one half of the time, and all for the other."""
    lines = operator_rows()
    for at, line in enumerate(lines):
        time_s, name, taken, _, *rest = line.split(",")
        if name == "a" and int(time_s) >= 1500:
            lines[at] = ",".join([time_s, name, taken, taken, *rest])
    graph = fitted(tmp_path / "a.csv", lines)
    factors = {origin: of for origin, _, of in graph.edges}
    assert 0.55 < factors["a"].low < 0.75 < factors["a"].high < 0.95
    assert factors["b"].high - factors["b"].low < 1e-9
    assert graph_lines(graph)[-2].startswith("a>sink, out per record in  0.7")


def test_edges_are_read_from_yaml_as_they_are_typed(tmp_path: Path) -> None:
    listed = tmp_path / "edges.yaml"
    listed.write_text("- {from: 'Source: A', to: B}\n- {from: B, to: sink}\n")
    topology = tmp_path / "topology.yaml"
    topology.write_text(
        "name: mine\nedges:\n  - {from: 'Source: A', to: B}\n  - {from: B, to: sink}\n"
    )
    typed = parse_edges("Source: A>B>sink")
    assert edges_of(str(listed)) == edges_of(str(topology)) == edges_of("Source: A>B>sink") == typed


def test_a_job_of_one_operator_has_no_edges(tmp_path: Path) -> None:
    """`record` writes so of a job whose operators Flink has chained."""
    (tmp_path / "edges.yaml").write_text("edges: []")
    assert edges_of(str(tmp_path / "edges.yaml")) == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- {from: a}", "edges.0.to"),
        ("- {from: a, to: b, out: 2}", "edges.0.out"),
        ("a>b", "edges"),
        ("a: [", "not readable as YAML"),
    ],
)
def test_edges_that_are_none_are_told_with_how_to_write_them(
    tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "edges.yaml"
    file.write_text(text)
    with pytest.raises(SpecError, match=re.escape(said)):
        edges_of(str(file))
    with pytest.raises(SpecError, match="there is no file"):
        edges_of(str(tmp_path / "none.yaml"))


def test_an_edge_with_few_records_is_no_edge_without(tmp_path: Path) -> None:
    graph = fitted(tmp_path / "a.csv", operator_rows())
    tiny, one = (FittedValue(value=value, low=value, high=value) for value in (1e-5, 1.0))
    few = replace(graph, edges=(("a", "sink", tiny), ("b", "sink", one)))
    topology = yaml.safe_load((write_graph(few, tmp_path).parent / "job_topology.yaml").read_text())
    assert [one.get("out") for one in topology["edges"]] == [None, None, "1/100000", "1/1"]


def test_a_source_has_a_name_that_no_operator_has(tmp_path: Path) -> None:
    lines = [line.replace(",b,", ",load_a,") for line in operator_rows()]
    graph = fitted(tmp_path / "a.csv", lines, "a>sink,load_a>sink")
    topology = resolve(runs_in_file(write_graph(graph, tmp_path / "out"))[0]).topology
    names = [one.name for one in topology.sources]
    assert len({*names, *topology.operator}) == len(names) + 3


def test_a_recording_of_twenty_minutes_is_an_experiment_of_twenty(tmp_path: Path) -> None:
    graph = fitted(tmp_path / "a.csv", operator_rows()[: 1 + 3 * 80])
    (point, *_) = runs_in_file(write_graph(graph, tmp_path / "out"))
    assert point.duration_min == 20


def test_brackets_belong_to_the_operator(tmp_path: Path) -> None:
    read = read_operators(wide(tmp_path / "a.csv", WIDE.replace("[B]", "[B[1]]")), {})
    assert set(read.readings) == {"Source: A", "B[1]"}
    assert set(read.readings["B[1]"]) == {"in", "busy", "instances"}


LONG = ["time_s,operator,in_per_s,busy_share,instances"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([*LONG, "0,a,1,0.1,1", "0,,2,0.1,1", "9,a,3,0.1,1"], "line 3: operator is empty"),
        ([*LONG, "0,a,1,0.1,1", "9,a,-2,0.1,1"], "line 3: in_per_s is negative (-2)"),
        ([*LONG, "0,a,1,0.1,1", "0,b,2,7,1", "9,a,3,0.1,1"], "line 3: busy_share is above 1"),
        ([*LONG, "0,a,1,0.1,1", "0,b,x,0.1,1", "9,a,3,0.1,1"], "line 3: in_per_s is no number"),
        ([*LONG, "0,a,1,0.1,1", "9,a,3,0.1,1", "9,a,3,0.1,1"], "line 4: an operator has two rows"),
        ([*LONG, "9,a,1,0.1,1", "0,a,3,0.1,1"], "line 3: time_s goes backwards"),
        (["time_s,task,in_per_s", "0,a,1", "0,b,2"], "--map operator=COLUMN (task, in_per_s)"),
        (LONG, "has 0 rows of readings; record at least 2"),
        (["time_s,busy_share[]", "0,1", "1,1"], "busy_share[] names no operator"),
    ],
)
def test_messages_say_in_which_line(tmp_path: Path, lines: list[str], said: str) -> None:
    file = tmp_path / "a.csv"
    file.write_text("\n".join(lines) + "\n")
    with pytest.raises(SpecError, match=re.escape(said)):
        read_operators(str(file), {})


def test_parquet_without_rows_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "a.parquet"
    pq.write_table(pa.table({"time_s": pa.array([], pa.float64()), "in_per_s[a]": []}), empty)
    with pytest.raises(SpecError, match="has 0 rows"):
        read_operators(str(empty), {})


def test_other_names_are_mapped_with_their_unit(tmp_path: Path) -> None:
    columns = WIDE.replace("busy_percent", "u").replace("time_s", "at")
    read = read_operators(wide(tmp_path / "a.csv", columns), {"busy": "u@percent", "time": "at"})
    assert read.readings["B"]["busy"].max() < 1


def test_everything_that_is_missing_is_said_at_once(tmp_path: Path) -> None:
    columns = WIDE.replace("busy_percent[B]", "x[B]").replace("instances[Source: A]", "y[A]")
    read = read_operators(wide(tmp_path / "a.csv", columns), {})
    told = "\n".join(problems_told(fit_operators, read, ()))
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
        (
            WIDE.replace("instances[B]", "num_records_in_per_s[B]"),
            {},
            "in_per_s[B] and num_records_in_per_s[B] are both",
        ),
    ],
)
def test_what_cannot_be_read_is_told(
    tmp_path: Path, columns: str, mapping: dict[str, str], said: str
) -> None:
    with pytest.raises(SpecError, match=re.escape(said)):
        read_operators(wide(tmp_path / "a.csv", columns), mapping)


@pytest.mark.parametrize("mapping", [{"busy": "x", "in": "y"}, {"bussy": "x", "time": "at"}])
def test_columns_of_operators_are_listed_beside_two_problems(
    tmp_path: Path, mapping: dict[str, str]
) -> None:
    told = problems_told(read_operators, wide(tmp_path / "a.csv", WIDE), mapping)
    assert len(told) == 2
    assert "the columns are" not in told[0]
    assert told[1].endswith(f"(the columns are: {', '.join(WIDE.split(','))})")


WHOLE = operator_rows()
NOTHING_OVER_A = [re.sub(r"^(\d+),a,([\d.]+),[\d.]+,", r"\1,a,\2,0,", line) for line in WHOLE]


@pytest.mark.parametrize(
    ("lines", "edges", "said"),
    [
        (WHOLE, "b", "is no chain"),
        (WHOLE, "a>c", "unknown operator 'c'"),
        (WHOLE, "Source: A -> Map>B", "Write names as they are listed here"),
        (WHOLE, "b>a>b", "a>b>a is a circle"),
        (WHOLE, "a>b>b", "b>b is a circle"),
        (WHOLE, "a>sink", "--edges: b is in none of them"),
        (operator_rows({("b", "out"): ALL}), "a>sink,b>sink", "record records_out_per_s[b]"),
        (NOTHING_OVER_A, "a>sink,b>sink", "a>sink: no reading has records that go over it"),
    ],
)
def test_wrong_edges_are_told(tmp_path: Path, lines: list[str], edges: str, said: str) -> None:
    with pytest.raises(SpecError, match=re.escape(said)):
        fitted(tmp_path / "a.csv", lines, edges)
