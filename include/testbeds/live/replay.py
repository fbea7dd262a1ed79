"""The data provider of a run: its plan and its process."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path

from include.files.whole import write_json
from include.model.topology import Topology
from include.testbeds.base import TestbedConfig
from include.testbeds.live.files import REPOSITORY, read_json, run_folder
from include.testbeds.live.processes import DetachedProcess, started_for
from include.testbeds.live.provider.plan import ProviderPlan, Stream
from include.testbeds.live.record import Clock

SELDOM = 50
"""Readings per warning if the topology does not give it: Table 2, 50:1."""


def plan_of(config: TestbedConfig, clock: Clock) -> ProviderPlan:
    """Streams of a run's sources, by a clock that has begun."""
    topology = config.topology
    streams = tuple(
        Stream(
            source=source.name,
            targets=targets_of(topology)[source.name],
            size_bytes=source.size_bytes,
            per_level_s=source.items_per_level / topology.emission_period_s,
            one_in=_one_in(topology, source.name),
            levels=config.levels_of[source.name],
            duration_s=config.duration_s,
        )
        for source in topology.sources
    )
    return ProviderPlan(config.run, clock.started_us, clock.scale, streams)


def targets_of(topology: Topology) -> dict[str, tuple[str, ...]]:
    """The operators that each source feeds."""
    return {
        source.name: tuple(edge.target for edge in topology.edges if edge.origin == source.name)
        for source in topology.sources
    }


def _one_in(topology: Topology, source: str) -> int:
    """Items of a source per item that its operator passes on.

    At least 2, because an incident must end before the next one begins.
    """
    targets = targets_of(topology)[source]
    ratios = (e.items_in / e.items_out for e in topology.edges if e.origin in targets)
    return max(2, round(next(ratios, SELDOM)))


class ReplayProcess:
    """The provider's process, recorded in a file so that other processes find it."""

    def __init__(self, run: str) -> None:
        self._folder = run_folder(run)

    def start(self, plan: ProviderPlan) -> None:
        """Write the plan and start a detached process on it."""
        self._plan.parent.mkdir(parents=True, exist_ok=True)
        self._plan.write_text(plan.to_json(), encoding="utf-8")
        self.go_on()

    def go_on(self) -> None:
        """Start a process that continues where the previous one ended.

        Two would send every item twice, so one that nobody could write down ends first.
        """
        self._end_all()
        command = [sys.executable, "-m", "include.testbeds.live.provider", str(self._plan)]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        log = self._folder / "provider.log"
        started = DetachedProcess.start(
            command, log, cwd=REPOSITORY, env=environment, held_by=self._pid
        )
        write_json(self._pid, asdict(started))

    @property
    def process(self) -> DetachedProcess | None:
        stored = read_json(self._pid)
        return DetachedProcess(**stored) if stored else None

    @property
    def alive(self) -> bool:
        process = self.process
        return process is not None and process.alive

    def end(self) -> None:
        self._plan.unlink(missing_ok=True)
        self._end_all()

    def _end_all(self) -> None:
        for process in (self.process, *(started for _, started in started_for(self._pid))):
            if process:
                process.end()

    @property
    def _plan(self) -> Path:
        return self._folder / "provider.json"

    @property
    def _pid(self) -> Path:
        return self._folder / "provider.pid.json"
