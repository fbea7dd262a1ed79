"""Controllers that are not in the list of `advise`: of a user's own, and others of the project."""

from __future__ import annotations

import csv
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from include.advise.candidates import policy
from include.advise.margins import (
    KINDS,
    margin_of,
    scaler_kind,
    share_range,
    verdict,
)
from include.advise.request import SUITABLE
from include.cli import app
from tests.advise.synthetic import write_small_recording
from tests.advise.test_margins import error
from tests.command_line import refused, said

OWN = """
from dataclasses import dataclass
from include.controllers.base import Registration
from include.controllers.fixed import Fixed

@dataclass(frozen=True, kw_only=True)
class Own(Fixed):
    instances_each: int = 2
    end_to_end: float = 1.0

class Late(Own):
    def decide(self, memory, observation):
        if observation.now_s > 600:
            raise ValueError("no idea")
        return super().decide(memory, observation)

class Interrupts(Own):
    def decide(self, memory, observation):
        raise KeyboardInterrupt

class Closes(Own):
    def decide(self, memory, observation):
        raise GeneratorExit

class OfOneJob(Own):
    def problems(self):
        return self.setting.topology.operator["O1"] and ()

@dataclass(frozen=True, kw_only=True)
class Paid(Own):
    licence: str

@dataclass(frozen=True, kw_only=True)
class Unmade(Own):
    def __post_init__(self):
        raise KeyboardInterrupt

class Unproblematic(Own):
    def problems(self):
        raise GeneratorExit

KNOWS = Registration(Own, needs_peak=True)
"""
ASKED = "--objective", "90 % within 1 s", "--seeds", "1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One on the path, with the module `of_advised` and a recording."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "of_advised.py").write_text(OWN)
    write_small_recording(folder / "job.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield folder


def test_margins_are_of_backtests_of_the_controller_itself_or_there_are_none() -> None:
    kind = scaler_kind("of_advised:Own", {"end_to_end": 1.0})
    of_cpu = error(0.95, 0.93)
    none = margin_of([of_cpu], "fixed", kind, 2.0)
    assert none.cost == pytest.approx(2 * 0.2)
    assert (none.share, none.backtests) == (1.0, 0)
    assert verdict(0.5, *share_range([0.99], [0.99], none.share)) == "cannot tell"

    own = margin_of([of_cpu, error(0.95, 0.9, under=kind)], "fixed", kind, 2.0)
    assert own.share == pytest.approx(2 * 0.05)
    assert own.backtests == 1
    assert {scaler_kind(name, {}) for name in SUITABLE} < set(KINDS)


def test_one_is_tried_and_told_to_have_no_margins(folder: Path) -> None:
    names = "fixed,of_advised:Own"
    told = said(
        "advise", folder / "job.csv", *ASKED, "--controllers", names, "--out", folder / "out"
    )

    assert "\nNo margins for of_advised:Own: no replay of it was held against a real run" in told
    page = folder / "out/published/advice.html"
    assert "No margins for of_advised:Own: " in page.read_text()
    table = page.with_name("advice_ranking.csv").read_text().splitlines()
    (row,) = (row for row in csv.DictReader(table) if row["policy"] == "of_advised:Own")
    spans = row["holds"], float(row["lowest_share"]), float(row["highest_share"])
    assert spans == ("cannot tell", 0.0, 1.0)
    assert row["to_record"] == "a day under of_advised:Own"


def test_one_that_fails_is_left_out_and_the_others_are_ranked(folder: Path) -> None:
    names = ",".join(f"of_advised:{name}" for name in ("Late", "Interrupts", "Closes", "Own"))
    asked = "advise", folder / "job.csv", *ASKED, "--controllers", names, "--out", folder / "late"
    done = [
        CliRunner().invoke(app, list(map(str, command)))
        for command in (asked, ("report", folder / "late"))
    ]
    assert [one.exit_code for one in done] == [1, 1]
    for why in (
        "Late failed at 660 s: ValueError: no idea", "Interrupts failed: KeyboardInterrupt",
        "Closes failed at 60 s: GeneratorExit",
    ):  # fmt: skip
        assert all(f"\nNot ranked: of_advised:{why}" in one.stdout for one in done)
    page = (folder / "late/published/advice.html").read_text()
    assert "Not ranked: of_advised:Late failed at 660 s" in page
    ranking = (folder / "late/published/advice_ranking.csv").read_text()
    assert "of_advised:Own" in ranking
    assert "Late" not in ranking


def test_no_answer_comes_of_none_that_works_or_of_no_names(folder: Path) -> None:
    asked = "advise", folder / "job.csv", *ASKED, "--out", folder / "none"
    assert "of_advised:Late failed at 660 s" in refused(*asked, "--controllers", "of_advised:Late")
    assert not (folder / "none/published").exists()
    assert "name at least one controller" in refused(*asked, "--controllers", " , ")


def test_one_that_the_job_was_recorded_under_has_the_recording(folder: Path) -> None:
    scaler = "--recorded", "of_advised:Own instances_each=4"
    told = said(
        "advise", folder / "job.csv", *ASKED, *scaler, "--controllers", "fixed",
        "--out", folder / "recorded",
    )  # fmt: skip
    assert "of_advised:Own, as recorded" in told
    assert "No margins" not in told


def test_what_is_wrong_with_them_is_told_at_once_and_before_anything_is_replayed_or_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("include.advise.case.fixed_sizes", None)  # whoever calls it fails
    own = "OfOneJob", "Paid", "KNOWS", "Unmade", "Unproblematic"
    names = ",".join(["hpaa", *(f"of_advised:{name}" for name in own), "fixed"])
    asked = *ASKED, "--controllers", names, "--out", folder / "wrong"
    told = refused("advise", folder / "job.csv", *asked)
    beside = refused("advise", folder / "job.csv", *asked, "--objective", "soon")

    for wrong in (
        "unknown controller 'hpaa'",
        f"OfOneJob: problems failed (KeyError: 'O1'); correct it in {folder}/of_adv",
        "Paid.__init__() missing 1 required keyword-only argument: 'licence'",
        "of_advised:KNOWS has to know the peak, and nobody does",
        "Unmade: __init__ failed (KeyboardInterrupt)",
        "Unproblematic: problems failed (GeneratorExit)",
    ):
        assert wrong in told
        assert wrong in beside
    assert len(told.splitlines()) == 7
    assert "cannot read 'soon'" in beside
    assert len(beside.splitlines()) == 8
    assert not (folder / "wrong").exists()

    backtest = "backtest", folder / "job.csv", "--against", folder / "job.csv", "--objective"
    told = refused(*backtest, "soon", "--controller", "of_advised:OfOneJob")
    assert "cannot read 'soon'" in told
    assert "problems failed (KeyError: 'O1')" in told


def test_what_may_be_ctrl_c_is_not_taken_for_a_failure(folder: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            policy("of_advised:Unmade", {})
    finally:
        signal.signal(signal.SIGINT, before)


def test_one_that_fails_in_a_replay_is_told_with_its_line(folder: Path) -> None:
    recordings = folder / "job.csv", "--against", folder / "job.csv"
    told = refused("backtest", *recordings, "--controller", "of_advised:Late")
    line = 1 + OWN.partition("raise ValueError")[0].count("\n")
    assert told == (
        f"of_advised:Late failed at 660 s: ValueError: no idea ({folder}/of_advised.py:{line})"
    )
