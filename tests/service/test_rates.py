"""Counters as rates, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from include.service.rates import Totals, added, rates_between, waiting_in_flink
from include.service.reading import JobReading
from tests.service.flink_world import World


def test_rates_are_what_was_done(world: World) -> None:
    before = world.after(30)
    rates = rates_between(before, world.after(10))

    assert rates.rate_per_s == rates.arrivals_per_s == pytest.approx(100)
    assert rates.lag_records == 0
    assert rates.operators["map"].in_per_s == pytest.approx(100)
    assert rates.operators["map"].busy_share == pytest.approx(100 * 0.005 / 2)
    assert rates.operators["map"].work_s == pytest.approx(0.005)
    assert rates.busy_share == pytest.approx(0.25)
    assert rates.latency_s == pytest.approx(0.006)


def test_what_waits_outside_is_arrivals_and_latency(world: World) -> None:
    world.load = lambda t: 500.0
    before = world.after(30)
    rates = rates_between(before, world.after(10))

    assert rates.rate_per_s == pytest.approx(400)  # what two instances can do
    assert rates.arrivals_per_s == pytest.approx(500)
    assert rates.lag_records == pytest.approx(100 * 40)
    assert rates.latency_s == pytest.approx(4000 / 400 + 0.006)
    assert rates.busy_share == 1.0


def test_without_pending_records_nobody_knows_what_arrives(world: World) -> None:
    before = world.after(30)
    now = world.after(10)
    hidden = replace(now.operators[0], pending_records=None)
    rates = rates_between(before, replace(now, operators=(hidden, *now.operators[1:])))

    assert rates.rate_per_s == pytest.approx(100)
    assert rates.arrivals_per_s is None
    assert rates.lag_records is None


@pytest.mark.parametrize(
    ("before_in", "now_in", "taken"), [(None, None, 100), (6000, 8000, 200), (6000, None, None),
    (None, 8000, None)],
)  # fmt: skip
def test_what_a_source_takes_in_is_what_it_gives_on_only_where_it_never_counts(
    world: World, before_in: float | None, now_in: float | None, taken: float | None
) -> None:
    before, now = world.after(30), world.after(10)
    before, now = (
        replace(of, operators=(replace(of.operators[0], records_in=count), *of.operators[1:]))
        for of, count in ((before, before_in), (now, now_in))
    )
    rates = rates_between(before, now)
    assert rates.rate_per_s == rates.operators["source_events"].taken_per_s
    assert rates.rate_per_s == (None if taken is None else pytest.approx(taken))
    assert (rates.latency_s is None) == (taken is None)


@pytest.mark.parametrize(
    ("spent", "more", "known"),
    [({}, (), True), ({"map": "busy_s"}, (), False), ({"sink": "busy_s"}, (), True),
     ({"source_events": "back_pressured_s"}, (), False),
     ({"source_events": "back_pressured_s"}, (("source_events", "sink"),), True)],
)  # fmt: skip
def test_how_long_a_record_waits_for_who_takes_in_nothing_is_not_known_unless_all_is_idle(
    world: World, spent: dict[str, str], more: tuple[tuple[str, str], ...], known: bool
) -> None:
    """Ten records are on their way to map in both readings. Of two, either holds up the source."""
    before = world.after(30)
    before = replace(before, edges=(*before.edges, *more))
    sent = replace(before.operators[0], records_out=before.operators[0].records_out + 10)
    before = replace(before, operators=(sent, *before.operators[1:]))
    grown = tuple(
        replace(op, **{kind: getattr(op, kind) + 10.0 * op.parallelism})
        for op in before.operators
        for kind in [spent.get(op.operator, "idle_s")]
    )
    now = replace(before, at_s=before.at_s + 10, operators=grown)
    assert rates_between(before, now).latency_s == (0.0 if known else None)


def test_counters_that_began_again_tell_nothing(world: World) -> None:
    before = world.after(30)
    world.restart(5, map=3)
    assert rates_between(before, world.after(3)) is None
    after = world.after(10)
    assert rates_between(before, after) is None
    assert rates_between(after, world.after(10)).since_s == pytest.approx(10)
    running = world.after(10)
    world.job = "b" * 32  # another one by the same name
    assert rates_between(running, world.after(10)) is None


def test_a_pause_lasts_until_state_is_restored(world: World) -> None:
    first, before = world.after(30), world.after(10)
    totals = added(Totals(), before, rates_between(first, before))
    world.restart(5, map=3)
    after = world.after(20)
    now = replace(world.after(10), up_s=after.started_s + 8)
    assert added(totals, now, rates_between(after, now)).paused_for_changes_s == 13.0


def test_what_flink_has_not_fetched_again_is_no_standstill(world: World) -> None:
    before = world.after(30)
    stale = replace(before, at_s=before.at_s + 5)
    assert rates_between(before, stale) is None


def test_a_late_fetch_changes_no_rate(world: World) -> None:
    """Polls every 15 s show Flink's fetches k, k, k+1 and k+3."""
    first = world.after(30)
    second = replace(world.after(15), at_s=first.at_s + 30)
    third = replace(world.after(30), at_s=first.at_s + 45)
    late, double = rates_between(first, second), rates_between(second, third)

    assert [late.since_s, double.since_s] == [pytest.approx(15), pytest.approx(30)]
    for rates in (late, double):
        assert rates.rate_per_s == rates.arrivals_per_s == pytest.approx(100)
        assert rates.operators["map"].work_s == pytest.approx(0.005)


def test_operators_that_do_not_count_their_time_are_left_out(world: World) -> None:
    def uncounted(reading: JobReading, names: set[str]) -> JobReading:
        operators = (
            replace(one, busy_s=None) if one.operator in names else one for one in reading.operators
        )
        return replace(reading, operators=tuple(operators))

    first = world.after(30)
    late = replace(world.after(15), at_s=first.at_s + 30)
    some, every = {"source_events"}, set(first.instances)

    rates = rates_between(uncounted(first, some), uncounted(late, some))
    assert rates.since_s == pytest.approx(15)
    rates = rates_between(uncounted(first, every), uncounted(late, every))
    assert rates.since_s == 30, "nothing else is known than when the polls were"


def test_a_region_that_was_started_again_is_not_compared(world: World) -> None:
    """Others started before, so the start of the job is the same; its counters are not."""
    before = world.after(30)
    now = world.after(10)
    assert rates_between(before, replace(now, restarts=1)) is None
    assert rates_between(before, replace(now, restarts=None)) is not None


def test_records_on_their_way_are_those_sent_less_those_taken_in(world: World) -> None:
    now = world.after(30)
    source, middle, sink = now.operators
    split = replace(
        now,
        operators=(
            replace(source, records_out=1000.0),
            replace(middle, records_in=600.0, records_out=600.0),
            replace(sink, records_in=300.0),
        ),
        edges=(("source_events", "map"), ("source_events", "sink")),
    )
    waiting = waiting_in_flink(split)
    assert waiting == {
        "source_events": 0.0,
        "map": pytest.approx(200 / 3),
        "sink": pytest.approx(100 / 3),
    }

    both = replace(split, operators=(replace(source, records_out=610.0), middle, sink))
    both = replace(
        both, operators=(both.operators[0], *split.operators[1:-1], replace(sink, records_in=605.0))
    )
    assert waiting_in_flink(both) == {"source_events": 0.0, "map": 10.0, "sink": 5.0}
