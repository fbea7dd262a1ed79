"""Whatever happens to Flink, the clock, the disk and the service: no change beyond the limits."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import tempfile
from pathlib import Path
from unittest import mock

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from include.service import journal
from include.service.act import Actor, Wish
from include.service.pause import pause, resume
from include.testbeds.flink.rest import NoAnswerError
from tests.service.acting_world import limits_of, mandate
from tests.service.flink_that_fails import FailingFlink, Killed

OPERATORS = ("parse", "store", "sink")
FLINK = ("checkpoint", "missing", "slow", "before", "after", "late")
SERVICE = ("kill", "torn", "disk", "pause", "paused late", "dry run")
WORLD = (
    "slots", "crash", "down", "others", "between", "begins", "fails over", "deployed", "clock",
    "boot",
)  # fmt: skip
LAPSES = st.sampled_from([1, 15, 15, 65, 65, 65, 125, 600])
TROUBLE = st.sampled_from(("",) * 14 + FLINK + SERVICE + WORLD)
STEP = st.tuples(LAPSES, TROUBLE, *[st.integers(0, 12)] * 3)
LIMITS = st.fixed_dictionaries(
    {
        "changed_instances_per_hour": st.sampled_from([2, 8, 40, 200]),
        "between_changes_s": st.sampled_from([0, 60, 200]),
        "quiet": st.sampled_from([(), ({"begin": "12:20", "end": "12:40"},)]),
        "respect_others_s": st.sampled_from([0, 180]),
        "wait_after_failure_s": st.sampled_from([0, 20]),
        "longest_wait_s": st.just(100),
    }
)


class World:
    """A service that steps between troubles; the Flink of the test judges what it asks for."""

    def __init__(self, state: Path, limits, at_once: int) -> None:
        default = {"least": 1, "most": 8, "most_at_once": at_once}
        self.limits = limits_of(default=default, **limits)
        self.state = state
        self.flink = FailingFlink(self.limits, state / journal.FILE)
        self.disk_full, self.torn, self.really, self.jobs = False, False, True, 1
        self.paused_late = False
        self.start()

    def start(self) -> None:
        may = mandate(self.state, job_name="shop", limits=self.limits, really=self.really)
        self.actor = Actor(may, self.flink, now=self.flink.now)
        self.actor.read_journal()

    def fsync(self, number: int) -> None:
        """A disk that is full, and a kill on either side of a write."""
        if self.disk_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        if self.paused_late:
            self.paused_late = False
            self.pause()
            self.flink.may_ask = False
        try:
            self.flink.point()
        except Killed:
            if self.torn:  # half of the line came to the disk
                path = self.state / journal.FILE
                os.truncate(path, path.stat().st_size - 20)
            raise

    def pause(self) -> None:
        """By another process, which comes through."""
        with mock.patch("os.fsync"):
            pause(self.state, "")

    def step(self, seconds: int, trouble: str, *counts: int) -> None:
        flink = self.flink
        flink.hangs, flink.missing, flink.checkpoint = {}, (), False
        self.disk_full, self.paused_late = False, False
        resume(self.state)
        if not self.really:
            self.really = True
            self.start()
        flink.passes(seconds)
        self.bring(trouble, sum(counts))
        wish = Wish(dict(zip(OPERATORS, counts, strict=True)))
        read = flink.now()
        try:
            self.actor.step(flink.reading("shop"), read, wish)
        except NoAnswerError:
            return
        except Killed:
            self.start()

    def bring(self, trouble: str, number: int) -> None:  # noqa: C901  one line each
        flink, name = self.flink, OPERATORS[number % 3]
        match trouble:
            case "checkpoint":
                flink.checkpoint = True
            case "missing":
                flink.missing = ("checkpoints",)
            case "slow":
                flink.hangs["reading"] = "slow"
            case "before" | "after" | "late":
                flink.hangs[("ask_for", "ask_for", "reading", "look")[number % 4]] = trouble
            case "kill" | "torn":
                flink.die_in, self.torn = number % 7, trouble == "torn"
            case "disk":
                self.disk_full = True
            case "pause":
                self.pause()
            case "paused late":
                self.paused_late = True
            case "dry run":
                self.really = False
                self.start()
            case "slots":
                flink.slots = number % 8 + 1
            case "crash":
                flink.crashes = True
            case "down":
                flink.fails_later = True
            case "others":
                flink.others_ask(name, number % 9 + 1)
            case "between":
                flink.between = lambda: flink.others_ask(name, number % 9 + 1)
            case "begins":
                flink.between = flink.begins_checkpoint
            case "fails over":
                flink.between = flink.fails_over
            case "deployed":
                self.jobs += 1
                flink.deploy_again(f"j{self.jobs}")
            case "clock":
                flink.wall_s += (number - 18) * 1000
            case "boot":
                flink.boot, flink.booted_s = f"b{flink.up_s}", flink.up_s
                self.start()
        flink.may_ask = self.really and not (self.state / "paused.json").exists()

    def comes_through_once_all_is_well(self) -> bool:
        """It does not only hold still."""
        flink = self.flink
        flink.die_in, flink.slots, flink.between = -1, 8, None
        flink.crashes, flink.fails_later, flink.down_with = False, False, None
        flink.wall_s += 1e6  # later than ever before: of no entry the age is unknown
        flink.others_ask("parse", 9)  # or more: it is the service that has to come to 5
        for _ in range(400):
            self.step(60, "", 5, 3, 1)
            if flink.bounds["parse"][1] == 5:
                return True
        return False


@settings(
    max_examples=int(os.environ.get("TIDEBENCH_EXAMPLES", "100")),  # 1000 take two minutes
    suppress_health_check=list(HealthCheck),
    database=None,
)
@given(
    steps=st.lists(STEP, min_size=30, max_size=120),
    limits=LIMITS,
    at_once=st.sampled_from([1, 3, 8]),
)
def test_no_change_goes_beyond_the_limits_and_none_is_asked_for_twice(steps, limits, at_once):
    state = Path(tempfile.mkdtemp(dir="/dev/shm"))
    logging.disable(logging.ERROR)
    try:
        world = World(state, limits, at_once)
        with mock.patch("os.fsync", world.fsync):
            for step in steps:
                world.step(*step)
            assert world.comes_through_once_all_is_well()
    finally:
        logging.disable(logging.NOTSET)
        shutil.rmtree(state)
