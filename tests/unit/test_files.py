"""Files and folders appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.files.whole import require_writable, swap_in
from include.model.errors import SetupError
from tests.command_line import refused
from tests.full_disk import no_file_above


@pytest.mark.parametrize(
    "does",
    [
        ("calibrate",),
        ("backtest-errors", "none.yaml"),
        ("fit-flink", "none"),
        ("fidelity", "none", "--calibration", "x"),
    ],
)
def test_long_work_does_not_begin_for_a_file_that_cannot_be_written(
    tmp_path: Path, does: tuple[str, ...]
) -> None:
    (tmp_path / "file").touch()
    assert "name the file to write in it" in refused(*does, "--out", tmp_path)
    assert "is a file; name a folder" in refused(*does, "--out", tmp_path / "file" / "out.yaml")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_full_disk_is_told_before_long_work(tmp_path: Path) -> None:
    """It takes a file without content."""
    with no_file_above(0), pytest.raises(SetupError, match="free some space"):
        require_writable(tmp_path / "file")
    with no_file_above(0):
        assert "bounds.json cannot be written" in refused("bound", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_old_folder_comes_back_when_the_new_one_is_gone(tmp_path: Path) -> None:
    target = tmp_path / "published"
    target.mkdir()
    (target / "old.csv").write_text("old")
    with pytest.raises(FileNotFoundError):
        swap_in(tmp_path / "never_written", target)
    assert (target / "old.csv").read_text() == "old"
