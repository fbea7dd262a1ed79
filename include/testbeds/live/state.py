"""Everything a process must know to look after a run, and the files it is in."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from include.files.whole import write_json
from include.testbeds.base import TestbedConfig
from include.testbeds.live.broker import Broker
from include.testbeds.live.calibration import LiveCalibration
from include.testbeds.live.clock import Clock
from include.testbeds.live.files import HEARTBEAT, ORIGIN, read_json, run_folder
from include.testbeds.live.fleet import LiveFleet, live_fleet
from include.testbeds.live.hosts.provider import HostProvider
from include.testbeds.live.journal import Journal
from include.testbeds.live.operators.wire import now_us
from include.testbeds.live.reading import LiveReading
from include.testbeds.live.services import Services, images
from include.testbeds.live.shared_state import SharedState


@dataclass
class RunState:
    """A live run. What is in the file of the run's folder is true: it is written at every change,
    and before what it announces where that could otherwise be lost.
    """

    config: TestbedConfig
    calibration: LiveCalibration
    hosts: HostProvider
    clock: Clock = field(init=False)
    fleet: LiveFleet = field(default_factory=LiveFleet)
    reading: LiveReading = field(default_factory=LiveReading)

    def __post_init__(self) -> None:
        self.clock = Clock(scale=self.calibration.time_scale)

    @property
    def run(self) -> str:
        """Its id, which everything it holds carries."""
        return self.config.run

    @property
    def folder(self) -> Path:
        return run_folder(self.run)

    @cached_property
    def services(self) -> Services:
        return Services.find()

    @cached_property
    def broker(self) -> Broker:
        """The run's vhost."""
        return Broker(self.services, self.run)

    @cached_property
    def shared(self) -> SharedState:
        """The run's keys."""
        return SharedState(self.services, self.run)

    @cached_property
    def images(self) -> dict[str, Any]:
        return images()

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

    def touch(self) -> None:
        """Somebody looks after the run."""
        if not self.folder.is_dir():
            write_json(self.folder / ORIGIN, self.hosts.origin())
        (self.folder / HEARTBEAT).touch()

    def begin(self, in_s: float) -> None:
        """The run starts in so many seconds of the wall, with what is there now."""
        self.clock.started_us = now_us() + round(in_s * 1e6)
        for host in self.fleet.leased():
            host.ordered_s, host.paid_until_s = 0.0, self.config.btu_s
        for one in self.fleet.instances.values():
            one.started_s = one.ready_s = 0.0

    def to_plain(self) -> dict[str, Any]:
        return {
            "started_us": self.clock.started_us,
            "fleet": self.fleet.to_plain(),
            "reading": self.reading.to_plain(),
        }

    def save(self) -> None:
        write_json(self._file, self.to_plain())

    def load(self) -> bool:
        """Read the file; returns whether there is one, of a run that has begun."""
        plain = read_json(self._file)
        if plain is None or not plain["started_us"]:
            return False
        self.clock.started_us = plain["started_us"]
        self.fleet = live_fleet(plain["fleet"])
        self.reading = LiveReading.from_plain(plain["reading"])
        return True

    @property
    def _file(self) -> Path:
        return self.folder / "state.json"
