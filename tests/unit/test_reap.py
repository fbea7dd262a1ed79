"""What goes wrong on one testbed keeps nobody from giving back what is held on the others."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from include.model.errors import TestbedError
from include.testbeds import TESTBEDS
from include.testbeds.reap import HeldResources, reap, silent_s


class FakeReaper:
    """Finds a dead run of three on its testbed and gives it back, or fails at one of the two."""

    def __init__(self, fails_at: str = "") -> None:
        self.fails_at = fails_at
        self.given_back: list[str] = []

    def find(self) -> list[HeldResources]:
        self._fail("find")
        return [
            HeldResources("dead", ("host 1",), math.inf),
            HeldResources("alive", ("it",), 1.0),
            HeldResources("theirs", ("it",), -30.0),
        ]

    def give_back_run(self, run: str) -> None:
        self._fail("give_back_run")
        self.given_back.append(run)

    def _fail(self, step: str) -> None:
        if step == self.fails_at:
            raise TestbedError(f"{step} does not answer")


def registered(monkeypatch: pytest.MonkeyPatch, **reapers: Any) -> None:
    for name, reaper in reapers.items():
        testbed = SimpleNamespace(reaped_by=name, reaper=lambda reaper=reaper: reaper)
        monkeypatch.setitem(TESTBEDS, name, testbed)


@pytest.mark.parametrize("step", ["find", "give_back_run"])
def test_a_testbed_that_fails_is_named_once_the_others_are_given_back(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails, works = FakeReaper(step), FakeReaper()
    registered(monkeypatch, fails=fails, works=works)
    said: list[str] = []
    with pytest.raises(TestbedError, match=f"^fails: {step} does not answer$"):
        reap(remove=True, testbeds=["fails", "works"], say=said.append)
    assert (fails.given_back, works.given_back) == ([], ["dead"])
    assert said[-4:] == [
        "works: dead: dead, nobody has ever looked after it: host 1",
        "works: dead: given back",
        "works: alive: alive, nobody has looked after it for 1 s: it",
        "works: theirs: alive, of another installation, and due to end in 30 s: it",
    ]


def test_without_being_asked_to_nothing_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    only_told = FakeReaper("give_back_run")
    registered(monkeypatch, works=only_told)
    assert reap(remove=False, testbeds=["works"], say=lambda line: None) == 1


def test_that_nothing_is_held_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    registered(monkeypatch, nobody=SimpleNamespace(find=list))
    said: list[str] = []
    assert reap(remove=True, testbeds=["nobody"], say=said.append) == 0
    assert said == ["nobody: no run holds anything"]


@pytest.mark.parametrize(
    ("later", "told"),
    [
        ([HeldResources("dead", ("host 1",), 2.0)], "alive again, and left alone"),
        ([], "given back meanwhile"),
    ],
)
def test_a_run_that_somebody_took_up_again_while_others_were_given_back_stays(
    later: list[HeldResources], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reaper, finds = FakeReaper(), iter([FakeReaper().find(), later])
    monkeypatch.setattr(reaper, "find", lambda: next(finds))
    registered(monkeypatch, works=reaper)
    said: list[str] = []
    assert reap(remove=True, testbeds=["works"], say=said.append) == 1
    assert reaper.given_back == []
    assert f"works: dead: {told}" in said


def test_a_testbed_that_answers_nonsense_keeps_nobody_from_giving_back_on_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def find() -> list[HeldResources]:
        raise KeyError("servers")

    works = FakeReaper()
    registered(monkeypatch, odd=SimpleNamespace(find=find), works=works)
    with pytest.raises(TestbedError, match=r"^odd: KeyError: 'servers'$"):
        reap(remove=True, testbeds=["odd", "works"], say=lambda line: None)
    assert works.given_back == ["dead"]


def test_after_the_clock_was_set_back_a_run_is_silent_for_no_time(tmp_path: Path) -> None:
    """It was told as one of another installation, and `make live-down` left it."""
    heartbeat = tmp_path / "heartbeat"
    assert silent_s(heartbeat) == math.inf
    heartbeat.touch()
    os.utime(heartbeat, (time.time() + 3600,) * 2)
    assert HeldResources("r", ("it",), silent_s(heartbeat)).dead(after_s=0)
