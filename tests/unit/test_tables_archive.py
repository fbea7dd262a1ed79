"""Java takes the archive of its classes where it can, and says nothing where it cannot."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from include.runs.spark import session

pytestmark = pytest.mark.spark


def options() -> list[str]:
    return shlex.split(session.local_driver()[session.JVM])


def test_without_an_archive_java_is_told_of_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "ARCHIVE", tmp_path / "none.jsa")
    assert not any("SharedArchiveFile" in option for option in options())


def test_an_archive_that_java_cannot_use_is_no_word_worth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "of another java.jsa"
    archive.write_bytes(b"no archive at all" * 1000)
    monkeypatch.setattr(session, "ARCHIVE", archive)
    assert f"-XX:SharedArchiveFile={archive}" in options()
    done = subprocess.run(
        ["java", *options(), "-version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
    assert "[cds]" not in done.stderr
    assert "rror" not in done.stderr
