"""Every target of the Makefile says what it makes, and all that it calls is there and answers."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
import tomllib
from functools import cache

import pytest

from tests.docs.pages import REPOSITORY, codes, commands

MAKEFILE = (REPOSITORY / "Makefile").read_text()
TARGETS = re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE)

# Modules without options: they say how they are used.
NO_OPTIONS = {"infra.airflow.local", "infra.airflow.first_experiment"}


def make(*arguments: str) -> str:
    environment = {name: one for name, one in os.environ.items() if name != "MAKEFLAGS"}
    done = subprocess.run(
        ["make", *arguments], cwd=REPOSITORY, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def recipe(target: str) -> str:
    """What would be run, with everything that it depends on."""
    return make("--dry-run", target)


def modules() -> set[str]:
    recipes = "".join(map(recipe, TARGETS))
    return set(re.findall(r"python3? -m ([\w.]+)", recipes))


def test_help_names_every_target() -> None:
    assert re.findall(r"^  make ([a-z-]+) +\S", make(), re.MULTILINE) == TARGETS


def test_setup_says_how_to_have_the_command_on_the_path_and_no_other_target_does() -> None:
    (line,) = re.findall(r"echo '.*: (export PATH=.*)'", recipe("setup"))
    found = subprocess.run(
        ["bash", "-c", f"{line}; command -v tidebench"], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == str(REPOSITORY / ".venv" / "bin" / "tidebench")
    assert line not in recipe("check")


def test_every_target_that_a_page_names_is_one() -> None:
    inline = [" ".join(code.text.split()) for code in codes() if not code.language]
    named = [one for one in [*commands(), *inline] if re.match(r"(infra\S+ run )?make\b", one)]
    words = {word for one in named for word in one.partition("make")[2].split()}
    assert {word for word in words if "=" not in word} - set(TARGETS) == set()
    assert len(named) > 25


@pytest.mark.parametrize("target", TARGETS)
def test_what_a_target_calls_is_there(target: str) -> None:
    calls = recipe(target)
    for path in re.findall(r"(?<![\w./])(?:\.ci|infra|tests|include)/[\w./-]+\.\w+", calls):
        assert (REPOSITORY / path).exists(), path
    for script in re.findall(r"(?:^|&& )(infra/\S+\.sh)", calls, re.MULTILINE):
        assert os.access(REPOSITORY / script, os.X_OK), f"{script} is not executable"
    for path in re.findall(r"pytest.*?((?:tests/\S+\s?)+)$", calls, re.MULTILINE):
        assert all((REPOSITORY / one).exists() for one in path.split())


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
@pytest.mark.parametrize("module", sorted(modules()))
def test_every_module_that_is_called_answers(
    module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [module, "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    said = "".join([*capsys.readouterr(), str(ended.value)])
    assert (ended.value.code in (None, 0)) == (module not in NO_OPTIONS)
    assert f"python3 -m {module}" in said or f"python -m {module}" in said or "sage: " in said


def test_types_are_checked_wherever_there_is_code() -> None:
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["mypy"]["files"]
    folders = {one.name for one in REPOSITORY.iterdir() if one.is_dir()} - {".git", ".venv", "var"}
    with_code = {name for name in folders if any((REPOSITORY / name).rglob("*.py"))}
    assert with_code >= {".ci", "dags", "include", "infra", "plugins", "tests"}
    assert with_code == {one.partition("/")[0] for one in settings}
