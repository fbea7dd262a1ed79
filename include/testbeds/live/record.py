"""What every run by the wall clock keeps of itself: its second, its rows, what happened to it."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from include.testbeds.base import TestbedConfig
from include.testbeds.fleet import Fleet
from include.testbeds.live.clock import Clock
from include.testbeds.live.fleet import LeasedHost, OrderedInstance
from include.testbeds.live.journal import Journal
from include.testbeds.live.operators.wire import now_us
from include.testbeds.live.reading import LiveReading

H = TypeVar("H", bound=LeasedHost)
I = TypeVar("I", bound=OrderedInstance)  # noqa: E741


class RunRecord(Generic[H, I]):
    """A run that is known by a folder, whichever process looks after it."""

    config: TestbedConfig
    clock: Clock
    fleet: Fleet[H, I]
    reading: LiveReading

    def save(self) -> None:
        """Write what whoever comes next must know."""
        raise NotImplementedError

    def load(self) -> bool:
        """Read it; returns whether there is any, of a run that has begun."""
        raise NotImplementedError

    def to_plain(self) -> dict[str, Any]:
        """What is in a snapshot of it."""
        raise NotImplementedError

    def begin(self, in_s: float) -> None:
        """The run starts in so many seconds of the wall, with what is there now."""
        self.clock.started_us = now_us() + round(in_s * 1e6)
        for host in self.fleet.leased():
            host.ordered_s, host.paid_until_s = 0.0, self.config.btu_s
        for instance in self.fleet.instances.values():
            instance.started_s = instance.ready_s = 0.0

    @property
    def run(self) -> str:
        """Its id, which everything it holds carries."""
        return self.config.run

    @property
    def folder(self) -> Path:
        """Everything it has to remember; gone once it has given back all."""
        raise NotImplementedError

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

    def event(self, event: str, subject: str, detail: str) -> None:
        """Something has happened to the testbed."""
        self.journal.append("event", [(self.now_s(), event, subject, detail)])
