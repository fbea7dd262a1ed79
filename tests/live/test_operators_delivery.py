"""Instances on a real broker: killed, stopped and cut off, and nothing lost or counted twice."""

from __future__ import annotations

import signal
import time

import pytest

from include.testbeds.live.operators import wire
from include.testbeds.live.operators.settings import MONITOR
from tests.live.unprocessed import unprocessed
from tests.live.world import SERVICES, crowding, script, wait_until, world

pytestmark = pytest.mark.live

ITEMS = 3000


@pytest.fixture
def here(at):
    with world("work", "O2", "O8") as made:
        yield made


def bodies(count):
    return [f"body {number}".encode() for number in range(count)]


def ids(path, numbers):
    return {f"{path}:{number}" for number in numbers}


def start_topology(here, instances, service_ms=0.5):
    """Source -> work (a relay) -> O8, with several instances of the relay."""
    settings = {"targets": ["O8"], "service_ms": service_ms, "sample_every_items": 0}
    workers = [here.start("work", str(number), **settings) for number in range(instances)]
    here.start("O8")
    return workers


def counted(here, operator, path):
    return here.redis.bitcount(f"{here.run}:done:{operator}:{path}")


def check_nothing_lost(here, items=ITEMS):
    # Its own bitmap says that every item got to the sink, however many came twice.
    wait_until(lambda: counted(here, "O8", "S>work") == items, "every item at the sink")
    assert counted(here, "work", "S") == items
    assert unprocessed(here.redis, here.run) == []
    wait_until(lambda: here.depth("work") + here.depth("O8") == 0, "empty queues")


def half_done(here):
    return counted(here, "O8", "S>work") > ITEMS / 3


@pytest.mark.parametrize("crashes", ["an instance", "rabbit", "redis"])
def test_a_crash_loses_nothing_and_counts_nothing_twice(here, crashes):
    here.publish("work", "S", bodies(ITEMS))
    first, _ = start_topology(here, instances=2)
    wait_until(lambda: half_done(here), "work under way")
    if crashes == "an instance":
        first.kill()
    else:
        script(SERVICES, "crash", crashes)
        time.sleep(1)
        script(SERVICES, "up", crashes)
    check_nothing_lost(here)


def test_an_item_handed_out_again_makes_the_same_item(here):
    here.publish("work", "S", bodies(40))
    settings = {"targets": ["O8"], "service_ms": 20, "sample_every_items": 0}
    first = here.start("work", "1", **settings)
    wait_until(lambda: here.depth("O8") > 5, "work under way")
    first.kill()
    first.wait()
    here.publish("work", "S", bodies(40))  # and each comes once more, from the source
    here.start("work", "2", **settings)
    wait_until(lambda: counted(here, "work", "S") == 40 and here.depth("O8") >= 80, "done")
    sent = here.take_all("O8")
    assert {item_id for item_id, _ in sent} == ids("S>work", range(40))
    assert {(item_id, body) for item_id, body in sent} == {
        (f"S>work:{number}", body) for number, body in enumerate(bodies(40))
    }


def test_a_stopped_instance_finishes_its_item_and_leaves_the_others(here):
    here.publish("work", "S", bodies(20))
    process = here.start("work", targets=["O8"], service_ms=200, prefetch=10)
    wait_until(lambda: here.depth("O8") >= 3, "work under way")
    process.send_signal(signal.SIGTERM)
    began_s = time.monotonic()
    assert process.wait(5 * crowding()) == 0
    assert time.monotonic() - began_s < 2 * crowding()
    sent = [item_id for item_id, _ in here.take_all("O8")]
    left = [item_id for item_id, _ in here.take_all("work")]
    done = len(sent)
    assert set(sent) == ids("S>work", range(done))
    assert set(left) == ids("S", range(done, 20))
    assert len(sent) + len(left) == 20  # nothing twice


def test_an_instance_without_broker_stops_when_asked(here):
    process = here.start("work", amqp_url="amqp://user:unheard@127.0.0.1:1/none")
    wait_until(lambda: here.events("work")[:3] == ["started", "lost", "lost"], "two attempts")
    assert "unheard" not in here.log("work").read_text()
    process.terminate()
    assert process.wait(5 * crowding()) == 0


def test_items_for_a_queue_that_is_not_there_yet_wait(here):
    here.publish("work", "S", bodies(50))
    here.start("work", targets=["late"])
    time.sleep(2)
    assert counted(here, "work", "S") == 0
    with here.channel() as channel:
        channel.queue_declare("late", durable=True)
        channel.queue_bind("late", wire.EXCHANGE, "late")
    wait_until(lambda: counted(here, "work", "S") == 50, "every item on its way")
    assert {item_id for item_id, _ in here.take_all("late")} >= ids("S>work", range(50))


def test_an_item_that_cannot_be_read_is_named_and_stops_nobody(here):
    good = b'{"machine":1,"time_ms":1,"status":"defect"}'
    here.publish("O2", "S1", [good, b"no status", good.replace(b'1,"s', b'2,"s')])
    here.start("O2", targets=["O8"])
    wait_until(lambda: counted(here, "O2", "S1") == 3, "all three")
    (reason,) = here.redis.hgetall(f"{here.run}:rejected:O2").items()
    assert reason[0] == b"S1:1"
    assert b"no Status" in reason[1]
    assert [item_id for item_id, _ in here.take_all("O8")] == ["S1>O2:0"]


def test_every_nth_item_is_reported_with_its_times(here):
    settings = {"sample_every_items": 10, "timestamp_resolution_s": 1}
    here.publish("work", "S", bodies(100))
    here.start("work", "the instance", service_ms=1, **settings)
    wait_until(lambda: here.depth(MONITOR) == 10, "ten records")
    samples = [wire.Sample.from_json(body) for _, body in here.take_all(MONITOR)]
    assert [sample.number for sample in samples] == list(range(1, 101, 10))
    for sample in samples:
        assert (sample.operator, sample.instance) == ("work", "the instance")
        assert sample.emitted_us <= sample.published_us < sample.started_us < sample.done_us
        assert sample.done_us - sample.started_us >= 1000  # its millisecond of work
        cut_off_ms = sample.published_us % wire.US_PER_S / 1000
        exact_ms = (sample.done_us - sample.published_us) / 1000
        assert sample.duration_ms == pytest.approx(exact_ms + cut_off_ms)
