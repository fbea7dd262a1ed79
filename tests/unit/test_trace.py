"""Any recording as the load of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from include.experiment.problems import problems_of
from include.experiment.run import resolve
from include.experiment.spec import RunSpec
from include.model.errors import SpecError
from include.workloads.trace import DAY_S, Trace
from tests.builders import run_spec
from tests.command_line import said
from tests.recorded import REAL


def a_point(seed: int = 1, **options: Any) -> RunSpec:
    return run_spec(pattern="trace", pattern_options=options, seed=seed)


def written(tmp_path: Path, *rows: str, name: str = "load.csv") -> str:
    file = tmp_path / name
    file.write_text("\n".join(rows) + "\n")
    return str(file)


def problem(path: str, seed: int = 1, **options: Any) -> str:
    return "\n".join(problems_of(a_point(seed, path=path, **options)))


def test_a_recording_with_a_mapping_is_a_load(tmp_path: Path) -> None:
    at = "2026-01-01T00:0{}:00Z,{}"
    path = written(tmp_path, "at,n", at.format(0, 120), at.format(1, 60), at.format(3, 0))
    for columns in ("time=at,arrivals=n@per_min", {"time": "at", "rate": "n@per_min"}):
        trace = Trace(path, map=columns, items_per_level_s=2.0, scale=3, speedup=2)
        assert list(trace.problems()) == []
        levels = trace.unfold(3600, seed=1)
        assert levels.starts_s == (0, 30, 90)
        assert levels.levels == (3.0, 1.5, 0.0)


@pytest.mark.parametrize("step_s", [None, 60.0])
def test_a_counter_is_replayed_when_it_grew(step_s: float | None, tmp_path: Path) -> None:
    """Ten a second from 60 to 120 s, and nothing before and after."""
    path = written(tmp_path, "t_s,n", "0,0", "60,0", "120,600", "180,600")
    trace = Trace(path, map="time=t_s,arrivals=n@total", step_s=step_s)
    assert not list(trace.problems())
    levels = trace.unfold(3600, seed=1)
    assert (levels.starts_s, levels.levels) == ((0, 60, 120), (0.0, 10.0, 0.0))


def test_a_counter_that_is_read_seldom_grew_evenly_since(tmp_path: Path) -> None:
    """600 in 45 s, then it begins again, which is a gap, and 300 in 30 s."""
    rows = "0,0", "15,", "30,", "45,600", "60,", "75,10", "90,", "105,310", "120,"
    path = written(tmp_path, "t_s,n", *rows)
    asked = {"map": "time=t_s,arrivals=n@total"}
    levels = Trace(path, gaps="zero", **asked).unfold(3600, seed=1)
    assert levels.starts_s == tuple(range(0, 120, 15))
    assert levels.levels == pytest.approx((600 / 45,) * 3 + (0, 0) + (10, 10) + (0,))
    whole = written(tmp_path, "t_s,n", *rows[:4])
    assert Trace(whole, **asked).unfold(3600, seed=1).levels == pytest.approx((600 / 45,) * 3)


def test_obvious_names_need_no_mapping(tmp_path: Path) -> None:
    values = {"metric": {"__name__": "requests_per_s"}, "values": [[0, "4"], [60, "8"]]}
    answer = {"status": "success", "data": {"resultType": "matrix", "result": [values]}}
    for path in (
        written(tmp_path, "time_s,requests_per_s,latency_ms", "0,4,9", "60,8,9"),
        written(tmp_path, json.dumps(answer, indent=1), name="load.json"),
    ):
        assert Trace(path, items_per_level_s=4).unfold(3600, seed=1).levels == (1, 2)


def test_a_run_takes_its_items_per_level_from_the_topology(tmp_path: Path) -> None:
    path = written(tmp_path, "time_s,requests_per_s", f"0,{16 / 0.48}", f"60,{48 / 0.48}")
    run = resolve(a_point(path=path))
    assert run.levels_of["S1"].levels == pytest.approx((1.0, 3.0))


@pytest.mark.parametrize("head", ["time_s,level", "time_s,requests_per_s"])
@pytest.mark.parametrize(
    ("gaps", "levels"), [("hold", (4, 4, 4, 6)), ("zero", (0, 4, 0, 6)), ("refuse", None)]
)
def test_what_is_absent_is_what_the_user_says(
    head: str, gaps: Any, levels: tuple[float, ...] | None, tmp_path: Path
) -> None:
    trace = Trace(written(tmp_path, head, "0,", "60,4", "120,", "180,6"), gaps=gaps)
    if levels:
        assert trace.unfold(3600, seed=1).levels == levels
        assert "2 of 4 values were absent" in trace.notes()[-1]
    else:
        assert "write gaps: hold" in "".join(trace.problems())


def test_equal_steps_have_gaps_where_rows_are_missing(tmp_path: Path) -> None:
    path = written(tmp_path, "time_s,level", "0,2", "30,4", "60,1", "180,5")
    assert "1 of 4 values" in problem(path, step_s=60)
    levels = Trace(path, step_s=60, gaps="zero").unfold(3600, seed=1)
    assert (levels.starts_s, levels.levels) == ((0, 60, 120, 180), (3, 1, 0, 5))
    assert "nothing for gaps: zero to fill; remove it, or add step_s" in problem(path, gaps="zero")


def test_a_seed_replays_its_day(tmp_path: Path) -> None:
    """The second day begins with what held at midnight; the third is empty."""
    rows = ["0,1", "82800,2", "90000,3", "172800,0", "259200,4"]
    path = written(tmp_path, "time_s,level", *rows)
    trace = Trace(path, days_as_seeds=True, speedup=2)
    days = [trace.unfold(DAY_S, seed) for seed in (1, 2, 4)]
    assert [day.starts_s for day in days] == [(0, 41400), (0, 1800), (0,)]
    assert [day.levels for day in days] == [(1, 2), (2, 3), (4,)]
    assert "nothing arrives on day 3" in problem(path, seed=3, days_as_seeds=True)
    for seed in (0, 5):
        reason = f"has no day {seed}: it has 4; take seeds from 1 to 4"
        assert reason in problem(path, seed=seed, days_as_seeds=True)
        with pytest.raises(SpecError, match="has no day"):
            trace.unfold(DAY_S, seed)
    assert Trace(path).unfold(DAY_S, 1) == Trace(path).unfold(DAY_S, 99)


def test_the_highest_row_of_what_is_replayed_gets_the_highest_level(tmp_path: Path) -> None:
    path = written(tmp_path, "time_s,rate_items_per_s", "0,1", "60,4", "86400,2", "90000,1")
    options = {"highest_level": 8.0, "items_per_level_s": 3.0}
    assert Trace(path, **options).unfold(DAY_S, 1).levels == pytest.approx((2, 8))
    assert Trace(path, **options).unfold(2 * DAY_S, 1).levels == pytest.approx((2, 8, 4, 2))
    second = Trace(path, **options, days_as_seeds=True).unfold(DAY_S, 2)
    assert second.levels == pytest.approx((8, 4))
    assert "highest_level must be above 0, got 0" in problem(path, highest_level=0.0)
    assert "give one of them" in problem(path, highest_level=8.0, scale=2.0)


def test_a_load_is_the_column_that_was_asked_for(tmp_path: Path) -> None:
    rows = ("time_s,level,requests", "0,3,900", "60,4,1200")
    levels = {"step_s": 60.0}, {"map": "time=time_s,rate=level@per_s"}
    for options in levels:
        trace = Trace(written(tmp_path, *rows), **options)
        assert trace.unfold(120.0, 1).levels == pytest.approx((3, 4))


@pytest.mark.parametrize(
    ("rows", "options", "says"),
    [
        (("t,n", "0,1", "9,x"), {"map": "rate=n"}, "line 3: n is no number"),
        (("t,lag", "0,1", "9,2"), {}, "no rate that could be replayed, only lag_items"),
        (("t,rate", "0,1", "9,2"), {"step_s": 0}, "step_s must be a number above 0"),
        (("t,rate", "0,1", "9,2"), {"items_per_level_s": 0}, "items_per_level_s must be above 0"),
        (("t,rate", "0,1", "9,2"), {"items_per_level_s": -1}, "items_per_level_s must be above 0"),
        (("t,rate", "0,1", "9,2"), {"gaps": "fill"}, "gaps: input should be 'refuse', 'hold' or"),
        (("t,rate", "0,0", "9,0"), {}, "nothing would ever arrive"),
        (("time_s,level",), {}, "has no rows"),
        (("time_s,level", "5,1"), {}, "the first row must be at time_s 0"),
        (("time_s,level", "0,"), {}, "line 2: level is empty"),
        (("when,what", "0,1"), {}, "needs the columns time_s and level"),
    ],
)
def test_a_wrong_recording_says_what_to_do(
    rows: tuple[str, ...], options: dict[str, Any], says: str, tmp_path: Path
) -> None:
    reported = problem(written(tmp_path, *rows), **options)
    assert says in reported
    assert reported.startswith("pattern trace")


def test_every_wrong_cell_of_a_trace_is_told_at_once_with_its_line(tmp_path: Path) -> None:
    rows = ["0,abc", "60,-4", "120,nan", "180,inf", "240,1e400", "200,3", "x,1"]
    problems = list(Trace(written(tmp_path, "time_s,level", *rows)).problems())
    where = f"{tmp_path}/load.csv: "
    assert [problem_text.removeprefix(where) for problem_text in problems] == [
        "line 8: time_s is no number ('x'); leave cells empty where nothing was read",
        "line 2: level is no number ('abc'); leave cells empty where nothing was read",
        "line 5, line 6: level is infinite; leave cells empty where nothing was read",
        "line 7: time_s does not come after that of the row before; sort the rows by time",
        "line 3: level is negative",
    ]
    filled = list(Trace(f"{tmp_path}/load.csv", gaps="hold").problems())
    assert len(filled) == 3
    assert all(problem_text.startswith(where) for problem_text in filled)


def test_check_says_what_was_done_to_a_trace(tmp_path: Path) -> None:
    written(tmp_path, "t_min,requests_per_min", "0,60", "1,", "2,90")
    spec = tmp_path / "mine.yaml"
    spec.write_text(
        "{name: mine, controllers: [btu, fixed], duration_min: 10, patterns: "
        "{name: trace, path: load.csv, gaps: hold}}"
    )
    lines = said("check", spec).splitlines()
    assert [line for line in lines if line.startswith("trace:")] == [
        "trace: the time is t_min, taken in min from the beginning",
        "trace: arrivals_per_s is requests_per_min, divided by 60: it is in per_min",
        "trace: arrivals_per_s: 1 of 3 readings are absent",
        "trace: 1 of 3 values were absent: the last level holds, at the beginning the first",
    ]


@pytest.mark.recorded
def test_days_of_real_traces_are_seeds() -> None:
    for file, days in (("nasa_july_1995_days_1_to_14", 14), ("twitter_august_2021_days_1_to_7", 7)):
        path = str(REAL / "traces" / f"{file}.csv")
        for seed in range(1, days + 1):
            assert problem(path, seed=seed, days_as_seeds=True) == ""
            assert len(Trace(path, days_as_seeds=True).unfold(DAY_S, seed).levels) == 1440
        assert f"has no day {days + 1}" in problem(path, seed=days + 1, days_as_seeds=True)


def test_a_device_is_no_recording() -> None:
    """It would be read for ever."""
    assert "a device or a pipe" in problem("/dev/zero")
