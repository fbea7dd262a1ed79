"""Folders of experiments that lie elsewhere: in an object store, or wherever pyarrow reaches."""

from __future__ import annotations

import fnmatch
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from include.model.errors import SpecError, StoreError, TidebenchError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

MADE_HERE = ("staged", "published", "data_docs", "workflow")
"""Folders that every report makes anew: never fetched, and removed remotely where not remade."""
NOT_READ = ("snapshots",)
"""Folders of a run that no report reads."""
MANIFESTS = "runs/*/manifest.json"
"""What makes a run complete, so the last of it to be sent."""
AT_ONCE = 16
_PASSWORD = re.compile(r"//[^@]*:.*@")


def is_remote(where: str) -> bool:
    """Whether it is a URI and no path."""
    return "://" in where


@contextmanager
def local_copy(where: str, scratch: Path | None = None) -> Iterator[Path]:
    """The folder of an experiment: ``where`` itself, or a copy of what lies at that URI, in the
    folder ``scratch`` or that of the system.

    New and changed files are sent back when the block ends. Files of an earlier report are removed
    only when it ended without an error. Raises SpecError for a URI that pyarrow does not know or
    that has a password in it, StoreError when it is no folder of an experiment, or the remote side
    does not answer.
    """
    if not is_remote(where):
        yield Path(where).resolve()
        return
    remote, name = _open_remote(where)
    with tempfile.TemporaryDirectory(prefix="tidebench-", dir=scratch) as root:
        here = Path(root) / name
        with _store_errors(where):
            names = _remote_names(remote)
        _require_experiment(where, names)
        with _store_errors(where):
            read = [name for name in names if _is_read(name)]
            _copy(read, remote, _local(here))
            _keep_times(fnmatch.filter(read, MANIFESTS), remote, here)
        before = _files(here)
        try:
            yield here
        except BaseException as error:
            with suppress(StoreError):  # what went wrong first is what counts
                _give_back(where, remote, here, before)
            if isinstance(error, TidebenchError):  # the copy is gone for whoever reads of it
                place = without_secrets(where)
                error.args = tuple(str(part).replace(str(here), place) for part in error.args)
            raise
        _give_back(where, remote, here, before)
        made = _files(here)
        old = [name for name in names if name.split("/")[0] in MADE_HERE and name not in made]
        with _store_errors(where):
            _for_each(old, remote.delete_file)


def copy(source: Path, target: str) -> int:
    """Copy the folder of an experiment to a URI that ends with its name; returns how many files
    that were. Raises as ``local_copy``."""
    remote, name = _open_remote(target)
    files = list(_files(source))
    if not files:
        raise StoreError(f"{source} is no folder with files; name that of an experiment")
    if name != source.name:
        how = f"end it with the name of the experiment: {without_secrets(target)}/{source.name}"
        raise SpecError(without_secrets(target), [how])
    with _store_errors(target):
        _send(remote, source, files)
    return len(files)


def without_secrets(where: str) -> str:
    """The URI without its options and whatever may be a password; a path as it is."""
    if not is_remote(where):
        return where
    scheme, _, rest = where.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0].rstrip('/')}"


def _open_remote(where: str) -> tuple[FileSystem, str]:
    """The folder at a URI, as the root of a file system, and its name."""
    import pyarrow as pa
    from pyarrow.fs import FileSystem, SubTreeFileSystem

    if _PASSWORD.search(where):
        how = "take the password out of the URI; it is read from the environment"
        raise SpecError(without_secrets(where), [f"{how} (AWS_SECRET_ACCESS_KEY for s3)"])
    how = "name it as in s3://bucket/folder, gs://bucket/folder or file:///folder"
    try:
        remote, path = FileSystem.from_uri(where)
    except (pa.ArrowException, ValueError) as error:
        raise SpecError(
            without_secrets(where), [f"{error}; {how}, with %20 for a space"]
        ) from error
    except OSError as error:
        raise StoreError(f"{without_secrets(where)}: {error}; see that it answers") from error
    if not path.strip("/"):
        raise SpecError(without_secrets(where), [f"it names no folder; {how}"])
    return SubTreeFileSystem(path.rstrip("/"), remote), Path(path).name


def _require_experiment(where: str, names: Sequence[str]) -> None:
    """Before anything is fetched, or in the end deleted."""
    if not fnmatch.filter(names, MANIFESTS):
        raise StoreError(
            f"{without_secrets(where)} holds no complete run (no {MANIFESTS}); name the folder of "
            "an experiment, as `copy` has told it"
        )
    if strange := [name for name in names if ".." in name.split("/")]:
        raise StoreError(
            f"{without_secrets(where)} has names that no experiment has, such as {strange[0]}"
        )


def _is_read(name: str) -> bool:
    parts = name.split("/")
    return parts[0] not in MADE_HERE and not set(parts).intersection(NOT_READ)


@contextmanager
def _store_errors(where: str) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        how = "see that it answers, that the credentials in the environment are allowed to"
        raise StoreError(
            f"{without_secrets(where)}: {error}; {how}, and that disks have room"
        ) from error


def _give_back(
    where: str, remote: FileSystem, here: Path, before: dict[str, tuple[int, int]]
) -> None:
    with _store_errors(where):
        now = _files(here)
        _send(remote, here, [name for name in now if now[name] != before.get(name)])


def _send(remote: FileSystem, here: Path, names: Sequence[str]) -> None:
    """Manifests last, so that a run is complete where it is sent to once it is there."""
    last = set(fnmatch.filter(names, MANIFESTS))
    _copy([name for name in names if name not in last], _local(here), remote)
    _copy(sorted(last), _local(here), remote)


def _copy(names: Sequence[str], source: FileSystem, target: FileSystem) -> None:
    from pyarrow.fs import copy_files

    for folder in sorted({name.rpartition("/")[0] for name in names} - {""}):
        target.create_dir(folder)
    _for_each(names, lambda name: copy_files(name, name, source, target))


def _keep_times(names: Sequence[str], remote: FileSystem, here: Path) -> None:
    """When a run was complete is the time of its manifest, which a copy does not keep."""
    for file in remote.get_file_info(names):
        if file.mtime_ns is not None:
            os.utime(here / file.path, ns=(file.mtime_ns, file.mtime_ns))


def _local(folder: Path) -> FileSystem:
    from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

    folder.mkdir(parents=True, exist_ok=True)
    return SubTreeFileSystem(str(folder), LocalFileSystem())


def _remote_names(remote: FileSystem) -> list[str]:
    from pyarrow.fs import FileSelector

    selector = FileSelector("", allow_not_found=True, recursive=True)
    return [file.path for file in remote.get_file_info(selector) if file.is_file]


def _for_each(names: Sequence[str], act: Callable[[str], object]) -> None:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(act, names))


def _files(folder: Path) -> dict[str, tuple[int, int]]:
    """Size in bytes and time in ns of every file, by its path below the folder."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in paths
    }
