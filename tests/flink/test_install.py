"""Installing Flink, without the wheel: what is missing or broken is told, and nothing is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from include.model.errors import SetupError
from include.testbeds.flink import installation
from include.testbeds.flink.installation import Installation
from include.testbeds.flink.reap import processes_in
from include.testbeds.live.processes import DetachedProcess
from infra.flink import archive, install
from tests.live.world import wait_until


@pytest.fixture
def here(tmp_path):
    return Installation(tmp_path / "flink")


@pytest.fixture
def downloads(here, monkeypatch):
    """What the package index has: a wheel with these jars, of the digest of ours or another."""

    def told(*jars, digest=installation.WHEEL_SHA256):
        def download(command, within_s):
            folder = Path(command[command.index("--dest") + 1])
            with zipfile.ZipFile(folder / installation.WHEEL, "w") as wheel:
                for jar in jars:
                    wheel.writestr(f"pyflink/lib/{jar}", b"x")
            return ""

        monkeypatch.setattr(install, "run_quietly", download)
        monkeypatch.setattr(install, "digest", lambda path: digest)
        here.folder.mkdir()

    return told


@pytest.mark.parametrize(
    ("digest", "told"),
    [("another", "is not .* of sha256"), (installation.WHEEL_SHA256, "has 1 of the 5 jars")],
)
def test_a_wheel_that_is_not_ours_is_told_and_not_left_behind(here, downloads, digest, told):
    downloads("flink-dist-2.2.1.jar", digest=digest)
    with pytest.raises(SetupError, match=told):
        install.take_jars(here)
    assert not [path for path in here.folder.rglob("*") if path.is_file()]
    assert not here.lib.exists()


def test_of_a_wheel_a_few_jars_are_kept(here, downloads):
    kept = [f"{prefix}1.jar" for prefix in install.JARS]
    downloads(*kept, "flink-table-1.jar")
    install.take_jars(here)
    assert sorted(path.name for path in here.lib.iterdir()) == sorted(kept)


@pytest.mark.parametrize("javac", ["", "javac 11.0.2", "javac 1.8.0_292"])
def test_without_a_compiler_nothing_is_downloaded(here, monkeypatch, javac):
    monkeypatch.setattr("shutil.which", lambda name: javac)
    monkeypatch.setattr(install, "run_quietly", lambda command, within_s: javac)
    monkeypatch.setattr(install, "take_jars", lambda here: pytest.fail("downloads"))
    told = f"found {javac}" if javac else "there is no javac"
    with pytest.raises(SetupError, match=f"^{told}; install a JDK of version 17"):
        install.install(here)


def test_a_folder_that_cannot_be_written_is_told_on_one_line(tmp_path):
    """The compiler of a Java that is not out yet will do."""
    javac, state = tmp_path / "javac", tmp_path / "file"
    javac.write_text("#!/bin/sh\necho javac 18-ea\n")
    javac.chmod(0o755)
    state.touch()
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "infra.flink.install"], capture_output=True, text=True, check=False,
        env={**os.environ, "PATH": path, "TIDEBENCH_FLINK_STATE": str(state)},
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


def test_what_a_killed_installation_left_is_ended_and_removed(here, monkeypatch):
    """Two JVMs of a Flink that ran for the archive, and a wheel of 313 MB."""
    left, download = here.folder / ".archive-x1", here.folder / ".download-x2"
    for path in (left / "processes", download):
        path.mkdir(parents=True)
    numbers = left / "processes" / "host-1.json"
    processes = [
        DetachedProcess.start(["sleep", "600"], left / "log", held_by=held)
        for held in (None, left / "processes" / "job-manager.json")
    ]
    numbers.write_text(json.dumps({"pid": processes[0].pid, "born": processes[0].born}))
    monkeypatch.setattr(install, "java_compiler", lambda: None)
    monkeypatch.setattr(archive, "fits", lambda here: True)
    for path in (here.lib, here.built):
        path.mkdir(parents=True)
    try:
        # While a process starts its environment, by which the second is found, reads as empty.
        wait_until(lambda: len(processes_in(left)) == 2, "both are found", 30)
        install.install(here)
        assert not any(process.alive for process in processes)
        assert not left.exists()
        assert not download.exists()
    finally:
        for process in processes:
            process.end(first=signal.SIGKILL)


def test_a_java_that_hangs_has_no_archive_that_fits(here, monkeypatch, tmp_path):
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\nexec sleep 600\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(archive, "ANSWERS_WITHIN_S", 0.1)
    for path in (here.lib, here.built):
        path.mkdir(parents=True)
    here.archive.touch()
    assert not archive.fits(here)


def test_a_machine_without_flink_is_told_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDEBENCH_FLINK_STATE", str(tmp_path))
    with pytest.raises(SetupError, match="make flink"):
        installation.installation()


def test_without_an_archive_of_classes_hosts_start_slower(here, monkeypatch, capsys):
    def fails(cluster, draft):
        raise SetupError("a job for it does not run")

    monkeypatch.setattr(archive, "run_job", fails)
    here.built.mkdir(parents=True)
    here.archive.write_bytes(b"of another Java")
    assert not archive.fits(here)
    archive.write(here)
    assert "does not run" in capsys.readouterr().out
    assert not here.archive.exists()
    assert not archive.fits(here)
