"""A pause that may be lost in a power cut is told of, and holds until then."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from include.model.errors import SetupError
from include.service.pause import pause, why_paused


def test_a_pause_whose_name_cannot_be_synced_fails_and_holds_all_the_same(tmp_path, monkeypatch):
    fsync = os.fsync

    def no_folder(file: int) -> None:
        if stat.S_ISDIR(os.fstat(file).st_mode):
            raise OSError(errno.EIO, "Input/output error")
        fsync(file)

    monkeypatch.setattr("os.fsync", no_folder)
    with pytest.raises(SetupError, match=r"paused\.json is written, but .* cannot be synced"):
        pause(tmp_path, "release day")
    assert why_paused(tmp_path).startswith("paused since ")
    assert why_paused(tmp_path).endswith(": release day")


def test_a_pause_that_ends_while_somebody_looks_does_not_hold(tmp_path, monkeypatch):
    monkeypatch.setattr("pathlib.Path.exists", lambda path: True)  # it was there a moment ago
    assert why_paused(tmp_path) == ""


def test_a_pause_that_cannot_be_written_fails_and_does_not_hold(tmp_path, monkeypatch):
    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(SetupError, match="No space left on device"):
        pause(tmp_path, "release day")
    assert why_paused(tmp_path) == ""
    assert list(tmp_path.iterdir()) == []
