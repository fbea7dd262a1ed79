"""Files with a recording: not too much of one, and as columns or series, by what is in it."""

from __future__ import annotations

from pathlib import Path

from include.files.inputs import input_file
from include.model.errors import SpecError
from include.workloads.recordings.assemble import Sheet
from include.workloads.recordings.prometheus import series_in
from include.workloads.recordings.series import Samples
from include.workloads.recordings.tables import read_csv, read_parquet

MOST_BYTES = 100_000_000


def read_file(source: str) -> tuple[str, Sheet | list[Samples]]:
    """The name of a file, and its columns or the series of Prometheus in it. Raises SpecError."""
    path, content = file_content(source)
    name = path.name
    if is_parquet(path, content):
        return name, read_parquet(name, content)
    text = text_of(name, content)
    if not text.strip("\ufeff \t\r\n"):
        raise SpecError(name, ["the file is empty; write a line of column names, then readings"])
    series = series_in(path, text)
    return name, read_csv(name, text) if series is None else series


def file_content(source: str, kind: str = "recording") -> tuple[Path, bytes]:
    """Path and content. Raises SpecError when it is not there, too long or cannot be read."""
    path = input_file(source, kind)
    if (size := path.stat().st_size) > MOST_BYTES:
        problem = f"has {size / 1e6:.0f} MB, more than {MOST_BYTES // 1_000_000}; take longer steps"
        raise SpecError(path.name, [problem])
    try:
        return path, path.read_bytes()
    except OSError as error:
        raise SpecError(path.name, [f"cannot be read: {error.strerror}"]) from None


def is_parquet(path: Path, content: bytes) -> bool:
    """By its name or its first bytes."""
    return path.suffix.lower() in (".parquet", ".pq") or content.startswith(b"PAR1")


def text_of(name: str, content: bytes) -> str:
    """The content as text. Raises SpecError with the line that is none."""
    if b"\0" in content:
        raise SpecError(name, ["is no text (it has NULs); save it as CSV in UTF-8, or as Parquet"])
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SpecError(
            name, [f"line {line} is no text in UTF-8; save the file as UTF-8"]
        ) from None
