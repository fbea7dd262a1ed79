"""Tables of docs/results, from the published tables of experiments."""

from __future__ import annotations

import sys
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest

from include.controllers.tide import changes, loss
from include.experiment.spec import SPECS, load_spec
from include.files.plain_yaml import input_yaml
from infra import tide_numbers
from infra.results import (
    RUN,
    TABLES,
    PublishedRows,
    ResultTable,
    figures,
    main,
    published_rows,
    result_table,
    table_of,
)

BTU_MIN = 10.0


def reported(folder: Path, costs: dict[tuple[str, int], float], run: str = "") -> Path:
    """An experiment of runs of one pattern, by controller and seed; each started its job twice."""
    runs = pd.DataFrame([[run or f"{one}-{seed}", "t", "p", None, one, None, BTU_MIN, seed]
                         for one, seed in costs], columns=RUN)  # fmt: skip
    cost = runs.assign(metric="resource_cost", value=list(costs.values()))
    late = runs.assign(metric="late", value=[float(seed) for _, seed in costs])
    own = pd.DataFrame({"run": runs["run"], "btu_min": BTU_MIN})
    near = "strict_near_real_time_compliance_percent"
    every_operator = [runs[["run"]].assign(**{near: percent}) for percent in (90.0, 50.0, 70.0)]
    tables = {
        "metrics": pd.concat([cost, late]),
        "compliance": pd.concat(every_operator),
        "outcomes": own.assign(host_hours=1.5),
        "scaling_total": runs[["run"]].assign(
            upscaling=3, downscaling=2, migrations=1, hosts_leased=4
        ),
    }
    (folder / "published").mkdir(parents=True)
    for name, rows in tables.items():
        rows.to_parquet(folder / "published" / f"{name}.parquet")
    events = ["job_restart", "host_lost", "job_restart"]
    every = pd.concat(runs[["run"]].assign(event=event) for event in events)
    every.to_parquet(folder / "measurements" / "event", partition_cols=["run"])
    return folder


def test_a_row_is_a_run_where_it_is_told_apart(tmp_path: Path) -> None:
    runs = figures(reported(tmp_path, {("tide", 1): 12.346, ("ds2", 1): 10.0}))
    columns = {"cost": "resource_cost", "changes": None, "leases": None, "host_hours": None}
    columns |= {"job_starts": None, "worst_operator_percent": None}
    rows = result_table(runs, ResultTable(of=["x"], by=["controller", "seed"], columns=columns))
    assert rows.to_dict("records") == [
        {"controller": "ds2", "seed": 1, "cost": 10.0, "changes": 6.0, "leases": 4.0,
         "host_hours": 1.5, "job_starts": 2.0, "worst_operator_percent": 50.0},
        {"controller": "tide", "seed": 1, "cost": 12.35, "changes": 6.0, "leases": 4.0,
         "host_hours": 1.5, "job_starts": 2.0, "worst_operator_percent": 50.0},
    ]  # fmt: skip


def test_a_mean_has_its_runs_its_interval_and_what_it_is_above_another(tmp_path: Path) -> None:
    costs = {("tide", 1): 10.0, ("tide", 2): 14.0, ("btu", 1): 13.0, ("btu", 2): 19.0}
    table = ResultTable(of=["x"], by=["controller"], columns={"resource_cost": None}, ci95=True,
                        less={"resource_cost": "tide"}, decimals=3)  # fmt: skip
    btu, tide = result_table(figures(reported(tmp_path, costs)), table).to_dict("records")
    assert (btu["runs"], btu["resource_cost"], btu["resource_cost_less_tide"]) == (2, 16.0, 4.0)
    assert btu["resource_cost_ci95"] == pytest.approx(12.706 * 3, abs=0.01)
    assert btu["resource_cost_less_tide_ci95"] == pytest.approx(12.706, abs=0.01)
    assert (tide["resource_cost_less_tide"], tide["resource_cost_less_tide_ci95"]) == (0, 0)


def test_a_table_is_printed_as_the_file_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = next(iter(load_spec(SPECS / "tide_walks.yaml").points()))
    folder = reported(tmp_path / "tide_walks", {("tide", 621): 76.5}, run=first.run_id)
    path, columns = (
        folder / "published" / "metrics.parquet",
        input_yaml(TABLES, "")["tide_walks"]["columns"],
    )
    cost = pd.read_parquet(path).query("metric == 'resource_cost'")
    pd.concat([cost.assign(metric=one) for one in [*columns][:-2]]).to_parquet(path)
    monkeypatch.setattr("sys.argv", ["infra.results", "tide_walks", "--root", str(tmp_path)])
    main()
    told = capsys.readouterr()
    assert "warning" in told.err, "it has one run of the spec's many"
    head, row = told.out.splitlines()
    assert head == TABLES.with_name("tide_walks.csv").read_text().splitlines()[0]
    assert row.startswith("621,10.0,tide,76.5,")
    out = tmp_path / "kept.csv"
    monkeypatch.setattr("sys.argv", [*sys.argv, "--out", str(out)])
    main()
    assert out.read_text().splitlines() == [head, row]
    pd.read_parquet(path).assign(run="another").to_parquet(path)
    with pytest.raises(SystemExit, match="another experiment"):
        main()


def test_what_tables_yaml_says_of_a_file_is_what_it_has() -> None:
    for name, entry in input_yaml(TABLES, "tables of results").items():
        table = table_of(entry)
        kept = pd.read_csv(TABLES.with_name(f"{name}.csv"))
        if isinstance(table, PublishedRows):
            assert set(kept["metric"]) == set(table.metrics), name
            continue
        has = list(kept)
        less = [f"{column}_less_{controller}" for column, controller in table.less.items()]
        figure = [*table.columns, *less]
        if table.ci95:
            figure = [both for one in figure for both in (one, f"{one}_ci95")]
        assert [one for one in has if one != "runs"] == [*table.by, *figure], name


def test_rows_of_a_published_table_are_those_of_the_metrics_that_are_named(tmp_path: Path) -> None:
    folder = reported(tmp_path, {("tide", 1): 12.34567, ("btu", 1): 13.0})
    named = PublishedRows(of=["x"], table="metrics", metrics=["resource_cost"])
    rows = published_rows([folder], named)
    assert rows[["controller", "value"]].to_dict("records") == [
        {"controller": "tide", "value": 12.3457},
        {"controller": "btu", "value": 13.0},
    ]
    with pytest.raises(KeyError, match="no row of metrics has latness"):
        published_rows([folder], named.model_copy(update={"metrics": ["late", "latness"]}))


def test_every_number_of_tide_is_tried(capsys: pytest.CaptureFixture[str]) -> None:
    """On two minutes of each load; afterwards every constant is what it was."""
    tide_numbers.main(duration_min=2)
    made = pd.read_csv(StringIO(capsys.readouterr().out)).set_index("number")
    kept = pd.read_csv(TABLES.with_name("tide_numbers.csv")).set_index("number")
    assert list(made.columns) == list(kept.columns)
    assert set(made.index) == set(kept.index)
    assert made.to_numpy().max() > 0
    assert (changes.LASTS_S, loss.AGE_S) == (200.0, 60.0)


def test_what_is_not_there_or_billed_twice_is_refused(tmp_path: Path) -> None:
    runs = figures(reported(tmp_path, {("tide", 1): 12.0}))
    table = ResultTable(of=["x"], by=["controller"], columns={"latness": None})
    with pytest.raises(KeyError, match="no run has latness"):
        result_table(runs, table)
    twice = pd.concat([runs, runs.assign(btu_min=60.0)])
    table = ResultTable(of=["x"], by=["controller"], columns={"resource_cost": None})
    with pytest.raises(KeyError, match="tide-1 is in a row under several BTUs"):
        result_table(twice, table)
    own = table.model_copy(update={"btu_min": 60.0})
    assert len(result_table(twice, own)) == 1
