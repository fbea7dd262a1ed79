"""Folders of experiments that lie elsewhere: in an object store, or wherever pyarrow reaches."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from include.model.errors import SpecError, StoreError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

MADE_HERE = ("staged", "published", "data_docs")
"""Folders that a report makes anew, so nothing of them is fetched and what is left of them goes."""
NOT_READ = ("snapshots",)
"""Folders of a run that no report reads."""
AT_ONCE = 16


def is_elsewhere(where: str) -> bool:
    """Whether it is a URI and no path."""
    return "://" in where


@contextmanager
def at_hand(where: str) -> Iterator[Path]:
    """The folder of an experiment: ``where`` itself, or a copy of what lies at that URI.

    What was made or changed in the copy goes back when the block ends, however it ends. Raises
    SpecError for a URI that pyarrow does not know or that has a password in it, StoreError when
    there is nothing, or the other side does not answer.
    """
    if not is_elsewhere(where):
        yield Path(where).resolve()
        return
    there, path = _opened(where)
    with tempfile.TemporaryDirectory(prefix="tidebench-") as root:
        here = Path(root) / Path(path).name
        with _told_of(where):
            _fetch(there, path, here)
        before = _files(here)
        try:
            yield here
        except StoreError as error:
            raise StoreError(str(error).replace(str(here), shown(where))) from error
        finally:
            now = _files(here)
            with _told_of(where):
                _send(there, path, here, [one for one in now if now[one] != before.get(one)])
                _clear(there, path, now)


def copy(source: Path, target: str) -> int:
    """Copy the folder of an experiment to a URI; returns how many files that were. Raises as
    ``at_hand``."""
    there, path = _opened(target)
    files = list(_files(source))
    if not files:
        raise StoreError(f"{source} is no folder with files; name that of an experiment")
    with _told_of(target):
        _send(there, path, source, files)
    return len(files)


def shown(where: str) -> str:
    """The URI without its options."""
    return where.partition("?")[0].rstrip("/")


def _opened(where: str) -> tuple[FileSystem, str]:
    import pyarrow as pa
    from pyarrow.fs import FileSystem

    if urlsplit(where).password is not None:
        told = "take the password out of the URI; it is read from the environment"
        raise SpecError(shown(where).rpartition("@")[2], [f"{told} (AWS_SECRET_ACCESS_KEY for s3)"])
    try:
        there, path = FileSystem.from_uri(where)
    except (pa.ArrowException, OSError, ValueError) as error:
        how = "name it as in s3://bucket/folder, gs://bucket/folder or file:///folder"
        raise SpecError(shown(where), [f"{error}; {how}"]) from error
    return there, path.rstrip("/")


@contextmanager
def _told_of(where: str) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        how = "see that it answers and that the credentials in the environment are allowed to"
        raise StoreError(f"{shown(where)}: {error}; {how}") from error


def _fetch(there: FileSystem, path: str, here: Path) -> None:
    names = [
        one for one in _names(there, path)
        if one.split("/")[0] not in MADE_HERE and not set(one.split("/")).intersection(NOT_READ)
    ]  # fmt: skip
    if not names:
        raise StoreError(f"{path} holds no file; name the folder of an experiment")
    _each(names, lambda one: _copied(there, f"{path}/{one}", None, here / one))


def _send(there: FileSystem, path: str, here: Path, names: list[str]) -> None:
    for folder in sorted({f"{path}/{one}".rpartition("/")[0] for one in names}):
        there.create_dir(folder)
    _each(names, lambda one: _copied(None, here / one, there, f"{path}/{one}"))


def _clear(there: FileSystem, path: str, left: dict[str, tuple[int, int]]) -> None:
    """Delete what an earlier report had made and this one has not."""
    old = [one for one in _names(there, path) if one.split("/")[0] in MADE_HERE and one not in left]
    _each(old, lambda one: there.delete_file(f"{path}/{one}"))


def _names(there: FileSystem, path: str) -> list[str]:
    from pyarrow.fs import FileSelector

    selector = FileSelector(path, allow_not_found=True, recursive=True)
    return [one.path[len(path) + 1 :] for one in there.get_file_info(selector) if one.is_file]


def _copied(
    of: FileSystem | None, source: str | Path, to: FileSystem | None, target: str | Path
) -> None:
    from pyarrow.fs import LocalFileSystem, copy_files

    if isinstance(target, Path):
        target.parent.mkdir(parents=True, exist_ok=True)
    local = LocalFileSystem()
    copy_files(
        str(source), str(target), source_filesystem=of or local, destination_filesystem=to or local
    )


def _each(names: list[str], act: Callable[[str], object]) -> None:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(act, names))


def _files(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in found
    }
