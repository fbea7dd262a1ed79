"""What every run by the wall clock keeps of itself: its second, its rows, what happened to it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar, get_type_hints

from pydantic import TypeAdapter

from include.files.whole import write_json
from include.model.errors import TestbedError
from include.testbeds.base import TestbedConfig
from include.testbeds.fleet import Fleet
from include.testbeds.live.files import read_json
from include.testbeds.live.fleet import LeasedHost, OrderedInstance
from include.testbeds.live.operators.wire import now_us
from include.testbeds.live.reading import LiveReading

COLUMNS = {
    "processing_duration": "time_s operator instance duration_ms wait_ms age_ms number",
    "queue": "time_s operator waiting_items arrived_items completed_items"
    " instances ready_instances",
    "instance_utilisation": "time_s instance operator host cpu_share",
    "host_utilisation": "time_s host cpu_share memory_share instances",
    "scaling_activity": "time_s activity operator instance host",
    "arrival": "time_s source level published_items",
    "event": "time_s event subject detail",
    "rescale": "asked_s down_s up_s gap_s cause reprocessed_items checkpoint_s checkpoint_bytes"
    " instances_before instances_after",
}
"""Columns by table. ``number`` counts the items of an instance and is not stored."""

KEYS = {
    "processing_duration": (2, -1),
    "rescale": (2,),
    **dict.fromkeys(("queue", "instance_utilisation", "host_utilisation", "arrival"), (0, 1)),
}
"""Positions of the key in a table's rows. A row is written twice if its writer was killed before
it could save its state."""


class Journal:
    """Lines of [table, values...], appended and never changed.

    A snapshot has the position up to which rows were stored. If a task is killed, its repetition
    starts from the previous snapshot and also stores the rows that the killed one has written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Write rows; returns when they are on disk."""
        text = "".join(json.dumps([table, *row], separators=(",", ":")) + "\n" for row in rows)
        if not text:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.write(b"\n" + text.encode())  # ends a truncated line
            file.flush()
            os.fsync(file.fileno())

    def read(self, offset: int) -> tuple[dict[str, dict[str, list[Any]]], int]:
        """Columns by table from byte ``offset`` on, without duplicates, and the next offset."""
        if not self._path.is_file():
            return {}, offset
        with self._path.open("rb") as file:
            file.seek(offset)
            content = file.read()
        content = content[: content.rfind(b"\n") + 1]  # the rest of the last line may follow
        rows: dict[str, list[list[Any]]] = {}
        keys: set[tuple[Any, ...]] = set()
        for line in filter(None, content.splitlines()):
            try:
                table, *values = json.loads(line)
            except ValueError:
                continue  # truncated by a crash
            if table in KEYS:
                key = (table, *(values[place] for place in KEYS[table]))
                if key in keys:
                    continue
                keys.add(key)
            rows.setdefault(table, []).append(values)
        columns = {table: _columns(table, kept) for table, kept in rows.items()}
        return columns, offset + len(content)


def _columns(table: str, rows: list[list[Any]]) -> dict[str, list[Any]]:
    return {
        name: [row[i] for row in rows]
        for i, name in enumerate(COLUMNS[table].split())
        if name != "number"
    }


MOST_SET_S = 1.0
"""Wall time by which the clock may be set during a wait."""
BETWEEN_NS = 100_000_000


def _ahead_of_uptime_us() -> int:
    """Of the wall's clock; read once more where something came between."""
    while True:
        before_ns, wall_us = time.monotonic_ns(), now_us()
        if time.monotonic_ns() - before_ns < BETWEEN_NS:
            return wall_us - before_ns // 1000


@dataclass(slots=True)
class Clock:
    """Converts wall time to seconds of the run.

    Second 0 is ``started_us`` (microseconds since 1970; 0: not begun). With ``scale`` 2 an hour
    of the run takes half an hour.
    """

    started_us: int = 0
    scale: float = 1.0

    def now_s(self) -> float:
        """Seconds since the run began; 0 before."""
        return max(0.0, self.at(now_us())) if self.started_us else 0.0

    def at(self, us: int) -> float:
        """Second of the run at a wall time."""
        return (us - self.started_us) / 1e6 * self.scale

    def wait_until(self, t_s: float, meanwhile: Callable[[], float]) -> None:
        """Wait until ``t_s``, calling ``meanwhile``, which returns the seconds to its next call.

        Raises TestbedError if the clock of the machine is set meanwhile, or the machine sleeps.
        """
        ahead_us = _ahead_of_uptime_us()
        while self.at(now_us()) < t_s:
            rest_s = meanwhile()
            left_s = (t_s - self.at(now_us())) / self.scale  # after what took its time, too
            time.sleep(max(0.0, min(rest_s, left_s)))
            set_by_s = (_ahead_of_uptime_us() - ahead_us) / 1e6
            if abs(set_by_s) > MOST_SET_S:
                raise TestbedError(
                    f"the clock of this machine was set by {set_by_s:+.1f} s during the run, or it "
                    "slept, so times of items are wrong; measure again"
                )


H = TypeVar("H", bound=LeasedHost)
I = TypeVar("I", bound=OrderedInstance)  # noqa: E741


NOT_STORED = ("config", "calibration", "hosts")
"""Fields of a record that are given anew to every process."""


class RunRecord(Generic[H, I]):
    """A run that is known by a folder, whichever process looks after it."""

    config: TestbedConfig
    calibration: Any
    fleet: Fleet[H, I]
    reading: LiveReading

    def save(self) -> None:
        """Write what whoever comes next must know."""
        write_json(self._file, self.to_plain())

    def load(self) -> bool:
        """Read it; returns whether there is any, of a run that has begun."""
        plain = read_json(self._file)
        if plain is None:
            return False
        self.clock.started_us = plain.pop("started_us")
        for name, value in plain.items():
            setattr(self, name, self._stored[name].validate_python(value))
        return bool(self.clock.started_us)

    def to_plain(self) -> dict[str, Any]:
        own = {name: kind.dump_python(getattr(self, name)) for name, kind in self._stored.items()}
        return {"started_us": self.clock.started_us, **own}

    @cached_property
    def _stored(self) -> dict[str, TypeAdapter[Any]]:
        kinds = get_type_hints(type(self)).items()
        return {name: TypeAdapter(kind) for name, kind in kinds if name not in NOT_STORED}

    def begin(self, in_s: float) -> None:
        """The run starts in so many seconds of the wall, with what is there now."""
        self.clock.started_us = now_us() + round(in_s * 1e6)
        for host in self.fleet.leased():
            host.ordered_s, host.paid_until_s = 0.0, self.config.btu_s
        for instance in self.fleet.instances.values():
            instance.started_s = instance.ready_s = 0.0

    @cached_property
    def clock(self) -> Clock:
        return Clock(scale=self.calibration.time_scale)

    @property
    def run(self) -> str:
        """Its id, which everything it holds carries."""
        return self.config.run

    @property
    def folder(self) -> Path:
        """Everything it has to remember; gone once it has given back all."""
        raise NotImplementedError

    @property
    def _file(self) -> Path:
        return self.folder / "state.json"

    @cached_property
    def journal(self) -> Journal:
        return Journal(self.folder / "journal.jsonl")

    def now_s(self) -> float:
        """The second of the run, as the wall has it; rows do not need more than microseconds."""
        return round(self.clock.now_s(), 6)

    def second_of(self, us: int) -> float:
        """The second of the run at a time of the wall; 0 for everything before it."""
        return round(max(0.0, self.clock.at(us)), 6) if self.clock.started_us else 0.0

    def log(self, activity: str, operator: str = "", instance: str = "", host: str = "") -> None:
        """A change was carried out; what is deployed before the run is none."""
        if self.clock.started_us:
            row = (self.now_s(), activity, operator, instance, host)
            self.journal.append("scaling_activity", [row])

    def arrivals(self, time_s: float, published: Mapping[str, int]) -> None:
        """Items by source since the reading before, beside the levels that held then."""
        before_s = time_s - self.config.monitor_every_s
        levels_of = self.config.levels_of
        rows = [(time_s, name, levels_of[name].at(before_s), n) for name, n in published.items()]
        self.journal.append("arrival", rows)

    def event(self, event: str, subject: str, detail: str) -> None:
        """Something has happened to the testbed."""
        self.journal.append("event", [(self.now_s(), event, subject, detail)])
