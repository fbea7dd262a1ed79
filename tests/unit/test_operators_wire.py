"""Items on the broker, the settings of an instance, and when an item may be acknowledged."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pika
import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.testbeds.live.operators import wire
from include.testbeds.live.operators.__main__ import main
from include.testbeds.live.operators.connection import Confirms
from include.testbeds.live.operators.logs import Log
from include.testbeds.live.operators.settings import Settings, Target
from include.testbeds.live.operators.wire import ItemId, Sample


def test_an_item_keeps_its_name_and_times_on_the_way():
    props = wire.properties(ItemId("S1>O2", 17), emitted_us=1_500_000, published_us=2_700_000)
    assert props.delivery_mode == wire.PERSISTENT
    assert props.timestamp == 2  # AMQP has whole seconds
    item = wire.read(props, b"body")
    assert item == wire.Item(ItemId("S1>O2", 17), b"body", 1_500_000, 2_700_000)


def test_derived_items_are_named_by_the_way_they_took():
    assert str(ItemId("S2", 4).through("O1")) == "S2>O1:4"
    assert str(ItemId("S", 4).through("split", 9)) == "S>split:9"


@pytest.mark.parametrize("text", ["", "S1", ":3", "S1:", "S1:-3", "S1:x"])
def test_what_is_no_item_id_is_refused(text):
    with pytest.raises(ValueError, match="no item id"):
        ItemId.parse(text)


@given(path=st.text("S1>:.-", min_size=1), number=st.integers(0))
def test_item_ids_come_back_as_they_were(path, number):
    assert ItemId.parse(str(ItemId(path, number))) == ItemId(path, number)


def test_a_message_without_our_headers_is_refused():
    with pytest.raises(ValueError, match="emitted_us"):
        wire.read(pika.BasicProperties(message_id="S1:1", headers={}), b"")


def test_durations_are_exact_or_counted_from_the_whole_second_before():
    published_us, done_us = 10_900_000, 11_000_250
    assert wire.recorded_ms(published_us, done_us, resolution_s=0) == 100.25
    assert wire.recorded_ms(published_us, done_us, resolution_s=1) == 1000.25


def test_samples_come_back_as_they_were():
    sample = Sample(
        operator="O2", instance="a", number=10, emitted_us=1, published_us=2, started_us=3,
        done_us=4, duration_ms=0.002,
    )  # fmt: skip
    assert Sample.from_json(sample.to_json()) == sample


def test_settings_come_back_as_they_were_and_show_no_secret():
    settings = Settings(
        operator="O2",
        instance="O2-1",
        run="btu-stepwise-s1",
        amqp_url="amqp://user:hidden@10.0.0.1/run",
        redis_url="redis://user:hidden@10.0.0.1/0",
        targets=(Target("O8", 49, 50),),
        prefetch=7,
    )
    assert Settings.from_json(settings.to_json()) == settings
    assert "hidden" not in repr(settings)
    with pytest.raises(ValueError, match="a run may have"):
        replace(settings, run="a*")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "No such file"),
        ("", "Expecting value"),
        ("[]", "TypeError"),
        ('{"targets": 3}', "TypeError"),
        ('{"run": "r"}', "KeyError: 'targets'"),
        ('{"targets": [], "password": "hidden"}', "unexpected keyword argument 'password'"),
        ("[" * 200_000, "RecursionError"),
    ],
)
def test_an_instance_without_settings_ends_with_a_line(tmp_path, text, why):
    path = tmp_path / "settings.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SystemExit, match=why) as ended:
        main(path)
    assert str(path) in str(ended.value)
    assert "\n" not in str(ended.value)
    assert "hidden" not in str(ended.value)


def test_a_log_line_is_one_json_object():
    stream = io.StringIO()
    Log(stream, run="r", operator="O2")("rejected", why="a\nb")
    (line,) = stream.getvalue().splitlines()
    assert json.loads(line)["why"] == "a\nb"


def test_one_confirm_may_stand_for_all_before_it():
    confirms = Confirms[int]()
    for tag in range(1, 6):
        confirms.add(tag, confirms.publish())
    confirms.confirm(4, up_to=True)
    assert list(confirms.take_settled()) == [1, 2, 3, 4]


@given(data=st.data(), outputs=st.lists(st.integers(0, 3), min_size=1, max_size=30))
def test_nothing_is_settled_early_and_everything_is_in_the_end(data, outputs):
    confirms, needs = Confirms[int](), {}
    for tag, count in enumerate(outputs, start=1):
        needs[tag] = [confirms.publish() for _ in range(count)]
        confirms.add(tag, needs[tag][-1] if count else 0)
    confirmed, settled = set(), []
    for number in data.draw(
        st.permutations([publication for some in needs.values() for publication in some])
    ):
        confirms.confirm(number, up_to=False)
        confirmed.add(number)
        settled += confirms.take_settled()
        assert all(set(needs[tag]) <= confirmed for tag in settled)
    assert [*settled, *confirms.take_settled()] == list(needs)
