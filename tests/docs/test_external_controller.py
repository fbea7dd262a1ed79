"""The controller of docs/adding.md, held against our contract from a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import blocks


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The two files of the page, each named in its first line, and nothing else."""
    for code in blocks("python"):
        (tmp_path / code.text.partition("\n")[0].removeprefix("# ")).write_text(code.text)
    return tmp_path


def contract(folder: Path, *arguments: str) -> tuple[int, str]:
    """How pytest ends there and what it says, where nothing of the repository is on the path."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=folder, env=inherited | {"TIDEBENCH_EXAMPLES": "3"}, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


def test_the_controller_of_the_page_keeps_the_contract(folder: Path) -> None:
    code, said = contract(folder)
    assert code == 0, said
    assert " passed" in said, said


def test_one_that_does_not_is_found_out(folder: Path) -> None:
    controller = folder / "longest.py"
    none_of_any = controller.read_text().replace("operator_names, 1)", "operator_names, 0)")
    controller.write_text(none_of_any)
    code, said = contract(folder, "-k", "starts_with_at_least_one_instance")
    assert code == 1, said
    assert "1 failed" in said, said
