"""The rows of items that the job has written, and which of them count.

A file holds what a subtask has done between two checkpoints. It counts unless a later start of the
job went back behind it: so every item comes once, however often it was done. Whether it does is
certain as soon as a checkpoint after it is complete, for no start goes back behind that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from include.testbeds.flink.instances import JobStart

NEVER = 1 << 62
COLUMNS = 6


class ItemRow(NamedTuple):
    """One item at an operator: by which edges it came, its number, times in us since 1970."""

    path: int
    number: int
    emitted_us: int
    sent_us: int
    started_us: int
    done_us: int


@dataclass(frozen=True, slots=True)
class RowFile:
    """What one subtask has done after one checkpoint."""

    operator: str
    graph: str
    subtask: int
    after: int
    path: Path

    def rows(self) -> list[ItemRow]:
        """Whole lines; the rest of the last one may follow."""
        content = self.path.read_bytes()
        content = content[: content.rfind(b"\n") + 1]
        lines = (line.split(b",") for line in content.splitlines())
        return [ItemRow(*map(int, parts)) for parts in lines if len(parts) == COLUMNS]


def row_files(folder: Path, operators: Sequence[str]) -> Iterator[RowFile]:
    """Every file there is."""
    for operator in operators:
        place = folder / "rows" / operator
        for path in place.iterdir() if place.is_dir() else ():
            graph, subtask, after = path.name.split(".")
            yield RowFile(operator, graph, int(subtask), int(after), path)


def bounds_of(starts: Sequence[JobStart]) -> dict[str, int]:
    """By start of the job: files after this checkpoint, or a later one, do not count."""
    bounds, lowest = {}, NEVER
    for start in reversed(starts):
        bounds[start.graph] = lowest
        lowest = min(lowest, start.restored)
    return bounds


def counts(file: RowFile, bounds: Mapping[str, int]) -> bool:
    """Whether no later start went back behind what is in the file."""
    return file.after < bounds.get(file.graph, NEVER)
