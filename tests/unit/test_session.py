"""A session cut into windows: nobody who sums one up takes anything from the controller."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from include.controllers.fixed import Fixed
from include.experiment.run import resolve
from include.experiment.spec import parse_spec
from include.model.errors import ControllerFailed
from include.model.observation import Observation
from include.runs.measurements.store import to_arrow
from include.runs.session import Session

END_S, WINDOW_S = 600, 300


@dataclass
class Recorder:
    """Hands everything on to a controller, and keeps what it was shown."""

    controller: Any
    observations: list[Observation] = field(default_factory=list)

    def __getattr__(self, name):
        return getattr(self.controller, name)

    def decide(self, memory, observation):
        self.observations.append(observation)
        return self.controller.decide(memory, observation)


def a_run(controller, topology, pattern, end_s=END_S):
    raw = {
        "name": "session",
        "topology": topology,
        "controllers": controller,
        "patterns": pattern,
        "btus_min": end_s / 60,
        "duration_min": end_s / 60,
        "seeds": 2,
    }
    (spec,) = parse_spec(raw, source="a test").points()
    return resolve(spec)


def opened(run):
    session = Session.open(run)
    recorder = Recorder(session.loop.controller)
    session.loop = replace(session.loop, controller=recorder)
    return session, recorder.observations


def measured(session, start_s, end_s):
    decided = session.run(start_s, end_s)
    return {**session.loop.testbed.take_measurements(), **decided}


def rows(windows):
    """By table: every row of all windows, as measured; as text, since NaN is never NaN."""
    by_table = {}
    for tables in windows:
        for table, columns in tables.items():
            by_table.setdefault(table, []).extend(to_arrow(table, columns).to_pylist())
    return {table: [str(row) for row in all_of] for table, all_of in by_table.items()}


def arrived(observations):
    """What has arrived at every operator, each time that a window starts."""
    return [
        [operator.arrived_items for operator in observation.operators.values()]
        for observation in observations
        if observation.now_s % WINDOW_S == 0
    ]


def in_windows(run, *, new_process):
    """What a controller sees and what is measured, window by window, each summed up."""
    session, observations = opened(run)
    session.deploy()
    kept = [observations]
    windows = []
    for start_s in range(0, END_S, WINDOW_S):
        windows.append(measured(session, start_s, start_s + WINDOW_S))
        session.summary(windows[-1])
        snapshot = session.snapshot()
        if new_process:
            session, observations = opened(run)
            session.restore(snapshot)
            kept.append(observations)
    return [observation for part in kept for observation in part], rows(windows)


WORLDS = (
    ("kalman-pure", "cell_images", "pyramid"),
    ("fixed", "manufacturing", "stepwise"),
    ("kalman-pure", "tenants_diurnal", "diurnal"),
)


@pytest.mark.parametrize("new_process", [False, True])
@pytest.mark.parametrize(("controller", "topology", "pattern"), WORLDS)
def test_windows_show_what_a_single_one_shows(controller, topology, pattern, new_process):
    run = a_run(controller, topology, pattern)
    session, expected = opened(run)
    session.deploy()
    whole = rows([measured(session, 0, END_S)])
    observations, cut = in_windows(run, new_process=new_process)
    at = [observation.now_s for observation in expected if observation.now_s % WINDOW_S == 0]
    assert at == [0, 300], "the controller looks as a window starts"
    assert all(sum(counts) > 0 for counts in arrived(expected)[1:])
    assert observations == expected
    assert cut == whole


def test_a_summary_says_what_stands_at_the_end():
    session, _ = opened(a_run("fixed", "manufacturing", "stepwise"))
    session.deploy()
    tables = measured(session, 0, WINDOW_S)
    summary = session.summary(tables)
    stands = session.loop.testbed.observe()
    assert summary["hosts"] == len(stands.hosts) > 0
    assert summary["instances"] == len(stands.instances) > 0
    assert sum(sample.arrived_items for sample in stands.operators.values()) > 0, "nobody took them"


@pytest.mark.parametrize("interval_s", [1e12, 1e300])
def test_an_interval_beyond_the_run_is_one_decision_at_its_begin(interval_s):
    controller = {"name": "threshold", "interval_s": interval_s}
    session, observations = opened(a_run(controller, "manufacturing", "stepwise"))
    for start_s in range(0, END_S, WINDOW_S):
        measured(session, start_s, start_s + WINDOW_S)
    assert [observation.now_s for observation in observations] == [0]


@pytest.mark.parametrize("interval_s", [5.1, 15, 17])
def test_a_tick_on_the_end_of_a_window_is_carried_out_once(interval_s):
    """The 200th of every 5.1 s is at 1019.9999999999999 s, where a window ends."""
    controller = {"name": "threshold", "interval_s": interval_s}
    session, observations = opened(a_run(controller, "manufacturing", "stepwise", end_s=1080))
    for start_s in range(0, 1080, 60):
        measured(session, start_s, start_s + 60)
    ticks = [k * interval_s for k in range(1080) if k * interval_s < 1080]
    assert [observation.now_s for observation in observations] == pytest.approx(ticks)


@dataclass(frozen=True)
class Remembered:
    what: Any = 0


@dataclass(frozen=True, kw_only=True)
class Hoards(Fixed):
    """Keeps what no window can hand on."""

    def initial_memory(self):
        return Remembered()

    def decide(self, memory, observation):
        return Remembered(object()), super().decide(memory, observation)[1]


def test_a_memory_that_cannot_be_stored_says_whose_it_is():
    session = Session.open(a_run(f"{__name__}:Hoards", "manufacturing", "stepwise"))
    session.run(0, WINDOW_S)
    whose = f"{__name__}:Hoards: memory cannot be stored .* make it a frozen dataclass"
    with pytest.raises(ControllerFailed, match=whose):
        session.snapshot()
