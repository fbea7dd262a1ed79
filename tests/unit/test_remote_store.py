"""Experiments that lie elsewhere: fetched, sent back, and nothing else touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from include.model.errors import GateFailed, SpecError, StoreError
from include.runs.measurements.remote_store import copy, local_copy, without_secrets


def an_experiment(root: Path) -> Path:
    folder = root / "mine"
    for name in (
        "measurements/run/experiment=mine/run=r/part-000.parquet",
        "runs/r/manifest.json",
        "runs/r/snapshots/000.npz",
        "staged/old.parquet",
        "published/report.html",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"the content of {name}")
    return folder


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_path_is_itself(tmp_path: Path) -> None:
    with local_copy(str(tmp_path / "a" / ".." / "mine")) as here:
        assert here == tmp_path / "mine"


def test_what_is_measured_is_fetched_and_what_is_made_goes_back(tmp_path: Path) -> None:
    there = an_experiment(tmp_path)
    os.utime(there / "runs/r/manifest.json", (1e9, 1e9))
    untouched = (there / "runs/r/manifest.json").stat().st_mtime_ns
    with local_copy(there.as_uri()) as here:
        assert here.name == "mine"
        assert here != there
        assert files(here) == {
            "measurements/run/experiment=mine/run=r/part-000.parquet",
            "runs/r/manifest.json",
        }
        assert (here / "runs/r/manifest.json").stat().st_mtime_ns == untouched, "when it was run"
        (here / "staged").mkdir()
        (here / "staged" / "runs.parquet").write_text("new")
        (here / "published").mkdir()
        (here / "published" / "report.html").write_text("made again")
    assert (there / "staged/runs.parquet").read_text() == "new"
    assert (there / "published/report.html").read_text() == "made again"
    assert not (there / "staged/old.parquet").exists(), "of an earlier report"
    assert (there / "runs/r/snapshots/000.npz").exists(), "not read, and not deleted"
    assert (there / "runs/r/manifest.json").stat().st_mtime_ns == untouched
    assert not here.exists()


@pytest.mark.parametrize("kind", [StoreError, GateFailed])
def test_what_was_made_goes_back_also_when_a_report_fails(
    kind: type[Exception], tmp_path: Path
) -> None:
    there = an_experiment(tmp_path)

    def fail() -> None:
        with local_copy(there.as_uri()) as here:
            (here / "staged").mkdir()
            (here / "staged" / "quarantine.json").write_text("{}")
            raise kind(f"{here}/measurements is torn")

    with pytest.raises(kind, match=f"^{there.as_uri()}/measurements is torn$"):
        fail()
    assert (there / "staged/quarantine.json").exists()


def test_copied_there_and_back_it_is_the_same(tmp_path: Path) -> None:
    source, target = an_experiment(tmp_path), tmp_path / "elsewhere" / "mine"
    assert copy(source, target.as_uri()) == 5
    assert {name: (target / name).read_text() for name in files(target)} == {
        name: (source / name).read_text() for name in files(source)
    }


def test_a_report_that_fails_leaves_the_one_that_was_there(tmp_path: Path) -> None:
    there = an_experiment(tmp_path)

    def fail() -> None:
        with local_copy(there.as_uri()):
            raise KeyboardInterrupt

    before = files(there)
    with pytest.raises(KeyboardInterrupt):
        fail()
    assert files(there) == before


def test_what_is_no_experiment_is_not_touched(tmp_path: Path) -> None:
    an_experiment(tmp_path)
    (tmp_path / "published").mkdir()
    (tmp_path / "published" / "thesis.pdf").write_text("years of work")
    with pytest.raises(StoreError, match="holds no complete run"), local_copy(tmp_path.as_uri()):
        pass
    assert (tmp_path / "published" / "thesis.pdf").exists()


def test_a_copy_ends_with_the_name_of_the_experiment(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"end it with the name of the experiment: .*/up/mine"):
        copy(an_experiment(tmp_path), (tmp_path / "up").as_uri())


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("s3://key:secret@bucket/mine", "take the password out of the URI"),
        ("s3://key:secret/with+more@bucket/mine", "take the password out of the URI"),
        ("s3://key:secret#?@bucket/mine", "take the password out of the URI"),
        ("s3://b/mine?endpoint_override=http://u:secret@h", "take the password out of the URI"),
        ("file:///", "it names no folder"),
        ("ftp://bucket/mine", "name it as in s3://bucket/folder"),
    ],
)
def test_a_uri_that_will_not_do_is_told_of_without_its_password(where: str, message: str) -> None:
    with pytest.raises(SpecError, match=message) as error, local_copy(where):
        pass
    assert "secret" not in str(error.value)


def test_nothing_there_is_told_of(tmp_path: Path) -> None:
    with (
        pytest.raises(StoreError, match="holds no complete run"),
        local_copy((tmp_path / "no").as_uri()),
    ):
        pass
    with pytest.raises(StoreError, match="is no folder with files"):
        copy(tmp_path / "no", (tmp_path / "there").as_uri())


def test_options_of_a_uri_are_not_shown() -> None:
    assert without_secrets("s3://b/mine?endpoint_override=127.0.0.1:1") == "s3://b/mine"


def test_a_target_that_is_a_path_is_told_as_it_was_written(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as error:
        copy(an_experiment(tmp_path), str(tmp_path / "up"))
    how = f"end it with the name of the experiment: {tmp_path}/up/mine"
    assert (error.value.source, error.value.problems) == (f"{tmp_path}/up", (how,))
