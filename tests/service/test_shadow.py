"""Controllers beside a job in virtual time: what they see, say and remember."""

from __future__ import annotations

import json
import math
import shutil
import signal
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from typer.testing import CliRunner

from include.cli import app
from include.cli.service import stopped_by_signal
from include.controllers import CONTROLLERS
from include.controllers.autoscalers.ds2 import Ds2
from include.controllers.base import Registration
from include.controllers.fixed import Fixed
from include.experiment.prices import price_book
from include.files.whole import csv_rows
from include.model.decision import LeaseHost, MigrateInstance, ProlongLease, ReleaseHost
from include.model.errors import SpecError, StoreError
from include.model.observation import Observation
from include.runs.guard import planned
from include.service.fleet import PaperFleet, PaperHost
from include.service.observe import Terms, graph_of, observation_of, setting_of
from include.service.rates import Totals, added, rates_between
from include.service.record import Recorder
from include.service.shadow import Shadow, ShadowState, asked_controllers, opened
from include.service.shadow_loop import FIRST, OUTAGE, Attention, line_of
from include.service.verdict import state_of
from tests.command_line import refused, said
from tests.service.flink_world import World
from tests.unit.test_locks import held_until_waited_for

TERMS = Terms(price_book("btu60"), 2.0)
FOUR = ("tide", "ds2", "flink-autoscaler", "hpa")


class Beside:
    """A recorder and a shadow of a world, as the service has them."""

    def __init__(self, folder: Path, world: World, names: tuple[str, ...] = FOUR) -> None:
        self.world = world
        self.recorder = Recorder(folder / "recording", "orders", "http://127.0.0.1:1", 15)
        self.recorder.begin(world.now_s)
        self.state = opened(folder, "orders", asked_controllers(names, {}))
        self.shadow = Shadow(folder, self.state, TERMS, every_s=15, most_slots=12)

    def turns(self, count: int) -> list[dict[str, int]]:
        """What each controller wants of map, by turn."""
        wanted = []
        for _ in range(count):
            reading = self.world.after(15)
            with mock.patch("os.fsync"):  # a disk takes longer for it than all else
                advised = self.shadow.turn(reading, self.recorder.keep(reading))
            rows = (row for own in advised.values() for row in own)
            wanted.append({row.controller: row.wanted for row in rows if row.operator == "map"})
        return wanted

    def end(self) -> None:
        self.shadow.close()
        self.recorder.end(self.world.now_s, 0)

    @classmethod
    def after(cls, turns: int, folder: Path, world: World, names: tuple[str, ...] = FOUR) -> Beside:
        """One that has ended after so many turns."""
        beside = cls(folder, world, names)
        beside.turns(turns)
        beside.end()
        return beside


def test_a_setting_is_the_job_and_its_cluster(world: World) -> None:
    now = world.after(60)
    setting = setting_of(now, graph_of(now), TERMS, every_s=15, max_hosts=4)

    assert list(setting.topology.problems()) == []
    assert setting.flavor.vcpus == 2
    operators = setting.topology.operator
    assert operators["map"].service_ms == pytest.approx(5)
    assert operators["map"].cpu_cores == pytest.approx(1 / 3), "three share a slot"
    assert operators["map"].slo_ms == pytest.approx(2000 / 3)
    assert setting.topology.items_per_level() == {"source_events": 1, "map": 1, "sink": 1}


@pytest.mark.parametrize("slots", [1, 4, 16])
def test_a_host_holds_all_that_share_its_slots(world: World, slots: int) -> None:
    now = world.after(60)
    managers = tuple(replace(one, slots=slots) for one in now.task_managers)
    now = replace(now, task_managers=managers)
    setting = setting_of(now, graph_of(now), TERMS, every_s=15, max_hosts=4)

    left = setting.flavor.capacity
    for op in setting.topology.operators * slots:
        assert left.fits(op)
        left = left.less(op)
    assert not any(map(left.fits, setting.topology.operators))


def test_a_source_that_cannot_be_scaled_is_no_operator(world: World) -> None:
    now = world.after(60)
    source = replace(now.operators[0], max_parallelism=1)
    now = replace(now, operators=(source, *now.operators[1:]))
    setting = setting_of(now, graph_of(now), TERMS, every_s=15, max_hosts=4)

    assert setting.topology.operator_names == ("map", "sink")
    assert set(setting.topology.source) == {"source_events"}


def test_an_observation_is_what_the_job_did_since_the_last_one(world: World) -> None:
    world.load = lambda t: 500.0
    before = world.after(60)
    now = world.after(15)
    rates = rates_between(before, now)
    totals = added(Totals(), now, rates)
    setting = setting_of(now, graph_of(now), TERMS, every_s=15, max_hosts=4)
    fleet = PaperFleet()
    fleet.follow(now.instances, setting, 15)
    seen = observation_of(
        now, rates, totals, Totals(), fleet, setting, began_s=now.at_s - 15, since_s=15
    )

    assert seen.now_s == 15
    middle = seen.operators["map"]
    assert middle.completed_items == 15 * 400
    assert middle.busy_share == 1.0
    source = seen.operators["source_events"]
    assert source.waiting_items == 100 * 75
    assert seen.published_in_all == {"load_of_source_events": 6000 + 7500}
    assert len(seen.instances) == 4
    assert len(seen.hosts) == 1
    assert {one.cpu_share for one in seen.serving("map")} == {1.0}

    assert rates
    unread = replace(rates.operators["map"], taken_per_s=None)
    rates = replace(rates, operators={**rates.operators, "map": unread})
    seen = observation_of(
        now, rates, totals, Totals(), fleet, setting, began_s=now.at_s - 15, since_s=15
    )
    assert set(seen.operators) == {"source_events", "sink"}


def test_a_decision_does_on_paper_what_it_does_to_a_cluster(world: World) -> None:
    now = world.after(60)
    setting = setting_of(now, graph_of(now), TERMS, every_s=15, max_hosts=4)
    fleet = PaperFleet()
    fleet.follow({"map": 2}, setting, 0)
    assert list(fleet.hosts) == ["host-1"]
    seen = Observation(
        now_s=15,
        operators={},
        hosts=fleet.hosts_seen(setting, {}),
        instances=fleet.instances_seen({}),
    )

    cluster = planned(seen, setting)
    actions = [
        LeaseHost("task-manager", "new"),
        *(MigrateInstance(instance, "new") for instance in fleet.instances),
        ProlongLease("host-1"),
        ReleaseHost("host-1"),
    ]
    assert [cluster.apply(action) for action in actions] == [""] * 5
    fleet.adopt(cluster)

    assert fleet.hosts == {"host-4": PaperHost(15, 15 + TERMS.prices.btu_s)}
    assert [(one.operator, one.host) for one in fleet.instances.values()] == [
        ("map", "host-4"),
        ("map", "host-4"),
    ]
    assert list(fleet.instances) == ["map-5", "map-6"]


def test_pauses_of_the_job_are_added_up_over_a_kill(tmp_path: Path, world: World) -> None:
    world.restart(7.0)  # before the service: nobody saw what was before
    beside = Beside(tmp_path, world)
    beside.turns(6)
    assert beside.state.totals.job_starts == 0
    world.restart(5.0, map=3)
    beside.turns(6)
    world.restart(30.0)  # a failure: as many subtasks as before
    beside.turns(6)
    beside.end()
    totals = beside.state.totals
    assert (totals.job_starts, totals.job_changes, totals.paused_for_changes_s) == (2, 1, 5.0)

    world.restart(9.0, map=2)  # nobody looks
    world.advance(30)
    again = Beside(tmp_path, world)
    again.turns(6)
    again.end()
    totals = again.state.totals
    assert (totals.job_starts, totals.job_changes, totals.paused_for_changes_s) == (3, 2, 14.0)


def test_each_decides_at_its_own_interval_and_says_why(tmp_path: Path, world: World) -> None:
    world.load = lambda t: 380.0
    beside = Beside(tmp_path, world)
    wanted = beside.turns(20)
    beside.end()

    asked = [sorted(turn) for turn in wanted]
    assert asked[0] == [], "one reading has no rates"
    assert asked[1] == sorted(FOUR)
    every = {name: sum(name in turn for turn in asked) for name in FOUR}
    assert every == {"tide": 19, "ds2": 19, "hpa": 19, "flink-autoscaler": 5}
    assert wanted[-1]["hpa"] == 3, "95 % busy against 80 %"
    rows = csv_rows(tmp_path / "decisions.csv")
    last = [row for row in rows if (row["controller"], row["operator"]) == ("hpa", "map")][-1]
    assert last["because"].startswith("map uses 9")
    assert last["reason"] == "utilisation_high"
    assert float(last["busy_share"]) == pytest.approx(0.95, abs=0.01)
    assert float(last["holds_until_s"]) - float(last["time_s"]) == pytest.approx(15)


def test_task_managers_are_as_many_as_the_slots_of_what_is_wanted_take(
    tmp_path: Path, world: World
) -> None:
    """In a slot is one subtask of each operator: four of `map` take four, whatever others take."""
    world.load = lambda t: 700.0
    world.counts = dict.fromkeys(world.counts, 4)
    beside = Beside.after(60, tmp_path, world, ("hpa", "tide"))
    for name, slots in (("hpa", 4), ("tide", 11)):
        rows = beside.state.controllers[name].advised
        assert max(row.wanted for row in rows) == slots
        assert {row.hosts_wanted for row in rows} == {-(-slots // 2)}


def test_nobody_is_asked_with_a_reading_that_has_gaps(tmp_path: Path, world: World) -> None:
    """Without the backlog of a source its arrivals would count as none, and then twice."""
    beside, asked = Beside(tmp_path, world), []
    beside.turns(4)
    for missing in ("metrics of source: no answer", "checkpoints: no answer"):
        reading = replace(world.after(15), missing=(missing,))
        asked.append(bool(beside.shadow.turn(reading, beside.recorder.keep(reading))))
    beside.end()
    assert asked == [False, True]


def test_what_a_source_does_while_its_metrics_are_missing_is_counted_later(
    tmp_path: Path, world: World
) -> None:
    """Its reader takes in twice what it gives on, 200 records/s; the first reading has a gap."""
    beside, completed = Beside(tmp_path, world), []
    for missing in (
        ("metrics of source_events: broken",),
        (),
        (),
        *[("metrics of map: ?",)] * 2,
        (),
    ):
        now = world.after(15)
        source = replace(now.operators[0], records_in=None if missing else 2 * world.done)
        now = replace(now, operators=(source, *now.operators[1:]), missing=missing)
        beside.shadow.turn(now, beside.recorder.keep(now))
        operators = beside.state.totals.operators
        completed.append(operators["source_events"].completed if operators else 0)
    beside.end()
    assert completed == [0, 0, 3000, 3000, 3000, 12_000]


def test_what_is_advised_after_an_outage_is_not_followed(world: World) -> None:
    attention = Attention(every_s=15)
    followed = []
    before = world.after(60)
    for since_s, asked in ((15, True), (15, True), (3600, False), (15, True), (15, True)):
        now = world.after(since_s)
        attention.read(now, rates_between(before, now), asked=asked)
        followed.append(attention.why_not)
        before = now
    assert followed == [FIRST, "", "", OUTAGE, ""]

    for missing in (1, 4):
        for gap in (*[True] * missing, False):
            now = replace(world.after(15), missing=("metrics of source_events: broken",) * gap)
            attention.read(now, rates_between(before, now), asked=not gap)
            before = now
        followed.append(attention.why_not)
    assert followed[5:] == ["", OUTAGE]


def test_what_is_advised_first_after_a_start_of_the_job_is_not_followed(world: World) -> None:
    """Its rates are of all the time, in which the job was down, and its shares of the rest."""
    attention = Attention(every_s=15)
    followed = []
    for restarts in (False, False, True, False):
        if restarts:
            world.restart(20)
        attention.read(world.after(45), None, asked=True)
        followed.append(attention.why_not)
    assert followed == [FIRST, "", FIRST, ""]


@pytest.mark.parametrize("out_s", [30, 10_800])
def test_what_a_job_does_while_no_service_runs_is_counted(
    tmp_path: Path, world: World, out_s: int
) -> None:
    """Else so much time with the records of a poll would be a load of next to nothing."""
    world.load = lambda t: 300.0
    first = Beside(tmp_path, world)
    before = first.turns(20)[-1]
    first.end()
    done = first.state.totals.operators["map"].completed
    world.advance(out_s)
    again = Beside(tmp_path, world)
    wanted = again.turns(3)
    again.end()

    assert again.state.totals.operators["map"].completed == pytest.approx(done + (out_s + 45) * 300)
    for turn in wanted:
        assert turn["ds2"] == before["ds2"]
        assert turn["tide"] == before["tide"]


@pytest.mark.parametrize("job", ["a" * 32, "b" * 32])
def test_what_a_record_takes_is_the_same_after_a_long_pause(
    tmp_path: Path, world: World, job: str
) -> None:
    """Records are by all the time since a controller looked last, and so is the work on them."""
    beside = Beside(tmp_path, world, ("tide", "ds2"))
    beside.turns(20)
    world.job = job
    world.restart(600)
    wanted = beside.turns(50)
    beside.end()
    assert {turn["ds2"] for turn in wanted if turn} == {2}
    memory = beside.state.controllers["tide"].memory
    assert memory["work_s"]["map"] / memory["done"]["map"] == pytest.approx(0.005, rel=0.02)


def test_a_controller_that_is_new_sees_what_was_done_since_then(
    tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Observation] = []

    def looks(self: Fixed, memory: Any, observation: Observation) -> Any:
        seen.append(observation)
        raise ValueError("seen")

    register_broken(monkeypatch, decide=looks)
    Beside.after(40, tmp_path, world)
    Beside.after(2, tmp_path, world, ("broken",))
    assert seen[0].operators["map"].completed_items == 15 * 100


def test_nobody_is_asked_while_the_job_does_not_run(tmp_path: Path, world: World) -> None:
    beside = Beside(tmp_path, world)
    beside.turns(4)
    world.restart(60)
    assert beside.turns(3) == [{}, {}, {}]
    assert any(beside.turns(6))
    beside.end()


def test_a_killed_shadow_goes_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    """Its state is written whole after every turn: decisions after it are the same."""
    load = lambda t: 250 + 120 * math.sin(t / 300)  # noqa: E731
    whole = Beside(tmp_path / "whole", World(load=load))
    expected = whole.turns(40)
    whole.end()

    first = Beside(tmp_path / "killed", World(load=load))
    before = first.turns(20)
    again = Beside(tmp_path / "killed", first.world)
    after = again.turns(20)
    again.end()
    first.end()

    assert before + after == expected


def register_broken(monkeypatch: pytest.MonkeyPatch, **methods: Any) -> None:
    """A controller that is fixed but for these methods."""
    broken = Registration(type("Broken", (Fixed,), methods))
    monkeypatch.setattr(CONTROLLERS, "_registered", {**CONTROLLERS._registered, "broken": broken})


def test_a_second_signal_ends_a_controller_that_never_answers(
    tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def waits(*_: Any) -> Any:
        signal.raise_signal(signal.SIGTERM)
        assert stop.is_set()
        signal.raise_signal(signal.SIGTERM)

    register_broken(monkeypatch, decide=waits)
    beside = Beside(tmp_path, world, ("broken",))
    ends = signal.SIGINT, signal.SIGTERM
    before = [signal.getsignal(number) for number in ends]
    try:
        stop = stopped_by_signal()
        with pytest.raises(KeyboardInterrupt):
            beside.turns(3)
    finally:
        for number, handler in zip(ends, before, strict=True):
            signal.signal(number, handler)
        beside.end()


def test_one_that_fails_is_told_and_the_others_go_on(
    tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Any:
        raise ZeroDivisionError("no good")

    register_broken(monkeypatch, decide=fails)
    beside = Beside(tmp_path, world, ("broken", "hpa"))
    wanted = beside.turns(3)
    beside.end()

    assert wanted[-2]["broken"] == 2
    assert beside.state.controllers["broken"].advised[0].failed
    because = beside.state.controllers["broken"].advised[0].because
    assert because.startswith("ZeroDivisionError: no good (test_shadow.py:")
    assert "hpa" in wanted[-1]
    line = line_of("broken", beside.state.controllers["broken"].advised)
    assert line.endswith(f"failed ({because})")


def test_a_job_with_another_graph_begins_anew(tmp_path: Path, world: World) -> None:
    beside = Beside(tmp_path, world)
    beside.turns(5)
    graph = beside.state.graph
    beside.state.graph = type(graph)(
        edges=(("a", "b"),), factors=(1.0,), work_ms={"a": 1.0, "b": 1.0}
    )
    beside.turns(1)
    assert beside.state.graph.edges == graph.edges
    assert set(beside.state.controllers) == set(FOUR)
    beside.end()


@pytest.mark.parametrize("restarted", [False, True])
def test_a_source_that_becomes_scalable_is_an_operator(tmp_path: Path, restarted: bool) -> None:
    world = World(source_most=1)
    beside = Beside(tmp_path, world)
    beside.turns(5)
    world.job, world.source_most = "b" * 32, 128
    world.restart(5)
    if restarted:
        beside.end()
        beside = Beside(tmp_path, world)
    beside.turns(8)
    beside.end()

    for one in beside.state.controllers.values():
        assert [row.operator for row in one.advised] == ["source_events", "map", "sink"]
        assert not any(row.failed for row in one.advised), one.advised[0].because


def test_other_processes_are_told_by_their_clock_how_long_advice_holds(
    tmp_path: Path, world: World
) -> None:
    Beside.after(3, tmp_path, world)
    hpa = opened(tmp_path, "orders", asked_controllers(FOUR, {})).controllers["hpa"]
    assert hpa.valid_until_s == pytest.approx(time.time() + 15, abs=60)
    assert hpa.advised[0].holds_until_s == pytest.approx(world.now_s + 15)


def test_a_memory_that_its_controller_cannot_read_is_refused(tmp_path: Path, world: World) -> None:
    beside = Beside(tmp_path, world, ("tide",))
    beside.state.controllers["tide"].memory = "of another version"
    with pytest.raises(StoreError, match="memory of another version of tide; name another folder"):
        beside.turns(5)
    beside.end()


def test_a_controller_that_is_asked_no_more_is_named(tmp_path: Path, world: World) -> None:
    Beside.after(3, tmp_path, world)
    told: list[str] = []
    opened(tmp_path, "orders", asked_controllers(("tide", "ds2", "hpa"), {}), told.append)
    assert told == [f"{tmp_path} asked flink-autoscaler before, and forgets what they remembered"]


@pytest.mark.parametrize("asked", ["report", "verdict"])
def test_a_shadow_without_a_decision_says_what_to_do(
    tmp_path: Path, world: World, asked: str
) -> None:
    Beside.after(1, tmp_path, world)
    assert "no controller has decided" in refused(asked, tmp_path)
    assert not (tmp_path / "locks").exists()
    with pytest.raises(StoreError, match="name the --state of a shadow"):
        state_of(tmp_path / "recording")


@pytest.mark.parametrize(
    ("names", "options", "told"),
    [
        (("tied",), {}, "Did you mean 'tide'"),
        ((), {}, "name at least one"),
        (("hpa",), {"tide.care": 1}, "of one that is named"),
        (("hpa",), {"hpa.target": 1}, "unknown option"),
        (("fixed",), {}, "has to know the peak"),
        (("nowhere:Mine",), {}, "No module named 'nowhere'"),
    ],
)
def test_everything_wrong_with_controllers_is_told(
    names: tuple[str, ...], options: Mapping[str, Any], told: str
) -> None:
    with pytest.raises(SpecError, match=told):
        asked_controllers(names, options)


def test_state_of_something_else_is_refused(tmp_path: Path) -> None:
    ShadowState("orders").save(tmp_path)
    with pytest.raises(SpecError, match="is of 'orders'"):
        opened(tmp_path, "payments", {"hpa": {}})
    (tmp_path / "state.json").write_text(json.dumps({"job": "orders", "version": 2}))
    with pytest.raises(StoreError, match="another version"):
        opened(tmp_path, "orders", {"hpa": {}})


def test_other_options_begin_anew(tmp_path: Path, world: World) -> None:
    Beside.after(4, tmp_path, world)
    again = opened(tmp_path, "orders", asked_controllers(FOUR, {"hpa.target_cpu": 0.5}))

    assert again.controllers["hpa"].memory is None
    assert again.controllers["tide"].memory is not None


def test_options_that_are_lists_are_those_of_before(tmp_path: Path) -> None:
    """JSON has no tuples."""
    asked = {"mine": {"levels": (1.0, 2.0)}}
    state = opened(tmp_path, "orders", asked)
    state.controllers["mine"].memory = "what it learnt"
    state.save(tmp_path)
    again = opened(tmp_path, "orders", asked).controllers["mine"]
    assert (again.memory, again.options) == ("what it learnt", asked["mine"])


@pytest.fixture(scope="module")
def shadowed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three hours beside a job that is scaled and restarted now and then."""
    folder = tmp_path_factory.mktemp("shadow") / "state"
    world = World(load=lambda t: 300 + 200 * math.sin(t * 2 * math.pi / 5400))
    world.counts["map"] = world.most["map"] = 4
    beside = Beside(folder, world, ("ds2", "hpa"))
    for part in range(6):
        beside.turns(60)
        world.restart(20)
        beside.turns(60)
        count = 3 if part % 2 else 4
        world.most["map"] = count
        world.restart(12, map=count)
    beside.state.objective, beside.state.prices = "latency p95 < 2 s", "btu60"
    beside.turns(4)
    beside.end()
    return folder


def test_a_verdict_waits_for_another_one_and_is_what_advise_says_of_the_same_recording(
    shadowed: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with held_until_waited_for(shadowed, "advice in verdict", caplog):
        judged = said("report", shadowed)
    asked = ["advise", str(shadowed / "recording"), "--objective", "latency p95 < 2 s"]
    asked += ["--prices", "btu60", "--controllers", "ds2"]
    advised = said(*asked, "--out", tmp_path / "a")

    def rows(output: str) -> dict[str, str]:
        return {line[:20].strip(): line for line in output.splitlines() if "%" in line}

    verdict, advice = rows(judged), rows(advised)
    for name in ("ds2", "as it was run"):
        assert verdict[name] == advice[name]
    assert "*" in verdict["hpa"], "busy time stands in for CPU"
    assert "*" not in verdict["ds2"]
    assert "ds2: " in judged
    assert "of them to change something" in judged
    assert (shadowed / "verdict" / "published" / "advice.html").is_file()


def test_a_wrong_objective_and_price_book_of_a_verdict_are_told_as_its_own(
    shadowed: Path, tmp_path: Path
) -> None:
    asked = "--objective", "soon", "--prices", "gold", "--out", tmp_path / "out"
    told = refused("verdict", shadowed, *asked)
    assert told.startswith("verdict: 2 problems\n")
    assert "advise:" not in told
    assert "unknown price book 'gold'" in told


def test_a_verdict_without_one_that_fails_ends_with_code_1(
    shadowed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Any:
        raise ValueError("no idea")

    monkeypatch.setattr(Ds2, "decide", fails)
    asked = "verdict", shadowed, "--seeds", "1", "--out", tmp_path / "out"
    done = CliRunner().invoke(app, list(map(str, asked)))
    assert done.exit_code == 1
    assert "\nNot ranked: include.controllers.autoscalers.ds2:Ds2 failed" in done.stdout


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_report_takes_a_day_and_what_was_published_of_it(shadowed: Path) -> None:
    day = "2027-01-15"
    judged = said("report", shadowed / "days" / day)
    published = shadowed / f"verdict-{day}" / "published"
    before = {path.name: path.read_bytes() for path in published.iterdir()}
    assert before["decisions.csv"].count(b",ds2,map,") > 100
    assert b",restarted," in before["events.csv"]
    shutil.rmtree(published)

    again = said("report", published.parent)
    assert again.splitlines()[:4] == judged.splitlines()[:4]
    assert {path.name: path.read_bytes() for path in published.iterdir()} == before
