"""Where published numbers come from: versions and the commit of this repository."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = (
    "apache-airflow",
    "great-expectations",
    "numba",
    "numpy",
    "pandas",
    "pyarrow",
    "pyspark",
)
_REPOSITORY = Path(__file__).parents[3]


def tool_versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide about the numbers."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def git_commit() -> str | None:
    """The commit of this repository, ``-dirty`` added when files differ; None outside git."""
    try:
        said = subprocess.run(
            ["git", "-C", str(_REPOSITORY), "describe", "--always", "--dirty", "--abbrev=40"],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return said.stdout.strip() or None
