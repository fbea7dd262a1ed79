"""The tasks of a matrix: what a cell leaves behind when a run fails, and who hears of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from include.experiment.form import batch_params
from include.experiment.params import matrix_from_params
from include.experiment.spec import RunSpec
from include.runs.measurements.origin import origin_of
from include.runs.stages import store_of
from include.runs.stored import mark_code
from tests.dags.ends import execute, fails_for_good, is_skipped


@pytest.fixture
def runs(data_root: Path) -> list[RunSpec]:
    """Three runs of three minutes; the data root is an empty one."""
    form = {"experiment": "cells", "controllers": ["fixed"], "seeds": [1, 2, 3], "duration_min": 3}
    return matrix_from_params(form, most_cells=3)


def measure(runs: Sequence[RunSpec], dag_run: str = "first") -> list[str]:
    from tidebench.batch import MeasureCell

    cell = {"name": "a cell", "runs": [run.to_json() for run in runs]}
    done: list[str] = execute(MeasureCell(task_id="measure_cell", cell=cell), run_id=dag_run)
    return done


def measured_by(run: RunSpec, root: Path) -> str:
    origin = origin_of(store_of(run, root))
    assert origin is not None
    return origin.by.dag_run


def resolve(**params: Any) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Cells and XComs of `resolve_matrix` for the form as it opens and these params."""
    from tidebench.batch import ResolveMatrix

    defaults = {name: keywords["default"] for name, keywords in batch_params().items()}
    xcoms: dict[str, str] = {}
    task = ResolveMatrix(task_id="resolve_matrix")
    return execute(task, xcoms=xcoms, params=defaults | params), xcoms


def check(states: dict[str, str]) -> None:
    from tidebench.batch import CheckCells

    cells = [{"name": name, "runs": []} for name in ("first", "second", "third")]
    ways = ["measure_cell", "cell_run.wait_for_run"]
    execute(CheckCells(task_id="check_cells", cells=cells, measure=ways), states=states)


def test_a_matrix_is_one_cell_per_run_named_after_it() -> None:
    cells, xcoms = resolve(experiment="mine", seeds=[1, 2])
    assert xcoms == {"experiment": "mine", "way": "task"}
    assert len(cells) == 4
    for cell in cells:
        (text,) = cell["runs"]
        assert cell["name"] == RunSpec.from_json(text).run_id


def test_a_wrong_matrix_fails_for_good_with_every_problem() -> None:
    with fails_for_good(match=r"(?s)2 problems.*'btuu'.*0\.25"):
        resolve(controllers=["btuu", "btu"], btus_min=[0.3])


def test_more_cells_than_airflow_maps_are_refused_before_any_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "5")
    with fails_for_good(match=r"6 runs \(2 controllers x 3 seeds\), and there may be 5 at once"):
        resolve(seeds=[1, 2, 3])


def test_a_run_that_fails_leaves_the_others_of_its_cell_alone(
    runs: list[RunSpec], data_root: Path
) -> None:
    broken = store_of(runs[1], data_root).run_json
    mark_code(store_of(runs[1], data_root), runs[1])
    broken.write_text("{}")

    with fails_for_good(match="holds a run of the same spec"):
        measure(runs)
    complete = [store_of(run, data_root).manifest.is_file() for run in runs]
    assert complete == [True, False, True]

    before = {path: path.stat().st_mtime_ns for path in data_root.rglob("*.parquet")}
    broken.unlink()
    assert measure(runs, "second") == [run.run_id for run in runs]
    assert [measured_by(run, data_root) for run in runs] == ["first", "second", "first"]
    after = {path: path.stat().st_mtime_ns for path in data_root.rglob("*.parquet")}
    assert before.items() < after.items(), "what was complete is not measured again"


def test_cells_that_failed_or_never_ran_are_named() -> None:
    with fails_for_good() as raised:
        check({"measure_cell_0": "failed", "measure_cell_1": "success"})
    assert str(raised.value).startswith("2 of 3 cells are not measured")
    assert str(raised.value).endswith("\n  - first\n  - third")


@pytest.mark.parametrize("task", ["measure_cell", "cell_run.wait_for_run"])
def test_cells_that_are_all_measured_pass_however_they_were(task: str) -> None:
    check({f"{task}_{index}": "success" for index in range(3)})


def test_tables_are_built_of_complete_runs_only(runs: list[RunSpec]) -> None:
    from tidebench.spark import measured_runs

    cells = [{"name": "all", "runs": [run.to_json() for run in runs]}]
    with fails_for_good(match="no cell is complete"):
        measured_runs(cells, "cells")
    measure(runs[1:])
    assert measured_runs(cells, "cells") == [run.run_id for run in runs[1:]]
    with fails_for_good(match="no cell is complete"):
        measured_runs(cells, "another")


@pytest.mark.parametrize(("most_rows", "master"), [(500_000, "local[*]"), (0, "spark://far:7077")])
def test_tables_of_few_rows_need_no_cluster(
    runs: list[RunSpec], monkeypatch: pytest.MonkeyPatch, most_rows: int, master: str
) -> None:
    from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

    from tidebench import spark

    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", "spark://far:7077")
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_SMALL", '{"conn_type": "spark", "host": "local[*]"}')
    monkeypatch.setattr(spark, "MOST_ROWS_OF_ONE_PROCESS", most_rows)
    masters = []
    monkeypatch.setattr(
        SparkSubmitOperator,
        "execute",
        lambda self, context: masters.append(self._get_hook()._connection["master"]),
    )
    measure(runs)
    execute(spark.BuildTables(task_id="build_tables", experiment="cells"))
    assert masters == [master]


def test_a_dag_run_that_asks_for_no_report_builds_no_tables() -> None:
    from tidebench.spark import BuildTables

    with is_skipped(match="no report"):
        execute(BuildTables(task_id="build_tables", experiment="cells"), params={"report": False})


def test_after_a_matrix_that_could_not_be_resolved_only_the_check_of_its_cells_fails() -> None:
    from tidebench.batch import CheckCells
    from tidebench.spark import BuildTables

    nothing: Any = None
    with is_skipped(match="resolve_matrix says why"):
        execute(BuildTables(task_id="tables", experiment="None", cells=nothing))
    with fails_for_good(match="resolve_matrix says why"):
        execute(CheckCells(task_id="check_cells", cells=nothing, measure=["any"]))
