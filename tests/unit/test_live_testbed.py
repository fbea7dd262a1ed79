"""The live testbed without a server: what it refuses, remembers and adds up."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from pydantic import TypeAdapter

from include.experiment.params import run_from_params
from include.experiment.run import resolve
from include.experiment.spec import NAMED
from include.model.decision import LeaseHost
from include.model.errors import (
    CapacityExhausted,
    SetupError,
    SpecError,
    TestbedError,
    TestbedNotReady,
)
from include.model.topology import Edge
from include.testbeds.flink.installation import flink_state
from include.testbeds.live import broker, reconciler, record
from include.testbeds.live import testbed as testbeds
from include.testbeds.live.calibration import PARAMETERS
from include.testbeds.live.engine import Container
from include.testbeds.live.files import HEARTBEAT, REPOSITORY, live_state, run_folder
from include.testbeds.live.fleet import LiveFleet, LiveHost, LiveInstance
from include.testbeds.live.hosts.local import hosts
from include.testbeds.live.hosts.local.hosts import leases_of, take_number
from include.testbeds.live.operators.wire import now_us
from include.testbeds.live.processes import DetachedProcess
from include.testbeds.live.reading import LiveReading
from include.testbeds.live.reconciler import LiveReconciler
from include.testbeds.live.record import COLUMNS, Clock, Journal
from include.testbeds.live.services import Services
from include.testbeds.live.shared_state import ItemCounts
from include.testbeds.live.testbed import LiveTestbed
from include.testing.builders import a_topology, an_operator, decision
from tests.builders import a_config
from tests.http_server import sends, serving
from tests.problems import problems_told


def test_every_problem_of_a_topology_is_named():
    operators = (an_operator("my op"), an_operator("chained", runs_in="my op"))
    topology = a_topology(*operators, an_operator("monitor"))
    edges = (Edge(origin="S1", target="my op", items_out=2), *topology.edges[1:])
    calibration = PARAMETERS.load_calibration("default")
    text = "\n".join(problems_told(calibration.complete, replace(topology, edges=edges)))
    parts = ("chained runs in another", "my op cannot name", "operator monitor:", "S1 -> my op")
    assert all(part in text for part in parts)


def test_an_operator_needs_a_service_time():
    with pytest.raises(SpecError, match="O1 has no service_ms"):
        PARAMETERS.load_calibration("default").complete(a_topology("O1"))
    calibration = PARAMETERS.load_calibration("default").complete(
        a_topology(an_operator("O1", service_ms=3.0))
    )
    assert calibration.service_ms == {"O1": 3.0}


@pytest.fixture
def testbed(tmp_path, monkeypatch):
    """Of a run of one operator, without hosts or services."""
    monkeypatch.setenv("TIDEBENCH_LIVE_STATE", str(tmp_path))
    topology = a_topology(an_operator("O1", service_ms=3.0))
    calibration = PARAMETERS.load_calibration("default").model_dump(mode="json")
    config = a_config(topology, calibration=calibration, run="a-run")
    no_hosts = SimpleNamespace(check=lambda *asked: None, origin=dict, leased=list)
    return LiveTestbed(config, hosts=no_hosts)


def test_a_look_at_a_live_run_takes_nothing_from_its_controller(testbed):
    testbed._state.reading = LiveReading(
        time_s=0.0, waiting={"O1": 0}, arrived={"O1": 9}, completed={"O1": 7}
    )
    looked = testbed.look()
    assert looked.operators["O1"].arrived_items == 9
    assert testbed.observe() == looked
    assert testbed.look().operators["O1"].arrived_items == 0


def test_services_that_do_not_answer_hold_up_a_deployment(testbed, monkeypatch):
    """Nothing is leased; whoever asks again may have more luck."""
    values = {"ADDRESS": "127.0.0.1", "AMQP_PORT": "1", "MASTER_SECRET_FILE": os.devnull}
    testbed._state.services = Services(values)
    monkeypatch.setattr(testbeds, "give_back", lambda run, hosts: None)
    monkeypatch.setattr(testbeds, "why_blocked", lambda services: "")
    monkeypatch.setattr(broker, "api", lambda *asked: None)
    with pytest.raises(TestbedNotReady, match="does not answer; start them with `make live-serv"):
        testbed.deploy(decision(LeaseHost("f", "h")))


@pytest.mark.parametrize("content", [b"", b"<html>log in</html>", b"[[]]", b"{}", b"null"])
def test_a_server_that_is_no_broker_is_told_as_one_that_does_not_answer(content):
    """A look at the broker during a run passes over it, and reaping names it. A broker that has
    just started tells a list of nothing."""
    with serving(lambda handler, _: sends(handler, 200, content)) as port:
        api = f"http://127.0.0.1:{port}"
        services = Services({"RABBIT_API": api, "RABBIT_ADMIN": "a", "RABBIT_PASSWORD": "secret"})
        for look in (broker.vhosts, broker.why_blocked):
            with pytest.raises(
                TestbedNotReady, match=r"is not the broker|does not know its (vhosts|nodes) yet"
            ) as told:
                look(services)
            assert "secret" not in str(told.value)


def test_a_source_that_has_sent_nothing_yet_is_told_as_such(testbed):
    """Its first level may be 0 for longer than a window, or the broker may not take its items."""
    counts = ItemCounts(sent={"S1": 0}, received={}, done={}, busy_us={})
    provider = {"as_of_us": str(now_us())}
    testbed._state.shared = SimpleNamespace(provider=lambda: provider, counts=lambda _: counts)
    testbed._state.clock.started_us = now_us() + 1_000_000
    assert testbed.take_measurements() == {}
    testbed._state.clock.started_us = now_us() - 9_500_000
    (detail,) = testbed.take_measurements()["event"]["detail"]
    assert detail == "-100.00 % (0 of 10 items)"


def test_what_cannot_be_looked_for_is_named_and_the_rest_given_back(testbed):
    def leased():
        raise SetupError("no cloud is configured")

    testbed._state.hosts.leased = leased
    plan = run_folder("a-run") / "provider.json"
    plan.parent.mkdir(parents=True)
    plan.touch()
    with pytest.raises(TestbedError, match="hosts: no cloud is configured"):
        testbed.give_back()
    assert not plan.exists()
    assert plan.parent.is_dir(), "for the next attempt"


def test_a_host_that_nobody_knows_how_to_give_back_is_not_forgotten(testbed):
    """A cloud that answers nonsense: the next attempt must find the run."""

    def give_back(host):
        raise KeyError("status")

    testbed._state.hosts.leased = lambda: ["s-1", "s-2"]
    testbed._state.hosts.give_back = give_back
    testbed._state.touch()
    with pytest.raises(TestbedError, match=r"host s-1: KeyError: 'status'\n.*host s-2"):
        testbed.give_back()
    assert run_folder("a-run").is_dir()


def test_a_run_that_orders_hosts_for_long_is_not_taken_for_dead(testbed):
    """Twenty orders to an API that answers late take more than ten minutes."""
    state = testbed._state
    state.touch()
    heartbeat = state.folder / HEARTBEAT
    os.utime(heartbeat, (0, 0))
    state.hosts.lease = lambda flavor: "7"
    testbed.lease(LeaseHost("f", "h"))
    assert heartbeat.stat().st_mtime > 0


class OneHost:
    """The engine of the only host, which has a container of O1-1 and tells what it was told."""

    def __init__(self) -> None:
        self.state = "running"
        self.told: list[str] = []
        self.deaf = 0
        """So many times it does not answer to what it is told."""

    def containers(self, run):
        return {"O1-1": Container("c-1", "O1-1", self.state)} if self.state else {}

    def logged_events(self, container):
        return []

    def launch(self, spec):
        self.told.append(f"launch {spec.name}")
        raise requests.exceptions.ReadTimeout("120 s")

    def remove(self, container):
        self.told.append(f"remove {container}")

    def signal(self, container, name):
        self.told.append(f"{name} {container}")
        if self.deaf:
            self.deaf -= 1
            raise requests.exceptions.ReadTimeout("3 s")


@pytest.fixture
def engine(testbed, monkeypatch):
    """Of host-1, which is up in a run that has begun."""
    told, state = OneHost(), testbed._state
    values = {"ADDRESS": "h", "AMQP_PORT": "1", "REDIS_PORT": "2", "MASTER_SECRET_FILE": os.devnull}
    state.services = Services(values)
    state.images = {"images": {"work": "r/work@1"}, "image_of": {}, "default": "work"}
    monkeypatch.setattr(reconciler, "Engine", lambda endpoint: told)
    state.begin(0)
    host = LiveHost(number=1, id="7", flavor="f", ordered_s=0, paid_until_s=60, endpoint="tcp://h")
    state.fleet.hosts[1] = host
    state.hosts.boot_failed = lambda host: ""
    return told


def reconciled(testbed, times: int = 3, **changes: Any) -> LiveInstance:
    """O1-1 of such values, after a reconciler of its own has looked so many times."""
    values = {"started_s": 0.0, "ready_s": 0.0, "stopped_s": 0.0, "container": "c-1"}
    instance = LiveInstance(number=1, operator="O1", host=1, **(values | changes))
    testbed._state.fleet.instances[1] = instance
    settler = LiveReconciler(testbed._state)
    for _ in range(times):
        settler.reconcile()
    settler.close()
    return instance


def events_of(testbed) -> list[str]:
    return testbed._state.journal.read(0)[0].get("event", {"event": []})["event"]


def test_an_instance_is_told_to_stop_until_its_host_has_heard_it(testbed, engine):
    """Else it would work on, and be killed with an item in its hands."""
    engine.deaf = 1
    reconciled(testbed)
    assert engine.told == ["SIGTERM c-1"] * 2


@pytest.mark.parametrize(("stopped_s", "told"), [(None, []), (0.0, ["SIGTERM c-1"])])
def test_a_container_that_nobody_saved_is_its_instance(testbed, engine, stopped_s, told):
    """Who started it ended before that; started again, it would lose its item and some seconds."""
    instance = reconciled(testbed, container="", ready_s=None, stopped_s=stopped_s)
    assert (instance.container, engine.told) == ("c-1", told)
    assert testbed._state.fleet.hosts[1].images == ["r/work@1"]


def test_a_container_that_starts_too_late_is_removed(testbed, engine):
    """An order may be carried out although its answer did not come in time."""
    engine.state = "created"
    reconciled(testbed, 20, container="", ready_s=None, stopped_s=None, started_s=-1000.0)
    assert engine.told == ["launch a-run.O1-1", "remove a-run.O1-1"]
    assert events_of(testbed)[-1] == "instance_start_failed"
    assert testbed._state.fleet.instances == {}


@pytest.mark.parametrize("overlaps", [False, True])
def test_an_instance_goes_on_where_the_copy_that_replaces_it_is_gone(testbed, engine, overlaps):
    """Stopped with it, there would be none."""
    testbed._state.fleet.hosts[1].releasing = True
    instance = reconciled(testbed, successor=2, overlaps=overlaps)
    assert (instance.serves, engine.told) == (True, [])
    assert not testbed._state.fleet.hosts[1].releasing
    assert events_of(testbed) == ["migration_undone"]


def test_a_host_that_could_not_be_given_back_is_tried_again(testbed, engine, monkeypatch):
    """It is told once, however often it fails; and once it is gone nobody asks any more."""
    monkeypatch.setattr(reconciler, "GIVE_BACK_AGAIN_AFTER_S", 0.0)
    tried = []

    def give_back(host):
        tried.append(host)
        if len(tried) < 3:
            raise TestbedError("it is still there")

    state = testbed._state
    state.hosts.give_back = give_back
    state.fleet.hosts[1].releasing = True
    settler = LiveReconciler(state)
    until_s = time.monotonic() + 10
    while len(tried) < 3 and time.monotonic() < until_s:
        settler.reconcile()
    for _ in range(3):
        time.sleep(0.01)
        settler.reconcile()
    settler.close()
    assert tried == ["7"] * 3
    assert events_of(testbed) == ["host_not_removed"]


def test_a_wait_ends_in_time_however_long_it_takes_to_look_after_the_run(monkeypatch):
    now_s = [0.0]

    def pass_time(length_s):
        now_s[0] += length_s

    def look_after():
        pass_time(0.3)
        return 1.0

    monkeypatch.setattr(record, "now_us", lambda: round(1e6 * (100 + now_s[0])))
    monkeypatch.setattr("time.monotonic_ns", lambda: round(1e9 * now_s[0]))
    monkeypatch.setattr("time.sleep", pass_time)
    Clock(started_us=100_000_000).wait_until(2.0, look_after)
    assert now_s == [pytest.approx(2.0)]


@pytest.mark.parametrize("set_by_s", [-3600.0, 3600.0])
def test_a_run_during_which_the_clock_is_set_ends(monkeypatch, set_by_s):
    """Set back it would wait for an hour; and whatever is done has times that are wrong."""
    wall_s = [100.0]

    def look_after():
        wall_s[0] += set_by_s
        return 0.01

    monkeypatch.setattr(record, "now_us", lambda: round(1e6 * wall_s[0]))
    told = f"was set by {set_by_s:+.1f} s during the run"
    with pytest.raises(TestbedError, match=re.escape(told)):
        Clock(started_us=100_000_000).wait_until(2.0, look_after)


@pytest.mark.parametrize("folder", [live_state, flink_state])
def test_a_state_folder_is_the_same_from_everywhere(tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    for name in ("LIVE", "FLINK"):
        monkeypatch.setenv(f"TIDEBENCH_{name}_STATE", "state")
    assert folder() == tmp_path / "state"


def test_a_journal_hands_over_once_and_mends_what_a_crash_cut(tmp_path):
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    sample = (1.0, "O1", "O1-1", 5.0, 1.0, 5.0, 10)
    journal.append("processing_duration", [sample, sample, (*sample[:-1], 20)])
    journal.append("event", [(1.0, "gap", "m", ""), (1.0, "gap", "m", "")])
    rows, offset = journal.read(0)
    assert list(rows["processing_duration"]) == COLUMNS["processing_duration"].split()[:-1]
    assert len(rows["processing_duration"]["time_s"]) == 2
    assert len(rows["event"]["time_s"]) == 2
    with path.open("ab") as file:
        file.write(b'["event",2.0,"ga')
    journal.append("event", [(3.0, "gap", "m", "")])
    rows, end = journal.read(offset)
    assert rows == {"event": {"time_s": [3.0], "event": ["gap"], "subject": ["m"], "detail": [""]}}
    assert journal.read(end) == ({}, end)


def test_a_fleet_survives_a_file():
    host = LiveHost(number=1, id="7", flavor="f", ordered_s=0.0, paid_until_s=60.0, images=["i"])
    instance = LiveInstance(number=3, operator="O1", host=1, started_s=2.0, successor=4)
    fleet = LiveFleet({1: host}, {3: instance}, 3)
    stored = TypeAdapter(LiveFleet)
    assert stored.validate_json(stored.dump_json(fleet)) == fleet
    assert fleet.instance("O1-3").name == "O1-3"
    fleet.instances[3].stopped_s = 5.0
    assert fleet.instance("O1-3") is None
    assert fleet.on_host(1) == [fleet.instances[3]]


def test_numbers_of_hosts_are_taken_once_and_never_those_of_others(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDEBENCH_LIVE_STATE", str(tmp_path))
    (tmp_path / "hosts" / "2").mkdir(parents=True)  # somebody's own
    assert [take_number("a"), take_number("b"), take_number("a")] == [1, 3, 4]
    assert [lease.id for lease in leases_of("a")] == [1, 4]
    monkeypatch.setattr(hosts, "HIGHEST_ID", 4)
    with pytest.raises(CapacityExhausted, match="live-down"):
        take_number("c")
    assert sorted(path.name for path in (tmp_path / "leases").iterdir()) == [
        "1.json", "3.json", "4.json",
    ]  # fmt: skip


def test_a_process_is_known_by_its_birth_too():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    detached = DetachedProcess.running(process.pid)
    assert detached.alive
    assert not DetachedProcess(process.pid, detached.born + 1).alive
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not detached.alive


def test_a_power_cut_takes_neither_a_lease_nor_the_name_of_an_installation(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDEBENCH_LIVE_STATE", str(tmp_path))
    synced: list[Path] = []
    opened = Path("/proc/self/fd")
    monkeypatch.setattr("os.fsync", lambda file: synced.append((opened / str(file)).resolve()))
    take_number("a-run")
    assert synced[0].parent == synced[-1] == tmp_path / "leases"
    assert leases_of("a-run")


@pytest.mark.parametrize("content", ["", '{"id": 1, "ru', "\xff"])
def test_a_lease_that_a_power_cut_has_damaged_is_named(tmp_path, monkeypatch, content):
    """With a traceback reaping ended on every testbed."""
    monkeypatch.setenv("TIDEBENCH_LIVE_STATE", str(tmp_path))
    path = tmp_path / "leases" / "1.json"
    path.parent.mkdir()
    path.write_text(content, encoding="latin-1")
    with pytest.raises(TestbedError, match=f"^{path} is damaged, .*; remove it"):
        leases_of("a-run")


def test_no_experiment_has_its_folder_where_live_runs_keep_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run that gives back what it held removes its folder there, and all that was in it."""
    monkeypatch.delenv("TIDEBENCH_LIVE_STATE", raising=False)
    assert re.fullmatch(NAMED, live_state().name) is None
    common = (REPOSITORY / "infra" / "live" / "common.sh").read_text()
    assert f"TIDEBENCH_LIVE_STATE:-$repository/var/{live_state().name}}}" in common


@pytest.mark.parametrize(("script", "runs"), [("live", 1), ("openstack", 2)])
def test_what_the_make_targets_ask_of_the_dag_can_be_run(script: str, runs: int) -> None:
    here = REPOSITORY / "infra" / script
    text = (here / "live.sh").read_text().replace("\\\n", " ").replace("$here", str(here))
    commands = re.findall(r"demo\.py (experiment=.*)$", text, re.MULTILINE)
    assert len(commands) == runs
    for command in commands:
        words = (word.partition("=") for word in shlex.split(command))
        conf = {
            name: json.loads(value) if value[0] in "[{0123456789" else value
            for name, _, value in words
        }
        assert resolve(run_from_params(conf)).spec.experiment == conf["experiment"]
