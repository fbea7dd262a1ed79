"""Scripts say how they are used, and what is missing before they change anything."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.pages import REPOSITORY

SCRIPTS = sorted(
    path
    for folder in (".ci", "infra")
    for path in (REPOSITORY / folder).rglob("*")
    if path.is_file() and path.read_bytes().startswith((b"#!/usr/bin/env bash", b"#!/bin/sh"))
)
WITH_USAGE = [path for path in SCRIPTS if "sed -n '2,/" in path.read_text()]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_script_can_be_read(script: Path) -> None:
    shell = "sh" if script.read_text().startswith("#!/bin/sh") else "bash"
    assert subprocess.run([shell, "-n", script], check=False).returncode == 0


def test_some_scripts_say_how_they_are_used() -> None:
    assert WITH_USAGE


@pytest.mark.parametrize("script", WITH_USAGE, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_without_arguments_it_says_how_it_is_used(script: Path) -> None:
    done = subprocess.run([script], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"# {script.name} - ")
    assert all(line.startswith("#") for line in lines), "more than the comment at its top"


def copy_of(folder: Path, *files: str) -> None:
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, folder / name)


def test_images_of_debian_packages_begin_with_the_environment_they_need(tmp_path: Path) -> None:
    """In a fresh clone there is no .venv, whose pip makes the wheels."""
    path = os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"])
    if os.geteuid() or not all(
        shutil.which(one, path=path) for one in ("dockerd", "debootstrap", "ip", "iptables")
    ):
        pytest.skip("needs root, docker.io, debootstrap, iproute2 and iptables")
    copy_of(tmp_path, "infra/compose/local.sh", ".ci/setup.sh", ".ci/env.sh")
    done = subprocess.run(
        [tmp_path / "infra" / "compose" / "local.sh", "up"],
        env=os.environ | {"JAVA_HOME": "/nowhere"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "Java 17 or later for Spark, found none" in done.stderr
    assert "make setup could not create" in done.stderr
    assert not (tmp_path / "var").exists(), "nothing was started"
