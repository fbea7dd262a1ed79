"""`tidebench --help` lists every command on one line; `tidebench columns` explains tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from include.cli import app, main
from include.files.inputs import input_file
from include.files.whole import write_bytes
from include.model.errors import SetupError, SpecError
from include.results.tables.catalogue import DOCUMENTED, schema_of
from tests.command_line import refused, said

COMMANDS = getattr(get_command(app), "commands")  # noqa: B009 (a click group, says typer)
ROOM = 66
"""Characters beside the names, in a terminal of 80."""


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_fits_its_line(name: str) -> None:
    assert len(COMMANDS[name].help.partition("\n")[0]) <= ROOM


def test_columns_lists_the_tables() -> None:
    listed = [line.split()[0] for line in said("columns").splitlines()]
    assert listed == list(DOCUMENTED)


@pytest.mark.parametrize("table", DOCUMENTED)
def test_columns_explains_every_column(table: str) -> None:
    printed = " ".join(said("columns", table).split())
    for column in schema_of(table).columns:
        assert all((column.unit, column.description, column.formula)), column.name
        explained = f"{column.name} [{column.unit}] {column.description} = {column.formula}"
        assert " ".join(explained.split()) in printed


def test_columns_of_a_table_that_is_not_there_names_the_closest() -> None:
    assert "Did you mean 'cost'?" in refused("columns", "csot")


@pytest.mark.parametrize("words", [("check",), ("report",), ("bound",)])
def test_a_path_that_is_too_long_is_told(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["tidebench", *words, "x" * 5000])
    with pytest.raises(SystemExit, match=r"xxx\.\.\. is too long for a path"):
        main()


@pytest.mark.parametrize(
    "words",
    [
        ("report", ""),
        ("remove", "", "a"),
        ("figure", "mine", "", "--out", "a.svg"),
        ("figure", "mine", "--out", ""),
        ("crate", "mine", "--out="),
        ("run", ""),
    ],
)
def test_an_empty_path_is_not_the_current_folder(words: tuple[str, ...]) -> None:
    assert "it is empty" in refused(*words)


@pytest.mark.parametrize(
    "words",
    [("report",), ("figure", "--out", "a.svg"), ("crate", "--out", "a.zip"), ("copy", "s3://b/a")],
)
def test_a_folder_that_is_not_there_is_named_as_such(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    name, *others = words
    missing = tmp_path / "mine"
    assert f"there is no folder {missing}; check the path" in refused(name, missing, *others)
    assert not missing.exists()


@pytest.mark.parametrize("name", ["figure", "crate"])
def test_what_needs_a_report_says_how_to_make_one(name: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert f"first: tidebench report {tmp_path}" in refused(name, tmp_path, "--out", out)


SAYS = "import sys; from include.cli import main; sys.argv[0] = 'tidebench'; main()"


@pytest.mark.parametrize(
    ("shell", "told"),
    [
        ('rmdir "$PWD"; exec "$@"', "error: the folder that this is called in is gone; change it"),
        ('exec "$@" > /dev/full', "error: the disk that this writes its lines to is full"),
    ],
)
def test_where_nothing_can_be_read_or_said_a_line_says_so(
    shell: str, told: str, tmp_path: Path
) -> None:
    command = ["sh", "-c", shell, "sh", sys.executable, "-c", SAYS, "columns"]
    path = {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == told
    assert "Traceback" not in done.stderr


def test_a_letter_that_the_terminal_lacks_ends_nothing(tmp_path: Path) -> None:
    spec = {"name": "mine", "controllers": "fixed", "patterns": "constant", "duration_min": 1}
    (tmp_path / "calibration-ł.yaml").write_text("based_on: manufacturing\n")
    file = tmp_path / "mine.yaml"
    file.write_text(json.dumps(spec | {"calibration": "calibration-ł.yaml"}))
    environment = {"PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONIOENCODING": "latin-1"}
    command = [sys.executable, "-c", SAYS, "check", file]
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert "calibration-\\u0142.yaml" in done.stdout, done.stderr


def test_a_path_that_is_no_utf_8_is_refused_at_once(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"\xff")
    spec = folder / "mine.yaml"
    with pytest.raises(SpecError, match="cannot be the path of a file"):
        input_file(spec, "spec")
    with pytest.raises(SetupError, match="it is no UTF-8; name another"):
        write_bytes(folder / "asked.json", b"")
    assert not folder.exists()
