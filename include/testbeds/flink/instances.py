"""What the instances say of themselves: where they run, since when, and what they have done.

Every subtask writes a line of numbers, at most 20 times a second (`Counts.java`), in a file whose
name says of which start of the job it is, which subtask of how many, after which checkpoint, since
when, and on which host. Counters are state of the job: they survive a restart, and go back by what
it undoes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

LAG_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
"""Upper bounds of the bins of timer lags; the last bin has none (`Work.java`)."""


@dataclass(frozen=True, slots=True)
class Subtask:
    """One instance in one start of the job; ``number`` is its place among ``of``."""

    operator: str
    number: int
    of: int
    host: str
    begun_us: int
    path: Path


@dataclass(frozen=True, slots=True)
class JobStart:
    """The job, started with ``restored`` (0: nothing) as the checkpoint that it went on from."""

    graph: str
    restored: int
    begun_us: int
    subtasks: tuple[Subtask, ...]

    @property
    def up_us(self) -> int:
        """When the last of its subtasks opened."""
        return max(each.begun_us for each in self.subtasks)

    def parallelism(self) -> dict[str, int]:
        """Subtasks of each operator, whether all of them have opened or not."""
        return {each.operator: each.of for each in self.subtasks}

    def complete(self, operators: Iterable[str]) -> bool:
        """Whether all subtasks of all operators have opened."""
        there: dict[str, int] = dict.fromkeys(operators, 0)
        for each in self.subtasks:
            there[each.operator] += 1
        of = self.parallelism()
        return all(count and count == of[name] for name, count in there.items())


@dataclass(frozen=True, slots=True)
class Counted:
    """What a subtask wrote last, at ``us``. Counts are of the whole run so far, of its share."""

    us: int
    closed: bool
    received: int
    done: int
    busy_us: int
    waiting: int
    oldest_us: int
    lags: tuple[int, ...]
    sent: tuple[int, ...]


@dataclass(slots=True)
class Starts:
    """All starts of a run's job, oldest first; names are read once."""

    folder: Path
    operators: tuple[str, ...]
    _known: dict[Path, tuple[str, int, Subtask]] = field(default_factory=dict)

    def look(self) -> list[JobStart]:
        """Those that have a subtask that opened."""
        for operator in self.operators:
            for path in _files(self.folder / "counts" / operator):
                if path not in self._known:
                    graph, number, of, restored, begun_us, host = path.name.split(".", 5)
                    subtask = Subtask(operator, int(number), int(of), host, int(begun_us), path)
                    self._known[path] = (graph, int(restored), subtask)
        starts: dict[tuple[str, int], list[Subtask]] = {}
        for name, checkpoint, subtask in self._known.values():
            starts.setdefault((name, checkpoint), []).append(subtask)
        every = [
            JobStart(name, checkpoint, min(each.begun_us for each in subtasks), tuple(subtasks))
            for (name, checkpoint), subtasks in starts.items()
        ]
        return sorted(every, key=lambda start: start.begun_us)


def newest_whole(starts: Sequence[JobStart], operators: Iterable[str]) -> JobStart:
    """The newest start all of whose subtasks have opened; while there is none, the newest.

    While the job starts, those that have opened have the counters of all: what is missing would
    look as if it had never been received, and so as if all that was ever sent to it still waited.
    """
    names = tuple(operators)
    return next((each for each in reversed(starts) if each.complete(names)), starts[-1])


def _files(folder: Path) -> Iterator[Path]:
    return folder.iterdir() if folder.is_dir() else iter(())


def counted(subtask: Subtask) -> Counted | None:
    """The line of a subtask; None where it is not there whole."""
    numbers = whole_line(subtask.path)
    if numbers is None:
        return None
    us, closed, received, done, busy_us, waiting, oldest_us, *rest = numbers
    lags, sent = rest[: len(LAG_MS) + 1], rest[len(LAG_MS) + 1 :]
    return Counted(
        us, bool(closed), received, done, busy_us, waiting, oldest_us, tuple(lags), tuple(sent)
    )


def whole_line(path: Path) -> list[int] | None:
    """The numbers between the time of writing and its repetition, the time first."""
    for _ in range(2):
        try:
            numbers = [int(part) for part in path.read_bytes().split(b",")]
        except (OSError, ValueError):
            continue
        if len(numbers) > 1 and numbers[0] == numbers[-1]:
            return numbers[:-1]
    return None
