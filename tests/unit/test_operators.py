"""What the nine operators compute, worked by hand, and what they read and send."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.testbeds.live.operators.codes import CODES, numbers_out
from include.testbeds.live.operators.manufacturing import (
    availability,
    oee,
    performance,
    production_of,
    quality,
)
from include.testbeds.live.operators.picture import check_number, lines_of, picture_of
from include.testbeds.live.operators.readings import (
    DEFECT,
    PICTURE_BYTES,
    Production,
    Status,
    Temperature,
    decode,
    encode,
)
from include.testbeds.live.operators.settings import Target
from include.workloads.topologies import load_topology

READING = Production(
    machine=7,
    time_ms=1_700_000_010_000,
    produced=18,
    defective=3,
    ideal_ms=500,
    cycle_ms=10_000,
    scheduled_ms=400,
    unscheduled_ms=1_100,
)


@pytest.mark.parametrize(
    ("computed", "by_hand"),
    [
        # Equation 2: 18 pieces that ideally take half a second each, in ten seconds.
        (performance(produced=18, ideal_ms=500, cycle_ms=10_000), 0.9),
        # 3: one hour with six minutes planned and three minutes of failure.
        (availability(3_600_000, 360_000, 180_000), 0.85),
        (quality(produced=120, defective=3), 0.975),  # 4
        (quality(produced=0, defective=0), 1.0),  # nothing bad either
        (oee(availability=0.85, performance=0.9, quality=0.975), 0.745875),  # 5
    ],
)
def test_the_equations_of_the_paper(computed, by_hand):
    assert computed == pytest.approx(by_hand)


@pytest.mark.parametrize("compute", [lambda: performance(1, 1, 0), lambda: availability(0, 0, 0)])
def test_no_time_is_refused_rather_than_divided_by(compute):
    with pytest.raises(ValueError, match="no "):
        compute()


def test_sensor_payloads_have_the_sizes_of_table_1():
    source = load_topology("manufacturing").source
    sizes = [source[name].size_bytes for name in ("S1", "S2", "S3")]
    assert sizes == [95, PICTURE_BYTES, 90]
    status = Status(machine=9999, time_ms=READING.time_ms, status=DEFECT)
    temperature = Temperature(machine=9999, time_ms=READING.time_ms, celsius=-12.25)
    bodies = encode(status, sizes[0]), picture_of(READING), encode(temperature, sizes[2])
    assert [len(body) for body in bodies] == sizes


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"machine": 1}', b"\xff\xd8\xff"])
def test_another_payload_is_refused(body):
    with pytest.raises(ValueError, match="no Status"):
        decode(Status, body)


def test_blank_and_stray_lines_are_no_problem_but_a_missing_line_is():
    lines = lines_of(READING)
    assert production_of("\n\n" + "\n \n".join(lines) + "\n\f") == READING
    with pytest.raises(ValueError, match="8 of 9 lines"):
        production_of("\n".join(lines[1:]))


@given(line=st.integers(0, 7), place=st.integers(0, 12), digit=st.integers(1, 9))
def test_a_digit_read_wrongly_is_noticed(line, place, digit):
    lines = list(lines_of(READING))
    label, _, value = lines[line].partition(" ")
    place %= len(value)
    wrong = str((int(value[place]) + digit) % 10)
    lines[line] = f"{label} {value[:place]}{wrong}{value[place + 1 :]}"
    with pytest.raises(ValueError, match="does not fit"):
        production_of("\n".join(lines))


def test_values_swapped_between_lines_are_noticed():
    assert check_number((1, 2, 3)) != check_number((1, 3, 2))


def test_a_relay_sends_as_many_as_the_edge_says_and_never_in_bunches():
    target = Target("next", items_out=49, items_in=50)
    sent = [numbers_out(number, target) for number in range(100)]
    assert [number for numbers in sent for number in numbers] == list(range(98))
    assert max(map(len, sent)) == 1


@given(items_out=st.integers(1, 12), items_in=st.integers(1, 300), count=st.integers(1, 700))
def test_the_numbers_a_relay_gives_have_no_gap_and_no_double(items_out, items_in, count):
    target = Target("next", items_out, items_in)
    numbers = [out_number for number in range(count) for out_number in numbers_out(number, target)]
    assert numbers == list(range(count * items_out // items_in))


def test_every_operator_of_the_topology_has_code():
    assert set(CODES) == set(load_topology("manufacturing").operator)
