"""With which code a run was measured."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("numpy", "numba", "pyarrow", "pydantic")
COMPUTES = (
    "controllers", "experiment", "files", "model", "runs", "testbeds", "workloads",
)  # fmt: skip
"""Folders of include/ that decide what is measured; the others only read it."""
INCLUDE = Path(__file__).resolve().parents[1]
COMMIT = INCLUDE.with_name("git_commit")
"""Says which commit a copy of the code is of, where it is no clone (include/runs/spark/code.py)."""


@cache
def code_digest() -> str:
    """SHA-256 over every file and every package version that decides what is measured.

    A spec hash covers what a run is given, this what acts on it: code, and the levels,
    topologies and calibrations that come with it. Spec files are inputs, so they do not count.
    """
    total = hashlib.sha256(repr([platform.python_version(), *_package_versions()]).encode())
    for path in sorted(path for folder in COMPUTES for path in (INCLUDE / folder).rglob("*.*")):
        if path.suffix in (".py", ".yaml", ".csv") and path.parent.name != "specs":
            total.update(path.relative_to(INCLUDE).as_posix().encode() + b"\0")
            total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


@cache
def versions() -> dict[str, str]:
    """Python, the packages that measurements rest on, and the git commit ("" when unknown)."""
    return {
        "python": platform.python_version(),
        "git_commit": _git_commit(),
        **dict(zip(PACKAGES, _package_versions(), strict=True)),
    }


def _package_versions() -> list[str]:
    found = []
    for name in PACKAGES:
        try:
            found.append(version(name))
        except PackageNotFoundError:
            found.append("")
    return found


def _git_commit() -> str:
    here = Path(__file__).resolve().parent
    if COMMIT.is_file():
        return COMMIT.read_text(encoding="ascii").strip()
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=here,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
