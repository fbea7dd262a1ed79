"""Shared state on a real Redis: the same answer however often an item comes, one effect only."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import redis

from include.testbeds.live.operators.code import Place
from include.testbeds.live.operators.codes import CODES
from include.testbeds.live.operators.ledger import Ledger, Notes
from include.testbeds.live.operators.readings import (
    AVAILABLE,
    DEFECT,
    Component,
    Production,
    Status,
    Temperature,
    decode,
    encode,
)
from include.testbeds.live.operators.settings import Target
from include.testbeds.live.operators.state import State
from include.testbeds.live.operators.wire import Item, ItemId
from tests.live.unprocessed import unprocessed, unprocessed_of_source
from tests.live.world import world

pytestmark = pytest.mark.live


@pytest.fixture
def here(at):
    with world() as made:
        yield made


@pytest.fixture
def client(here):
    with redis.Redis.from_url(here.services.redis_url(here.run)) as made:
        yield made


@pytest.fixture
def operator(here, client):
    """An operator by name: a function from id and payload to what it sends."""

    def build(name, target="next", items_in=1):
        place = Place(
            operator=name,
            targets=(Target(target, 1, items_in),),
            state=State(client, here.run, name),
        )
        process = CODES[name](place)
        return lambda path, number, value: [
            (str(output.id), output.body)
            for output in process(Item(ItemId(path, number), encode(value), 0, 0))
        ]

    return build


def statuses(*flags):
    return [Status(1, time_ms, DEFECT if flag else AVAILABLE) for time_ms, flag in enumerate(flags)]


def test_o2_warns_of_each_new_defect_once(operator):
    o2 = operator("O2")
    warned = [
        bool(o2("S1", number, status))
        for number, status in enumerate(statuses(0, 1, 1, 0, 1, 1, 0, 0))
    ]
    assert warned == [False, True, False, False, True, False, False, False]


def test_o2_keeps_machines_apart(operator):
    o2 = operator("O2")
    assert o2("S1", 0, Status(1, 0, DEFECT))
    assert o2("S1", 1, Status(2, 0, DEFECT))


def test_o2_answers_an_item_that_comes_again_as_before(operator):
    o2 = operator("O2")
    first = [o2("S1", number, status) for number, status in enumerate(statuses(0, 1, 1, 0, 1))]
    again = [o2("S1", number, status) for number, status in enumerate(statuses(0, 1, 1, 0, 1))]
    assert first == again
    # Nor do repetitions change what is known: the incident goes on.
    assert not o2("S1", 5, Status(1, 5, DEFECT))


def test_o2_sees_an_incident_that_two_instances_turn_round(operator):
    o2 = operator("O2")
    defect, available = Status(1, 1, DEFECT), Status(1, 2, AVAILABLE)
    assert not o2("S1", 0, Status(1, 0, AVAILABLE))
    assert not o2("S1", 2, available)
    assert o2("S1", 1, defect)


def test_o6_notifies_above_the_limit_only(operator):
    o6 = operator("O6")
    readings = [Temperature(1, time_ms, celsius) for time_ms, celsius in enumerate((80.0, 80.1))]
    assert [len(o6("S3", number, reading)) for number, reading in enumerate(readings)] == [0, 1]


def production(number, **changes):
    plain = {
        "produced": 10, "defective": 1, "ideal_ms": 500, "cycle_ms": 10_000, "scheduled_ms": 0,
        "unscheduled_ms": 0,
    }  # fmt: skip
    return Production(machine=1, time_ms=number, **(plain | changes))


def value(sent):
    ((_, body),) = sent
    return decode(Component, body).value


def test_o4_counts_from_the_beginning_of_production(operator):
    o4 = operator("O4")
    assert value(o4("S2>O1", 0, production(0))) == 1.0
    # 1 s of 20 s was planned, 3 s were not.
    late = production(1, scheduled_ms=1_000, unscheduled_ms=3_000)
    assert value(o4("S2>O1", 1, late)) == pytest.approx(0.8)


def test_o5_counts_from_the_beginning_and_each_item_once(operator):
    o5 = operator("O5")
    first = o5("S2>O1", 0, production(0, produced=10, defective=1))
    assert value(first) == pytest.approx(0.9)
    assert value(o5("S2>O1", 1, production(1, produced=30, defective=5))) == pytest.approx(0.85)
    assert o5("S2>O1", 0, production(0, produced=10, defective=1)) == first
    assert value(o5("S2>O1", 2, production(2, produced=0, defective=0))) == pytest.approx(0.85)


def components(number, machine=1):
    kinds = {"performance": 0.9, "availability": 0.8, "quality": 0.5}
    return [Component(machine, number, kind, factor) for kind, factor in kinds.items()]


def test_o7_joins_by_machine_and_time_and_sends_one_value(operator):
    o7 = operator("O7")
    sent = [o7(f"S2>O1>{part.kind}", 3, part) for part in components(3)]
    other = [o7("S2>O1>O3", 4, part) for part in components(3, machine=2)[:2]]
    assert [len(outputs) for outputs in sent + other] == [0, 0, 1, 0, 0]
    ((item_id, body),) = sent[2]
    assert item_id == "O7:3"
    assert b'"oee":0.36' in body


def test_o7_sends_again_only_for_the_part_that_completed(operator):
    o7 = operator("O7")
    parts = components(3)
    sent = [o7("S2", 3, part) for part in parts]
    again = [o7("S2", 3, part) for part in parts]
    assert again == sent


def test_o9_makes_a_report_of_every_n_values_whoever_takes_them(here, client):
    state = State(client, here.run, "O9")
    with ThreadPoolExecutor(8) as pool:
        collected = list(
            pool.map(lambda n: state.collect(ItemId("O7", n), f"value {n}", 5), range(43))
        )
    reports = {batch[0]: batch[1] for batch in collected if batch}
    assert sorted(reports) == list(range(8))
    values = [text for lines in reports.values() for text in lines]
    assert len(values) == len(set(values)) == 40
    again = [state.collect(ItemId("O7", n), f"value {n}", 5) for n in range(43)]
    assert again == collected


def test_sums_do_not_depend_on_who_adds_first(here, client):
    state = State(client, here.run, "O4")
    items = [ItemId("S2", number) for number in range(200)] * 2  # each comes twice
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda item: state.add_up(item, 1, (item.number, 1)), items))
    assert state.add_up(ItemId("S2", 200), 1, (0, 0)) == (sum(range(200)), 200)


def test_a_run_cannot_touch_keys_of_another(client):
    with pytest.raises(redis.exceptions.NoPermissionError):
        client.set("other-run:key", 1)
    with pytest.raises(redis.exceptions.NoPermissionError):
        State(client, "other-run", "O4").add_up(ItemId("S2", 0), 1, (1,))
    for command in ("FLUSHALL", "FLUSHDB", "KEYS *"):
        with pytest.raises(redis.exceptions.NoPermissionError):
            client.execute_command(*command.split())


def noted(ledger, path, numbers, outputs=(), busy_us=0):
    notes = Notes()
    for number in numbers:
        notes.add(ItemId(path, number), [(target, ItemId(to, number)) for target, to in outputs])
    return ledger.write(notes, busy_us)


def test_the_ledger_adds_up_for_how_long_each_instance_worked(here, client):
    for number, (instance, busy_us) in enumerate((("O1-1", 5), ("O1-2", 7), ("O1-1", 2))):
        ledger = Ledger(client, here.run, "O1", instance)
        noted(ledger, "S2", [number], [("O3", "S2>O1")], busy_us)
    assert client.hgetall(f"{here.run}:busy:O1") == {b"O1-1": b"7", b"O1-2": b"7"}
    assert client.bitcount(f"{here.run}:done:O1:S2") == 3
    assert client.bitcount(f"{here.run}:emitted:O3:S2>O1") == 3


def test_the_ledger_names_what_was_sent_and_not_processed(here, client):
    noted(
        Ledger(client, here.run, "O1", "O1-1"),
        "S2",
        [0, 1, 2, 9],
        [("O3", "S2>O1"), ("O4", "S2>O1")],
    )
    noted(Ledger(client, here.run, "O3", "O3-1"), "S2>O1", [0, 1, 2, 9])
    noted(Ledger(client, here.run, "O4", "O4-1"), "S2>O1", [1, 2])
    assert unprocessed(client, here.run) == [("O4", "S2>O1", [0, 9])]


@pytest.mark.parametrize("count", [1, 7, 8, 9, 16])
def test_the_ledger_compares_with_what_the_source_has_sent(here, client, count):
    client.hset(f"{here.run}:sent:S2", mapping={"count": count, "highest": count - 1})
    ledger = Ledger(client, here.run, "O1", "O1-1")
    noted(ledger, "S2", range(1, count))
    assert unprocessed_of_source(client, here.run, "S2", "O1") == [0]
    noted(ledger, "S2", [0])
    assert unprocessed_of_source(client, here.run, "S2", "O1") == []


def test_the_ledger_counts_what_comes_again(here, client):
    ledger = Ledger(client, here.run, "O8", "O8-1")
    assert noted(ledger, "O9", range(5)) == 0
    assert noted(ledger, "O9", range(3, 8)) == 2
    assert client.hget(f"{here.run}:repeated", "O8") == b"2"
    assert client.bitcount(f"{here.run}:done:O8:O9") == 8
