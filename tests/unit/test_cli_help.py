"""`tidebench --help` lists every command on one line; `tidebench columns` explains tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.main import get_command

from include.cli import app, main
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
