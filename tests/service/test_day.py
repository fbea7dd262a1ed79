"""A day of a shadow on its own, and the form of the DAG that publishes it."""

from __future__ import annotations

import csv
import math
from datetime import date
from pathlib import Path

import pytest

from include.advise.form import day_from_params, parse_day, shadow_params
from include.files.whole import csv_rows
from include.model.errors import SpecError, StoreError
from include.service.verdict import cut_day, decision_counts, request_of
from include.workloads.recordings import read_recording
from tests.problems import problems_told
from tests.service.flink_world import World
from tests.service.test_shadow import Beside
from tests.unit.test_locks import held_until_waited_for

MIDNIGHT_S = 1_800_057_600.0  # 2027-01-16


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Half an hour before midnight, and as long after it."""
    world = World(load=lambda t: 300 + 100 * math.sin(t / 900), now_s=MIDNIGHT_S - 1800)
    Beside.after(240, tmp_path / "shadow", world, ("hpa", "btu-preprint"))
    return tmp_path / "shadow"


def test_a_day_has_the_rows_of_that_day_and_advise_takes_it(state: Path) -> None:
    first, second = (cut_day(state, date(2027, 1, day)) for day in (15, 16))

    reads = [read_recording(str(day)) for day in (first, second)]
    assert [read.name for read in reads] == ["2027-01-15", "2027-01-16"]
    assert sum(read.times_s.size for read in reads) == 240
    assert reads[1].began_at == MIDNIGHT_S
    assert reads[1].instances_per_host == 2
    assert max(float(row["time_s"]) for row in csv_rows(first / "decisions.csv")) < MIDNIGHT_S
    counts = [decision_counts(day / "decisions.csv")["hpa"][0] for day in (first, second)]
    assert counts == [118, 121], "the first turn has no rates, and the job ran for too short"


def test_a_day_is_cut_again_whole_after_who_is_at_it(
    state: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with held_until_waited_for(state, "cut of 2027-01-15", caplog):
        day = cut_day(state, date(2027, 1, 15))
    (day / "job.csv").write_text("torn")
    (day / "left over").touch()
    assert read_recording(str(cut_day(state, date(2027, 1, 15)))).times_s.size > 100
    assert not (day / "left over").exists()


def test_a_torn_row_is_in_no_day(state: Path) -> None:
    """It is being written, or was when the process was killed."""
    for path in (*(state / "recording").glob("*.csv"), state / "decisions.csv"):
        with path.open("a") as file:
            file.write(f"{MIDNIGHT_S + 1900},a")
    day = cut_day(state, date(2027, 1, 16))
    assert read_recording(str(day)).times_s.size == 121
    for path in day.glob("*.csv"):
        with path.open(newline="") as file:
            assert len({len(row) for row in csv.reader(file)}) == 1


def test_a_day_without_readings_is_told(state: Path, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="nothing was recorded on 2020-01-01"):
        cut_day(state, date(2020, 1, 1))
    assert not (state / "days").exists()
    with pytest.raises(StoreError, match="has no shadow"):
        cut_day(tmp_path / "nowhere", date(2020, 1, 1))
    with pytest.raises(SpecError, match="write a day such as"):
        parse_day("yesterday")


def test_controllers_that_cannot_be_replayed_are_left_out(state: Path) -> None:
    *_, asked = day_from_params({}, date(2027, 1, 16))
    request = request_of(state, state / "recording", asked)
    assert request.controllers == ("hpa",)
    assert request.options == {"hpa": {}}


def test_the_form_as_it_opens_asks_about_the_day_before() -> None:
    values = {name: field["default"] for name, field in shadow_params().items()}
    assert day_from_params(values, date(2027, 1, 16))[:2] == ("shadow", date(2027, 1, 15))
    asked = day_from_params({"day": "2026-01-31"}, date(2027, 1, 16))
    assert asked[1] == date(2026, 1, 31)


def test_everything_wrong_with_the_form_is_told_at_once() -> None:
    params = {"shadow": "../etc", "day": "soon", "days": 1}
    assert len(problems_told(day_from_params, params, date(2027, 1, 16))) == 3
