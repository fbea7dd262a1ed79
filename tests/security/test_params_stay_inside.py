"""What a form can say never becomes a path elsewhere, a command or SQL."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from include.experiment.form import experiment_params
from include.experiment.params import matrix_from_params, run_from_params
from include.experiment.prices.books import load_book
from include.experiment.run import resolve
from include.experiment.spec import RunSpec, load_spec
from include.files.inputs import input_file
from include.model.errors import SpecError
from include.results.tables.catalogue import TableSchema
from include.testbeds import TESTBEDS
from include.workloads.recordings import read_recording
from include.workloads.topologies import load_topology, run_defaults
from include.workloads.trace import TraceLoad, read_load
from tests.builders import run_spec

SECRET = "planted-3f9ad1c07b"
HOSTILE = [
    "../../etc/passwd", "/etc/shadow", "..", ".", "", "a/b", "a\\b", "~root", "-rf", "--root=/",
    "a;touch x", "$(touch x)", "`touch x`", "a b", "a\nb", "a\n", "a\r", "a\0b", "a'--", 'a"',
    "'; DROP TABLE cost; --", "{{ 7*7 }}", "{% raw %}", "%s", "${HOME}", "naïve",
    "\uff41", "\u0430", "\u202egpj", "x" * 65, "x" * 5000, "run=1", "*", "?", "a%2e%2e", "con:",
    "\ud800",
]  # fmt: skip
texts = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=80))
slowly = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a secret, outside the one folder that inputs may come from."""
    (tmp_path / "inputs").mkdir()
    monkeypatch.setenv("TIDEBENCH_INPUTS", str(tmp_path / "inputs"))
    secret = tmp_path / "secret.yaml"
    secret.write_text(f"{SECRET},{SECRET}\n1,2\n")
    return secret


@given(name=texts)
@slowly
def test_an_experiment_has_a_plain_name_or_is_refused(name: str) -> None:
    try:
        run = run_from_params({"experiment": name})
    except SpecError:
        return
    assert run.experiment.isascii()
    assert set(run.experiment) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")
    assert 0 < len(run.experiment) <= 64
    assert run.experiment[0] not in "-_"


@pytest.mark.parametrize("name", HOSTILE)
def test_no_hostile_name_of_an_experiment_passes(name: str) -> None:
    with pytest.raises(SpecError):
        run_from_params({"experiment": name})


@given(name=texts, kind=st.sampled_from(["controller", "pattern", "testbed", "flavor"]))
@example(name="../btu", kind="controller")
@slowly
def test_whatever_names_a_part_of_a_run_is_known_or_refused(name: str, kind: str) -> None:
    form = {"experiment": "x", kind: name}
    try:
        run = run_from_params(form)
        resolve(run)
    except SpecError:
        return
    assert name in experiment_params()[kind]["enum"]
    assert "/" not in run.run_id


@given(form=st.fixed_dictionaries({"topology": texts, "calibration": texts, "trace": texts}))
@slowly
def test_whatever_names_a_file_is_a_spec_error_and_nothing_else(form: dict[str, str]) -> None:
    for name, value in form.items():
        if value in ("manufacturing", ""):
            continue
        params: dict[str, Any] = {"experiment": "x", name: value}
        if name == "trace":
            params["pattern"] = "trace"
        with pytest.raises(SpecError):
            resolve(run_from_params(params))


def test_a_file_outside_the_inputs_is_refused_wherever_a_path_can_be_given(outside: Path) -> None:
    link = outside.parent / "inputs" / "link.yaml"
    link.symlink_to(outside)
    for path in (outside, link, link.parent / ".." / outside.name):
        readers = (load_topology, lambda name: load_spec(Path(name)), _trace)
        for read in (*readers, load_book, read_recording):
            with pytest.raises(SpecError, match="must be there") as refused:
                read(str(path))
            assert SECRET not in str(refused.value)
        assert run_defaults(str(path)) == {}
        for testbed in TESTBEDS.values():
            with pytest.raises(SpecError, match="must be there"):
                testbed.parameters().load_calibration(str(path))


@pytest.mark.parametrize("kind", [str, Path])
@pytest.mark.parametrize("scheme", ["http", "https", "prometheus+http", "s3"])
def test_an_address_with_a_password_is_no_file_and_not_repeated(
    kind: Callable[[str], str | Path], scheme: str
) -> None:
    with pytest.raises(SpecError, match="begins an address") as refused:
        input_file(kind(f"{scheme}://user:s3cret@host/recording.csv"), "recording")
    assert "s3cret" not in str(refused.value)


def test_it_says_nothing_of_what_is_outside(outside: Path) -> None:
    said = []
    for name in (outside.name, "nothing.yaml"):
        with pytest.raises(SpecError) as refused:
            input_file(outside.parent / name, "trace")
        said.append(str(refused.value).replace(name, ""))
    assert said[0] == said[1]


@pytest.mark.parametrize("field", ["topology", "calibration", "trace", "spec"])
def test_no_form_reads_a_file_outside(outside: Path, field: str) -> None:
    path = str(outside)
    form = {"experiment": "x", field: path} | ({"pattern": "trace"} if field == "trace" else {})
    with pytest.raises(SpecError, match="must be there") as refused:
        _fill_in(form)
    assert SECRET not in str(refused.value)


def test_neither_do_options_nor_files_that_name_other_files(outside: Path) -> None:
    spec = outside.parent / "inputs" / "spec.yaml"
    spec.write_text(
        "name: x\ncontrollers: btu\npatterns: {name: trace, path: ../secret.yaml}\n"
        "topology: ../secret.yaml\nprice_books: [../secret.yaml]\n"
    )
    for form in (
        {"experiment": "x", "price_books": [str(outside)]},
        {"experiment": "x", "pattern": "trace", "pattern_options": {"path": str(outside)}},
        {"experiment": "x", "spec": str(spec)},
    ):
        with pytest.raises(SpecError, match="must be there") as refused:
            _fill_in(form)
        assert SECRET not in str(refused.value)


def test_what_comes_with_the_project_and_what_is_inside_may_be_read(outside: Path) -> None:
    own = outside.parent / "inputs" / "own.csv"
    own.write_text("time_s,level\n0,2\n60,4\n")
    assert _trace(str(own)).values == [2, 4]
    assert load_topology("manufacturing").name == "manufacturing"


@given(text=texts.filter(lambda text: text.isprintable() or text.isascii()))
@slowly
def test_a_run_is_the_same_after_any_text_went_through_an_xcom(text: str) -> None:
    run = run_spec(experiment="x", duration_min=10, pattern_options={"path": text})
    assert RunSpec.from_json(run.to_json()) == run
    assert "/" not in run.run_id
    assert "\0" not in run.run_id


def _fill_in(form: Mapping[str, Any]) -> None:
    """As the DAGs do: `experiment_batch` where there is a spec file, else `experiment`."""
    if "spec" in form:
        matrix_from_params(form, 10)
    else:
        resolve(run_from_params(form))


def _trace(name: str) -> TraceLoad:
    return read_load(name, "", None, "refuse")


def test_text_that_looks_like_sql_is_stored_as_text(tmp_path: Path) -> None:
    """Names of a topology of one's own reach the results database as values."""
    from include.results.reports.database import Publication, sent_rows
    from include.results.tables.catalogue import PUBLISHED, schema_of

    url = f"sqlite:///{tmp_path}/results.db"
    hostile = 'x\'); DROP TABLE "cost"; --'
    tables = {table: [_row(schema_of(table), hostile)] for table in PUBLISHED}
    with sent_rows(url, Publication(experiment="first", edition="e1", checks=1), tables):
        pass
    with sqlite3.connect(tmp_path / "results.db") as database:
        for table in PUBLISHED:
            text = json.dumps(database.execute(f'SELECT * FROM "{table}"').fetchall())
            assert json.dumps(hostile)[1:-1] in text, table
    assert [path.name for path in tmp_path.iterdir()] == ["results.db"]


def _row(schema: TableSchema, text: str) -> dict[str, object]:
    values = {"string": text, "double": 1.0, "bigint": 1, "boolean": True}
    return {column.name: values[column.type] for column in schema.columns}
