"""Published rows as files: exported whole, refused with reasons, compared where that is fair."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from include.cli import app
from include.experiment.spec import RunSpec, require_name
from include.model.errors import PublishError, SpecError
from include.results.registry.compare import RULES, compare_results
from include.results.registry.export import export_results
from include.results.registry.form import (
    SharedResults,
    SharedRow,
    digest_of_rows,
    parse_results,
    schema,
)
from include.results.registry.keep import FOLDER, keep_results, kept_results
from include.results.reports.publish import publish
from include.runs import stages
from include.runs.measurements.sources import keep_sources, sources_of
from include.workloads.topologies import parse_topology
from tests.builders_staged import let_pass, restage, stage

SPEC = RunSpec(
    experiment="demo", controller="btu", pattern="stepwise", btu_min=10, seed=1, duration_min=10
)
FIGURES = {
    "strict_relaxed_compliance": 90.3,
    "strict_relaxed_total_cost": 91.87,
    "relaxed_compliance": 99.0,
}
OTHER = "f" * 64


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published experiment with a run that was really measured; its figures are made up."""
    root = tmp_path_factory.mktemp("registry")
    stages.run_all(SPEC, root)
    folder = stage(root / "demo", SPEC.run_id, pattern="stepwise")
    cell = {
        "topology": "manufacturing", "pattern": "stepwise", "conditions": "duration_min=10",
        "controller": "btu", "variant": "", "btu_min": 10.0,
    }  # fmt: skip
    values = [{**cell, "metric": name, "mean": value} for name, value in FIGURES.items()]
    restage(folder, "means", [{**row, "sigma": None, "runs": 1} for row in values])
    runs = [{**row, "run": SPEC.run_id, "seed": 1, "value": row["mean"]} for row in values]
    restage(folder, "metrics", [{k: v for k, v in row.items() if k != "mean"} for row in runs])
    keep_sources(folder, sources_of(folder, [SPEC.run_id]))
    publish(let_pass(folder), "demo", f"sqlite:///{root / 'results.db'}")
    return folder


@pytest.fixture(scope="module")
def found(folder: Path) -> SharedResults:
    return export_results(folder, "a laboratory")


def of(found: SharedResults, *rows: SharedRow, **values: Any) -> SharedResults:
    """The same results with other rows and values, as somebody else would have exported them."""
    changed = list(rows) or found.rows
    update = {"rows": changed, "rows_sha256": digest_of_rows(changed), **values}
    return found.model_copy(update=update)


def changed(row: SharedRow, **values: Any) -> SharedRow:
    """A row with other values, those of its setting included."""
    setting = {key: values.pop(key) for key in [*values] if key in type(row.setting).model_fields}
    return row.model_copy(update={**values, "setting": row.setting.model_copy(update=setting)})


def test_a_row_has_strict_figures_and_where_they_come_from(
    found: SharedResults, folder: Path
) -> None:
    (row,) = found.rows
    assert row.figures.keys() == {"strict_relaxed_compliance", "strict_relaxed_total_cost"}
    manifest = json.loads((folder / "runs" / SPEC.run_id / "manifest.json").read_text())
    code = json.loads((folder / "runs" / SPEC.run_id / "code.json").read_text())
    (run,) = row.runs
    assert (run.seed, run.arrivals_sha256) == (1, manifest["arrivals_sha256"])
    assert run.spec_hash == manifest["spec_hash"]
    assert row.code_sha256 == code["sha256"]
    assert (row.setting.testbed, row.setting.duration_min) == ("simulated", 10)


def test_what_is_exported_is_what_is_kept_and_the_same_each_time(
    found: SharedResults, folder: Path, tmp_path: Path
) -> None:
    assert export_results(folder, "a laboratory").to_json() == found.to_json()
    path, is_new = keep_results(parse_results(found.to_json(), "theirs.json"), tmp_path)
    assert is_new
    assert keep_results(found, tmp_path) == (path, False)
    assert kept_results(tmp_path) == [found]
    assert str(folder) not in path.read_text(), "a file tells nothing of the machine"


def test_no_experiment_can_take_the_folder_of_the_registry() -> None:
    with pytest.raises(SpecError, match="letter or digit first"):
        require_name(FOLDER)


def test_everything_that_is_wrong_with_a_file_is_said_at_once(found: SharedResults) -> None:
    raw = json.loads(found.to_json())
    raw["rows"][0]["code_sha256"] = "short"
    raw["rows"][0]["figures"]["strict_relaxed_compliance"]["mean"] = "many"
    raw["rows"][0]["controller"] = "\x1b[2J"
    raw["version"] = 2
    raw["extra"] = 1
    with pytest.raises(SpecError) as caught:
        parse_results(json.dumps(raw), "theirs.json")
    assert len(caught.value.problems) == 5
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda raw: raw["rows"][0].update(btu_min=20.0), "not those that were exported"),
        (lambda raw: raw["rows"].append(raw["rows"][0]), "is there 2 times"),
        (lambda raw: raw["rows"][0].update(figures={}), "has at least one of"),
        (
            lambda raw: raw["rows"][0]["figures"].update(
                relaxed_compliance={"mean": 1, "sigma": None, "runs": 1}
            ),
            "relaxed_compliance is not exchanged",
        ),
        (
            lambda raw: raw["rows"][0]["figures"]["strict_relaxed_compliance"].update(mean=101),
            "above 100 percent",
        ),
        (
            lambda raw: raw["rows"][0]["figures"]["strict_relaxed_compliance"].update(runs=2),
            "a mean of 2 runs, but 1 are named",
        ),
    ],
)
def test_what_the_form_does_not_show_is_found(
    found: SharedResults, damage: Callable[[Any], None], said: str
) -> None:
    raw = json.loads(found.to_json())
    damage(raw)
    with pytest.raises(SpecError, match=said):
        parse_results(json.dumps(raw), "theirs.json")


def test_another_controller_of_other_code_stands_beside_ours_the_cheapest_first(
    found: SharedResults,
) -> None:
    (row,) = found.rows
    cost = row.figures["strict_relaxed_total_cost"].model_copy(update={"mean": 50.0})
    figures = {**row.figures, "strict_relaxed_total_cost": cost}
    theirs = of(found, changed(row, controller="theirs", code_sha256=OTHER, figures=figures))
    (group,) = compare_results([found, theirs])
    assert [one.row.controller for one in group.rows] == ["theirs", "btu"]
    assert not group.apart


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"topology_sha256": OTHER}, "topology"),
        ({"prices_sha256": OTHER}, "prices"),
        ({"calibration_sha256": OTHER}, "calibration"),
        ({"faults_sha256": OTHER}, "faults"),
        ({"testbed": "docker"}, "testbed (simulated, docker)"),
        ({"flavor": "large"}, "flavor (docker-4cpu-7gb, large)"),
        ({"duration_min": 20.0}, "duration (10 min, 20 min)"),
        ({"monitor_every_s": 5.0}, "monitoring period (15 s, 5 s)"),
        ({"max_hosts": 7}, "hosts (0 to 1000, 0 to 7)"),
    ],
)
def test_rows_that_cannot_be_compared_are_apart_and_the_reason_is_named(
    found: SharedResults, values: dict[str, Any], rule: str
) -> None:
    theirs = of(found, changed(found.rows[0], controller="theirs", **values))
    ours, other = compare_results([found, theirs])
    assert [one.row.controller for one in (*ours.rows, *other.rows)] == ["btu", "theirs"]
    assert [*ours.apart.values()] == [[rule]]


def test_other_seeds_arrivals_and_definitions_are_apart(found: SharedResults) -> None:
    (row,) = found.rows
    (run,) = row.runs
    cases = {
        "load (seeds 1, seeds 2)": {"seed": 2},
        "load (seeds 1 in both, but the arrivals differ)": {"arrivals_sha256": OTHER},
    }
    for said, values in cases.items():
        runs = [run.model_copy(update=values)]
        ours, _ = compare_results([found, of(found, changed(row, controller="x", runs=runs))])
        assert [*ours.apart.values()] == [[said]]
    theirs = of(found, changed(row, controller="x"), metrics_sha256=OTHER)
    ours, _ = compare_results([found, theirs])
    assert [*ours.apart.values()] == [["metric definitions"]]


def test_every_rule_about_a_setting_is_one_of_its_fields(found: SharedResults) -> None:
    assert len(RULES) >= len(type(found.rows[0].setting).model_fields) + 3


def test_what_was_not_published_or_not_kept_is_not_exported(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(PublishError, match=r"first: python -m include\.cli report"):
        export_results(tmp_path)
    kept = folder / "runs" / SPEC.run_id / "code.json"
    content = kept.read_bytes()
    kept.unlink()
    try:
        with pytest.raises(
            PublishError, match=r"code\.json is not the file that the tables are of"
        ):
            export_results(folder)
    finally:
        kept.write_bytes(content)


def test_figures_are_not_given_the_code_of_a_later_measurement(
    folder: Path, tmp_path: Path
) -> None:
    """Published, measured again by other code, and not published again."""
    again = Path(shutil.copytree(folder, tmp_path / "demo"))
    mark = again / "runs" / SPEC.run_id / "code.json"
    mark.write_text(json.dumps({"sha256": OTHER}))
    with pytest.raises(PublishError, match=r"publish again: python -m include\.cli report"):
        export_results(again)


@pytest.mark.parametrize(
    ("path", "content", "said"),
    [
        ("published/means.parquet", None, r"means\.parquet is not the file that was published"),
        ("published/metrics.parquet", None, r"metrics\.parquet is not the file that was"),
        (f"runs/{SPEC.run_id}/run.json", "[]", r"run\.json is not the file that the tables are of"),
        ("published/manifest.json", "{}", r"manifest\.json is damaged"),
    ],
)
def test_what_is_no_longer_as_published_is_not_exported(
    folder: Path, tmp_path: Path, path: str, content: str | None, said: str
) -> None:
    """Tables change places with those of another edition, as Parquet that can be read."""
    again = Path(shutil.copytree(folder, tmp_path / "demo"))
    if content is None:
        rows = pq.read_table(again / path)
        pq.write_table(rows.set_column(*_doubled(rows, path)), again / path)
    else:
        (again / path).write_text(content)
    for arguments in (["export", str(again), "--out", str(tmp_path / "x.json")],
                      ["compare", str(again), "--root", str(tmp_path)]):  # fmt: skip
        ran = CliRunner().invoke(app, ["results", *arguments])
        assert isinstance(ran.exception, (PublishError, SpecError))
        assert re.search(said, str(ran.exception))
    assert not (tmp_path / "x.json").exists()


def _doubled(rows: pa.Table, path: str) -> tuple[int, str, pa.Array]:
    name = "mean" if "means" in path else "value"
    return rows.column_names.index(name), name, pc.multiply(rows[name], 2.0)


def test_an_export_takes_the_place_of_no_file_of_the_experiment(folder: Path) -> None:
    run_json = folder / "runs" / SPEC.run_id / "run.json"
    before = run_json.read_bytes()
    ran = CliRunner().invoke(app, ["results", "export", str(folder), "--out", str(run_json)])
    assert "is in the folder of the experiment" in str(ran.exception)
    assert run_json.read_bytes() == before


@pytest.mark.parametrize(
    "by", ["Our\nlab", "x\u202e", "one\u2028two", "\u2066", "\x1b[2J", "x" * 201]
)
def test_who_measured_is_one_line_without_marks(
    found: SharedResults, folder: Path, by: str
) -> None:
    with pytest.raises(SpecError, match="by: string should"):
        export_results(folder, by)
    raw = json.loads(found.to_json()) | {"by": by}
    with pytest.raises(SpecError, match="by: string should"):
        parse_results(json.dumps(raw), "theirs.json")


def test_a_wrong_value_is_shown_shortened(found: SharedResults) -> None:
    raw = json.loads(found.to_json()) | {"by": "x" * 100_000, "y" * 100_000: 1}
    with pytest.raises(SpecError) as caught:
        parse_results(json.dumps(raw), "theirs.json")
    assert len(str(caught.value)) < 1000
    with pytest.raises(SpecError) as caught:
        parse_topology(f"name: {'X' * 100_000}\n", source="mine.yaml")
    assert len(str(caught.value)) < 1000


def test_every_export_is_kept_and_ones_own_row_is_still_shown(
    found: SharedResults, folder: Path, tmp_path: Path
) -> None:
    """The same rows by another laboratory, and with other definitions, are other files."""
    exports = [
        of(found, by="Lab A"), of(found, by="Lab B"), of(found, by="Lab A", metrics_sha256=OTHER)
    ]  # fmt: skip
    assert all(keep_results(one, tmp_path)[1] for one in exports)
    assert not keep_results(exports[0], tmp_path)[1]
    assert len(kept_results(tmp_path)) == 3
    ran = CliRunner().invoke(app, ["results", "compare", str(folder), "--root", str(tmp_path)])
    for shown in ("  demo-", "  Lab A: demo-", "  Lab B: demo-"):
        assert shown in ran.stdout, ran.stdout


def test_a_kept_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "torn.json").write_bytes(b"\xff\xfe")
    with pytest.raises(SpecError, match=r"(?s)torn\.json.*cannot be read"):
        kept_results(tmp_path)


def test_the_commands_export_import_and_compare(folder: Path, tmp_path: Path) -> None:
    def said(*arguments: str) -> str:
        done = CliRunner().invoke(app, ["results", *arguments], catch_exceptions=False)
        assert done.exit_code == 0
        return done.stdout

    file, root = tmp_path / "theirs.json", str(tmp_path)
    assert "1 rows of demo" in said("export", str(folder), "--out", str(file), "--by", "them")
    assert "kept as" in said("import", str(file), "--root", root)
    assert "known already" in said("import", str(file), "--root", root)
    table = said("compare", "--root", root)
    assert "manufacturing, stepwise, BTU 10 min, 1 seed" in table
    assert "them: demo-" in table
    assert json.loads(said("schema")) == schema()


def test_one_wrong_file_keeps_all_out_and_each_is_named(
    found: SharedResults, tmp_path: Path
) -> None:
    good, bad, none = (tmp_path / name for name in ("good.json", "bad.json", "none.json"))
    good.write_text(found.to_json())
    bad.write_text("{}")
    with pytest.raises(SpecError, match=r"(?s)bad\.json.*there is no file .*none\.json"):
        CliRunner().invoke(
            app,
            ["results", "import", str(good), str(bad), str(none), "--root", str(tmp_path)],
            catch_exceptions=False,
        )
    assert kept_results(tmp_path) == []
