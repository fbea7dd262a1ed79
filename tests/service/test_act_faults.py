"""Whatever happens to Flink, the clock, the disk and the service: no change beyond the limits."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from include.service import journal
from include.service.act import Acting, Service, Wish
from include.service.pause import pause, resume
from tests.service.acting_world import limits_of
from tests.service.flink_that_fails import FailingFlink, Killed

OPERATORS = ("parse", "store", "sink")
COUNTS = st.integers(0, 12)
LAPSES = st.sampled_from([15, 65, 65, 125])
TROUBLES = st.sampled_from(
    ["", "", "", "checkpoint", "missing", "slow", "kill", "before", "after", "late", "slots"]
)


class Faults(RuleBasedStateMachine):
    """A service that steps between faults of every kind; the Flink of the test judges it."""

    def __init__(self) -> None:
        super().__init__()
        self.state = Path(tempfile.mkdtemp(dir="/dev/shm"))
        self.disk_full, self.torn = False, False
        self.fsyncs = mock.patch("os.fsync", self.fsync)
        self.fsyncs.start()
        self.really = True
        self.jobs = 1

    @initialize(per_hour=st.integers(1, 20), at_once=st.integers(1, 6), quiet=st.booleans())
    def begin(self, per_hour: int, at_once: int, quiet: bool) -> None:
        self.limits = limits_of(
            default={"least": 1, "most": 8, "most_at_once": at_once},
            changed_instances_per_hour=per_hour,
            respect_others_s=180,
            wait_after_failure_s=70,
            longest_wait_s=300,
            quiet=[{"begin": "13:00", "end": "13:30"}] if quiet else [],
        )
        self.flink = FailingFlink(self.limits, self.state / journal.FILE)
        self._start()

    def fsync(self, number: int) -> None:
        """A disk that is full, and a kill on either side of a write."""
        if self.disk_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        try:
            self.flink.point()
        except Killed:
            if self.torn:  # half of the line came to the disk
                path = self.state / journal.FILE
                os.truncate(path, path.stat().st_size - 20)
            raise

    def _start(self) -> None:
        acting = Acting(
            job_name="shop",
            controller="c",
            limits=self.limits,
            really=self.really,
            state=self.state,
        )
        self.wish: dict[str, int] = {}
        self.service = Service(acting, self.flink, lambda _: Wish(self.wish), self.flink.now)

    @rule(parse=COUNTS, store=COUNTS, sink=COUNTS)
    def step(self, *counts: int, **wish: int) -> None:
        self.wish = wish or dict(zip(OPERATORS, counts, strict=True))
        try:
            self.service.step()
        except Killed:
            self._start()

    @rule(steps=st.lists(st.tuples(LAPSES, TROUBLES, COUNTS, COUNTS), min_size=2, max_size=10))
    def little_fails_for_a_while(self, steps: list[tuple[int, str, int, int]]) -> None:
        """At most one trouble before each step: enough comes through to reach the limits."""
        flink = self.flink
        for seconds, trouble, parse, store in steps:
            flink.hangs, flink.missing, flink.checkpoint = {}, (), False
            flink.passes(seconds)
            if trouble == "checkpoint":
                flink.checkpoint = True
            elif trouble == "missing":
                flink.missing = ("checkpoints",)
            elif trouble == "kill":
                flink.die_in, self.torn = (parse + store) % 7, bool(parse % 2)
            elif trouble == "slots":
                flink.slots = store % 8 + 1
            elif trouble:
                flink.hangs["ask_for" if trouble != "slow" else "reading"] = trouble
            self.step(parse, store, 1)

    @rule(seconds=st.sampled_from([1, 15, 61, 125, 600, 1200, 3600]))
    def time_passes(self, seconds: int) -> None:
        self.flink.passes(seconds)

    @rule(seconds=st.integers(-100_000, 100_000))
    def clock_jumps(self, seconds: int) -> None:
        self.flink.wall_s += seconds

    @rule(point=st.integers(0, 6), torn=st.booleans())
    def kill_comes(self, point: int, torn: bool) -> None:
        self.flink.die_in, self.torn = point, torn

    @rule(
        method=st.sampled_from(["reading", "requirements", "ask_for"]),
        how=st.sampled_from(["before", "after", "late"]),
    )
    def flink_hangs(self, method: str, how: str) -> None:
        self.flink.hangs[method] = how

    @rule(name=st.sampled_from(OPERATORS), most=st.integers(1, 10), between=st.booleans())
    def others_change_it(self, name: str, most: int, between: bool) -> None:
        if between:
            self.flink.between = lambda: self.flink.others_ask(name, most)
        else:
            self.flink.others_ask(name, most)

    @rule()
    def it_is_deployed_again(self) -> None:
        self.jobs += 1
        self.flink.deploy_again(f"j{self.jobs}")

    @rule(slots=st.integers(1, 8))
    def slots_come_and_go(self, slots: int) -> None:
        self.flink.slots = slots
        self.flink.passes(1)

    @rule(checkpoint=st.booleans(), missing=st.booleans())
    def job_is_not_ready(self, checkpoint: bool, missing: bool) -> None:
        self.flink.checkpoint = checkpoint
        self.flink.missing = ("checkpoints",) if missing else ()

    @rule(full=st.booleans())
    def disk_fills(self, full: bool) -> None:
        self.disk_full = full

    @rule(paused=st.booleans())
    def somebody_pauses(self, paused: bool) -> None:
        if paused:
            pause(self.state, "")
        else:
            resume(self.state)
        self.flink.may_ask = self.really and not paused

    @rule(really=st.booleans())
    def it_is_started_again(self, really: bool) -> None:
        self.really = really
        self.flink.may_ask = really and not (self.state / "paused.json").exists()
        self._start()

    def teardown(self) -> None:
        try:
            if hasattr(self, "flink"):
                self._all_is_well_again()
        finally:
            self.fsyncs.stop()
            shutil.rmtree(self.state)

    def _all_is_well_again(self) -> None:
        """Once all faults are over what is wanted comes through: it does not only hold still."""
        flink = self.flink
        flink.hangs, flink.missing, flink.checkpoint, flink.between = {}, (), False, None
        flink.die_in, self.disk_full, flink.slots = -1, False, 8
        resume(self.state)
        self.really = flink.may_ask = True
        flink.others_ask("parse", 4)
        self._start()
        self.wish = {"parse": 5}
        for _ in range(600):
            flink.passes(60)
            self.service.step()
            if flink.bounds["parse"][1] == 5:
                return
        pytest.fail(f"never came through: {self.service.step()}")


Faults.TestCase.settings = settings(
    max_examples=150,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestFaults = Faults.TestCase
