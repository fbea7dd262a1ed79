"""State of a live run, and the files that keep it between processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from include.files.whole import write_json
from include.testbeds.base import TestbedConfig
from include.testbeds.live.broker import Broker
from include.testbeds.live.calibration import LiveCalibration
from include.testbeds.live.files import HEARTBEAT, ORIGIN, run_folder
from include.testbeds.live.fleet import LiveFleet, LiveHost, LiveInstance
from include.testbeds.live.hosts.provider import HostProvider
from include.testbeds.live.reading import LiveReading
from include.testbeds.live.record import RunRecord
from include.testbeds.live.services import Services, images
from include.testbeds.live.shared_state import SharedState


@dataclass
class RunState(RunRecord[LiveHost, LiveInstance]):
    """A live run. What is in the file of the run's folder is true: it is written at every change,
    and before what it announces where that could otherwise be lost.
    """

    config: TestbedConfig
    calibration: LiveCalibration
    hosts: HostProvider
    fleet: LiveFleet = field(default_factory=LiveFleet)
    reading: LiveReading = field(default_factory=LiveReading)

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

    def touch(self) -> None:
        if not (self.folder / ORIGIN).is_file():
            write_json(self.folder / ORIGIN, self.hosts.origin())
        (self.folder / HEARTBEAT).touch()
