"""Files with a recording: not too much of one, and as columns or series, by what is in it."""

from __future__ import annotations

from include.files.inputs import input_file
from include.model.errors import SpecError
from include.workloads.recordings.assemble import Sheet
from include.workloads.recordings.prometheus import series_in
from include.workloads.recordings.series import Samples
from include.workloads.recordings.tables import read_csv, read_parquet

MOST_BYTES = 100_000_000


def read_file(source: str) -> tuple[str, Sheet | list[Samples]]:
    """The name of a file, and its columns or the series of Prometheus in it. Raises SpecError."""
    path = input_file(source, "recording")
    name = path.name
    if (size := path.stat().st_size) > MOST_BYTES:
        problem = f"has {size / 1e6:.0f} MB, more than {MOST_BYTES // 1_000_000}"
        how = "take longer steps or less time (of a shadow a day: tidebench verdict --day)"
        raise SpecError(name, [f"{problem}; {how}"])
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SpecError(name, [f"cannot be read: {error.strerror}"]) from None
    if path.suffix.lower() in (".parquet", ".pq") or content.startswith(b"PAR1"):
        return name, read_parquet(name, content)
    text = _text_of(name, content)
    if not text.strip("\ufeff \t\r\n"):
        raise SpecError(name, ["the file is empty; write a line of column names, then readings"])
    series = series_in(path, text)
    return name, read_csv(name, text) if series is None else series


def _text_of(name: str, content: bytes) -> str:
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
