"""The images on a real Docker host: the nine operators end to end, secrets, stop and kill."""

from __future__ import annotations

import json
import time
from pathlib import Path

import docker  # type: ignore[import-untyped]
import pytest

from include.testbeds.live.engine import USER_ID, archive
from include.testbeds.live.operators.picture import picture_of
from include.testbeds.live.operators.readings import DEFECT, Status, Temperature, encode
from include.testbeds.live.operators.settings import Target
from include.testbeds.live.provider.payloads import production
from include.testbeds.live.services import image_of
from include.workloads.topologies import load_topology
from tests.live.unprocessed import unprocessed, unprocessed_of_source
from tests.live.world import crowding, wait_until, world

pytestmark = pytest.mark.live

VALUES_PER_REPORT = 4


@pytest.fixture(scope="module")
def client(docker_host):
    made = docker.DockerClient(docker_host, version="1.41", timeout=120)
    yield made
    made.close()


@pytest.fixture
def start(images, client):
    """Starts an instance as a container; all are removed afterwards."""
    addresses = json.loads(Path(images).read_text())
    started = []

    def build(here, operator, **more):
        image = image_of(addresses, operator)
        if image not in [
            digest for all_of in client.images.list() for digest in all_of.attrs["RepoDigests"]
        ]:
            client.images.pull(image)
        container = client.containers.create(image, mem_limit="300m")
        started.append(container)
        container.put_archive("/run/tidebench", archive(here.settings(operator, **more)))
        container.start()
        return container

    yield build
    for container in started:
        container.remove(force=True)


def events(container):
    return [json.loads(line)["event"] for line in container.logs(stderr=False).splitlines()]


def targets_of(topology, operator):
    items_in = VALUES_PER_REPORT if operator == "O9" else 1
    return [
        Target(edge.target, items_in=items_in) for edge in topology.edges if edge.origin == operator
    ]


def test_the_nine_operators_carry_readings_from_picture_to_report(at, start):
    topology = load_topology("manufacturing")
    readings = [production(number, 1 + number % 3) for number in range(12)]
    with world(*topology.operator) as here:
        for operator in topology.operator:
            if operator != "O8":  # reports stay in its queue, to be looked at
                start(here, operator, targets=targets_of(topology, operator))
        here.publish("O1", "S2", [picture_of(reading) for reading in readings])
        here.publish("O2", "S1", [encode(Status(7, time_ms, DEFECT)) for time_ms in range(3)])
        here.publish("O6", "S3", [encode(Temperature(7, 1, 95.5))])
        done = f"{here.run}:done:O9:O7"
        wait_until(lambda: here.redis.bitcount(done) == len(readings), "every value", 120)
        wait_until(lambda: here.depth("O8") == 5, "three reports and two warnings")
        assert not here.redis.keys(f"{here.run}:rejected:*")
        assert {operator for operator, *_ in unprocessed(here.redis, here.run)} == {"O8"}
        for source, operator, count in (("S2", "O1", 12), ("S1", "O2", 3), ("S3", "O6", 1)):
            here.redis.hset(f"{here.run}:sent:{source}", "highest", count - 1)
            assert unprocessed_of_source(here.redis, here.run, source, operator) == []
        taken = dict(here.take_all("O8"))
        assert set(taken) == {"S1>O2:0", "S3>O6:0", "O9:0", "O9:1", "O9:2"}
        assert all(taken[f"O9:{number}"].startswith(b"%PDF-") for number in range(3))
        lines = [line.decode() for line in here.redis.lrange(f"{here.run}:O9:values", 0, -1)]
        assert effectiveness(lines) == pytest.approx(expected(readings), abs=1e-6)


def effectiveness(lines):
    """OEE by time, of the lines of reports."""
    return {int(time_ms): float(oee) for _, time_ms, oee in map(str.split, lines)}


def expected(readings):
    """Equations 2-5 over the readings, when every machine's come in order."""
    result = {}
    for reading in readings:
        so_far = [
            o for o in readings if o.machine == reading.machine and o.time_ms <= reading.time_ms
        ]
        total = sum(o.cycle_ms for o in so_far)
        down = sum(o.scheduled_ms + o.unscheduled_ms for o in so_far)
        made, bad = sum(o.produced for o in so_far), sum(o.defective for o in so_far)
        performance = reading.produced * reading.ideal_ms / reading.cycle_ms
        result[reading.time_ms] = (total - down) / total * performance * (made - bad) / made
    return result


def test_a_report_made_again_is_the_same(at, start):
    values = [
        json.dumps({"machine": 1, "time_ms": number, "oee": 0.5 + number / 100}).encode()
        for number in range(VALUES_PER_REPORT)
    ]
    with world("O9", "O8") as here:
        start(here, "O9", targets=[Target("O8", items_in=VALUES_PER_REPORT)])
        here.publish("O9", "O7", values)
        wait_until(lambda: here.depth("O8") == 1, "a report")
        here.publish("O9", "O7", values)  # its producer crashed and sent them again
        wait_until(lambda: here.depth("O8") == 2, "the report once more")
        (first, first_body), (second, second_body) = here.take_all("O8")
        assert first == second == "O9:0"
        assert first_body == second_body


def test_a_container_shows_no_secret_and_does_not_run_as_root(at, start):
    with world("work") as here:
        container = start(here, "work")
        wait_until(lambda: "ready" in events(container), "ready")
        container.reload()
        password = here.services.password("amqp", here.run)
        assert password not in json.dumps(container.attrs)
        assert password not in container.logs().decode()
        # Unlimited width: the daemon's ps cuts commands at COLUMNS, where somebody has set it.
        processes = container.top(ps_args="-eww -o pid,uid,args")["Processes"]
        users = {uid for _, uid, command in processes if "include.testbeds.live" in command}
        assert users == {str(USER_ID)}


def test_docker_stop_drains_and_docker_kill_loses_nothing(at, start):
    with world("work", "O8") as here:
        more = {"targets": ["O8"], "service_ms": 20, "prefetch": 20}
        here.publish("work", "S", [b"body"] * 400)
        first, second = (start(here, "work", **more) for _ in range(2))
        start(here, "O8")
        done = f"{here.run}:done:O8:S>work"
        wait_until(lambda: here.redis.bitcount(done) > 50, "work under way")
        first.kill("SIGKILL")
        began_s = time.monotonic()
        second.stop(timeout=10)
        assert time.monotonic() - began_s < 5 * crowding()
        second.reload()
        assert second.attrs["State"]["ExitCode"] == 0
        assert events(second)[-1] == "stopped"
        start(here, "work", **more)
        wait_until(lambda: here.redis.bitcount(done) == 400, "every item at the sink")
        assert unprocessed(here.redis, here.run) == []
