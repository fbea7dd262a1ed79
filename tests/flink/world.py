"""A fleet, and files as the job writes them, for tests without a Flink."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from include.testbeds.flink.fleet import FlinkHost, FlinkInstance

LAGS = (0,) * 10


def a_host(number: int = 1, **others: Any) -> FlinkHost:
    """One that was leased as the run began."""
    return FlinkHost(number=number, flavor="four", ordered_s=0, paid_until_s=600, **others)


def an_instance(number: int, operator: str, host: int = 1, **others: Any) -> FlinkInstance:
    """One that was ordered as the run began."""
    return FlinkInstance(number=number, operator=operator, host=host, started_s=0.0, **others)


def subtask_of(
    folder: Path,
    operator: str,
    *,
    graph: str = "g1",
    number: int = 0,
    of: int = 1,
    restored: int = 0,
    begun_us: int = 1,
    host: str = "host-1",
) -> Path:
    """A subtask that opened; writes nothing yet."""
    path = folder / "counts" / operator / f"{graph}.{number}.{of}.{restored}.{begun_us}.{host}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def write_counts(path: Path, us: int, *values: int, sent: Sequence[int] = ()) -> None:
    """The line of a subtask: closed, received, done, busy, waiting, oldest."""
    first = [*values, *(0,) * (6 - len(values))]
    line = ",".join(map(str, [us, *first, *LAGS, *sent, us]))
    path.write_text(line.ljust(200) + "\n")


def write_rows(
    folder: Path,
    operator: str,
    after: int,
    rows: Sequence[tuple[int, ...]],
    *,
    graph: str = "g1",
    subtask: int = 0,
) -> Path:
    """A file of rows that a subtask wrote after a checkpoint."""
    path = folder / "rows" / operator / f"{graph}.{subtask}.{after}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    return path
