"""A controller of one's own by the command line, from the folder that alone has its package, and
from another one.

tests/e2e/test_batch_dag.py measures it by a DAG run, tests/e2e/test_sweep_cluster.py on workers.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import REPOSITORY
from tests.e2e.own_controller import write_own


def tidebench(folder: Path, *arguments: str) -> str:
    """What the installed command prints in that folder."""
    command = "import sys; from include.cli import main; sys.argv[0] = 'tidebench'; main()"
    done = subprocess.run(
        [sys.executable, "-P", "-c", command, *arguments], cwd=folder, text=True, timeout=600,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)}, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_an_edit_measures_only_its_runs_again(tmp_path: Path) -> None:
    spec = write_own(tmp_path / "home")
    folder, root = spec.parent, ("--root", str(tmp_path / "data"))
    for where, name in (folder, "mine.yaml"), (tmp_path, "home/mine.yaml"):
        assert "Longest-stepwise-btu5-s1-" in tidebench(where, "check", name)
    tidebench(tmp_path, "run", "home/mine.yaml", *root)

    module = folder / "my_package" / "module.py"
    module.write_text(module.read_text().replace("whose queue is long", "that has a long queue"))
    again = tidebench(folder, "run", "mine.yaml", *root).splitlines()
    (btu,) = [line for line in again if "] btu-" in line]
    (own,) = [line for line in again if "] Longest-" in line]
    assert btu.endswith("reused")
    assert own.endswith("of other code")


def test_a_module_beside_the_spec_comes_before_one_where_the_command_is_called(tmp_path: Path):
    spec = write_own(tmp_path / "home")
    other = tmp_path / "elsewhere" / "my_package"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("raise RuntimeError('of another folder')\n")
    assert "Longest-stepwise-btu5-s1-" in tidebench(other.parent, "check", str(spec))
