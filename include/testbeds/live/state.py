"""State of a live run, and the files that keep it between processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from include.files.whole import write_json
from include.testbeds.base import TestbedConfig
from include.testbeds.live.broker import Broker
from include.testbeds.live.calibration import LiveCalibration
from include.testbeds.live.files import HEARTBEAT, ORIGIN, read_json, run_folder
from include.testbeds.live.fleet import LiveFleet, live_fleet
from include.testbeds.live.hosts.provider import HostProvider
from include.testbeds.live.journal import Journal
from include.testbeds.live.operators.wire import now_us
from include.testbeds.live.reading import LiveReading
from include.testbeds.live.services import Services, images
from include.testbeds.live.shared_state import SharedState


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
        """Wait until ``t_s``, calling ``meanwhile``, which returns the seconds to its next call."""
        while True:
            left_s = (t_s - self.at(now_us())) / self.scale
            if left_s <= 0:
                return
            self.rest(min(meanwhile(), left_s))

    @staticmethod
    def rest(wall_s: float) -> None:
        time.sleep(wall_s)


@dataclass
class RunState:
    """State of a live run, persisted on every change.

    Intents are written before they are carried out, so that a crash cannot lose a resource.
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
        """Id of the run, on all its resources."""
        return self.config.run

    @property
    def folder(self) -> Path:
        return run_folder(self.run)

    @cached_property
    def services(self) -> Services:
        return Services.find()

    @cached_property
    def broker(self) -> Broker:
        return Broker(self.services, self.run)

    @cached_property
    def shared(self) -> SharedState:
        return SharedState(self.services, self.run)

    @cached_property
    def images(self) -> dict[str, Any]:
        return images()

    @cached_property
    def journal(self) -> Journal:
        return Journal(self.folder / "journal.jsonl")

    def now_s(self) -> float:
        """Second of the run by wall time, rounded to microseconds."""
        return round(self.clock.now_s(), 6)

    def second_of(self, us: int) -> float:
        """Second of the run at a wall time; 0 before second 0."""
        return round(max(0.0, self.clock.at(us)), 6) if self.clock.started_us else 0.0

    def log(self, activity: str, operator: str = "", instance: str = "", host: str = "") -> None:
        """Record a scaling activity, except for the deployment before second 0."""
        if self.clock.started_us:
            row = (self.now_s(), activity, operator, instance, host)
            self.journal.append("scaling_activity", [row])

    def event(self, event: str, subject: str, detail: str) -> None:
        """Record an event of the testbed."""
        self.journal.append("event", [(self.now_s(), event, subject, detail)])

    def touch(self) -> None:
        """Update the heartbeat of the run."""
        if not self.folder.is_dir():
            write_json(self.folder / ORIGIN, self.hosts.origin())
        (self.folder / HEARTBEAT).touch()

    def begin(self, in_s: float) -> None:
        """Set second 0 to ``in_s`` seconds from now, with the present hosts and instances."""
        self.clock.started_us = now_us() + round(in_s * 1e6)
        for host in self.fleet.leased():
            host.ordered_s, host.paid_until_s = 0.0, self.config.btu_s
        for instance in self.fleet.instances.values():
            instance.started_s = instance.ready_s = 0.0

    def to_plain(self) -> dict[str, Any]:
        return {
            "started_us": self.clock.started_us,
            "fleet": self.fleet.to_plain(),
            "reading": self.reading.to_plain(),
        }

    def save(self) -> None:
        write_json(self._file, self.to_plain())

    def load(self) -> bool:
        """Read the file. Returns whether it exists and the run has begun."""
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
