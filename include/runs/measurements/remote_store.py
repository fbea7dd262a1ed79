"""Folders of experiments that lie elsewhere: in an object store, or wherever pyarrow reaches."""

from __future__ import annotations

import fnmatch
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from include.model.errors import SpecError, StoreError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

MADE_HERE = ("staged", "published", "data_docs", "workflow")
"""Folders that a report makes anew, so nothing of them is fetched and what is left of them goes."""
NOT_READ = ("snapshots",)
"""Folders of a run that no report reads."""
MANIFESTS = "runs/*/manifest.json"
"""What makes a run complete, so the last of it to be sent."""
AT_ONCE = 16
_PASSWORD = re.compile(r"//[^@]*:.*@")


def is_elsewhere(where: str) -> bool:
    """Whether it is a URI and no path."""
    return "://" in where


@contextmanager
def at_hand(where: str) -> Iterator[Path]:
    """The folder of an experiment: ``where`` itself, or a copy of what lies at that URI.

    What was made or changed in the copy goes back when the block ends. What an earlier report had
    made goes only when this one has ended well. Raises SpecError for a URI that pyarrow does not
    know or that has a password in it, StoreError when it is no folder of an experiment, or the
    other side does not answer.
    """
    if not is_elsewhere(where):
        yield Path(where).resolve()
        return
    there, path = _opened(where)
    with tempfile.TemporaryDirectory(prefix="tidebench-") as root:
        here = Path(root) / Path(path).name
        with _told_of(where):
            names = _names(there, path)
        _require_experiment(where, names)
        with _told_of(where):
            _fetch(there, path, here, [one for one in names if _is_read(one)])
        before = _files(here)
        try:
            yield here
        except BaseException as error:
            with suppress(StoreError):  # what went wrong first is what counts
                _give_back(where, there, path, here, before)
            if type(error) is StoreError:
                raise StoreError(str(error).replace(str(here), shown(where))) from error
            raise
        _give_back(where, there, path, here, before)
        made = _files(here)
        old = [one for one in names if one.split("/")[0] in MADE_HERE and one not in made]
        with _told_of(where):
            _each(old, lambda one: there.delete_file(f"{path}/{one}"))


def copy(source: Path, target: str) -> int:
    """Copy the folder of an experiment to a URI that ends with its name; returns how many files
    that were. Raises as ``at_hand``."""
    there, path = _opened(target)
    files = list(_files(source))
    if not files:
        raise StoreError(f"{source} is no folder with files; name that of an experiment")
    if Path(path).name != source.name:
        told = f"end it with the name of the experiment: {shown(target)}/{source.name}"
        raise SpecError(shown(target), [told])
    with _told_of(target):
        _send(there, path, source, files)
    return len(files)


def shown(where: str) -> str:
    """The URI without its options and whatever may be a password."""
    scheme, _, rest = where.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0].rstrip('/')}"


def _opened(where: str) -> tuple[FileSystem, str]:
    import pyarrow as pa
    from pyarrow.fs import FileSystem

    if _PASSWORD.search(where):
        told = "take the password out of the URI; it is read from the environment"
        raise SpecError(shown(where), [f"{told} (AWS_SECRET_ACCESS_KEY for s3)"])
    how = "name it as in s3://bucket/folder, gs://bucket/folder or file:///folder"
    try:
        there, path = FileSystem.from_uri(where)
    except (pa.ArrowException, ValueError) as error:
        raise SpecError(shown(where), [f"{error}; {how}, with %20 for a space"]) from error
    except OSError as error:
        raise StoreError(f"{shown(where)}: {error}; see that it answers") from error
    if not path.strip("/"):
        raise SpecError(shown(where), [f"it names no folder; {how}"])
    return there, path.rstrip("/")


def _require_experiment(where: str, names: Sequence[str]) -> None:
    """Before anything is fetched, or in the end deleted."""
    if not fnmatch.filter(names, MANIFESTS):
        raise StoreError(
            f"{shown(where)} holds no complete run (no {MANIFESTS}); name the folder of an "
            "experiment, as `copy` has told it"
        )
    if strange := [one for one in names if ".." in one.split("/")]:
        raise StoreError(f"{shown(where)} has names that no experiment has, such as {strange[0]}")


def _is_read(name: str) -> bool:
    parts = name.split("/")
    return parts[0] not in MADE_HERE and not set(parts).intersection(NOT_READ)


@contextmanager
def _told_of(where: str) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        how = "see that it answers, that the credentials in the environment are allowed to"
        raise StoreError(f"{shown(where)}: {error}; {how}, and that disks have room") from error


def _fetch(there: FileSystem, path: str, here: Path, names: Sequence[str]) -> None:
    from pyarrow.fs import LocalFileSystem, copy_files

    def fetch(name: str) -> None:
        target = here / name
        target.parent.mkdir(parents=True, exist_ok=True)
        copy_files(f"{path}/{name}", str(target), there, LocalFileSystem())

    _each(names, fetch)


def _give_back(
    where: str, there: FileSystem, path: str, here: Path, before: dict[str, tuple[int, int]]
) -> None:
    with _told_of(where):
        now = _files(here)
        _send(there, path, here, [one for one in now if now[one] != before.get(one)])


def _send(there: FileSystem, path: str, here: Path, names: Sequence[str]) -> None:
    """Manifests last, so that a run is complete where it is sent to once it is there."""
    from pyarrow.fs import LocalFileSystem, copy_files

    for folder in sorted({f"{path}/{one}".rpartition("/")[0] for one in names}):
        there.create_dir(folder)
    last = set(fnmatch.filter(names, MANIFESTS))
    for some in ([one for one in names if one not in last], sorted(last)):
        _each(
            some,
            lambda one: copy_files(str(here / one), f"{path}/{one}", LocalFileSystem(), there),
        )


def _names(there: FileSystem, path: str) -> list[str]:
    from pyarrow.fs import FileSelector

    selector = FileSelector(path, allow_not_found=True, recursive=True)
    return [one.path[len(path) + 1 :] for one in there.get_file_info(selector) if one.is_file]


def _each(names: Sequence[str], act: Callable[[str], object]) -> None:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(act, names))


def _files(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in found
    }
