"""Installing Flink, without the wheel: what is missing or broken is told, and nothing is left."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from include.model.errors import SetupError
from include.testbeds.flink import installation
from include.testbeds.flink.installation import Installation
from infra.flink import archive, install


@pytest.fixture
def here(tmp_path):
    return Installation(tmp_path / "flink")


def a_wheel(jars):
    def run(command, within_s):
        folder = Path(command[command.index("--dest") + 1])
        with zipfile.ZipFile(folder / installation.WHEEL, "w") as archive:
            for jar in jars:
                archive.writestr(f"pyflink/lib/{jar}", b"x")
        return ""

    return run


def test_a_download_of_another_digest_is_told_and_not_left_behind(here, monkeypatch):
    monkeypatch.setattr(install, "run_quietly", a_wheel([]))
    here.folder.mkdir()
    with pytest.raises(SetupError, match=r"is not .* of sha256"):
        install.take_jars(here)
    assert list(here.folder.rglob("*.whl")) == []
    assert not here.lib.exists()


def test_a_wheel_without_its_jars_is_told(here, monkeypatch):
    monkeypatch.setattr(install, "run_quietly", a_wheel(["flink-dist-2.2.1.jar"]))
    monkeypatch.setattr(install, "digest", lambda path: installation.WHEEL_SHA256)
    here.folder.mkdir()
    with pytest.raises(SetupError, match="has 1 of the 5 jars"):
        install.take_jars(here)
    assert not here.lib.exists()


def test_of_a_wheel_a_few_jars_are_kept(here, monkeypatch):
    kept = [f"{prefix}1.jar" for prefix in install.JARS]
    monkeypatch.setattr(install, "run_quietly", a_wheel([*kept, "flink-table-1.jar"]))
    monkeypatch.setattr(install, "digest", lambda path: installation.WHEEL_SHA256)
    here.folder.mkdir()
    install.take_jars(here)
    assert sorted(path.name for path in here.lib.iterdir()) == sorted(kept)


def test_without_a_compiler_nothing_is_downloaded(here, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(install, "take_jars", lambda here: pytest.fail("downloads"))
    with pytest.raises(SetupError, match=r"there is no javac; install a JDK of version 17"):
        install.install(here)


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
