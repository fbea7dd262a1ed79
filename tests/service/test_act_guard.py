"""Of what a controller wants, what is allowed: worked out by hand, case by case."""

import pytest

from include.service.clock import Timestamp
from include.service.guard import Present, allowed_change, way_back
from include.service.history import NOT_SENT, NOT_UP, TAKEN, UP, Entry
from tests.service.acting_world import (
    asks,
    ended,
    job,
    limits_of,
    moment,
    operator,
    read_before,
)


def verdict(wanted, reading=None, *, limits=None, history=None, now=None, **present):
    return allowed_change(
        wanted,
        reading or job(),
        limits or limits_of(),
        history or read_before(),
        Present(now or moment(), **{"read": now or moment(), **present}),
    )


@pytest.mark.parametrize(
    ("runs", "wanted", "asked", "why"),
    [
        (6, 20, 8, "the limits are 1 to 8"),
        (6, 0, 2, "at most 4 at once"),
        (3, 0, 1, "the limits are 1 to 8"),
        (2, 7, 6, "at most 4 at once"),
    ],
)
def test_more_than_the_limits_is_cut_and_the_reason_is_told(runs, wanted, asked, why):
    allowed = verdict({"parse": wanted}, job(operator("parse", runs)))
    assert allowed.asks == {"parse": asked}
    assert why in allowed.cuts["parse"]


def test_the_bounds_of_the_job_itself_are_kept():
    reading = job(operator("parse", 4, least=3))
    allowed = verdict({"parse": 1}, reading)
    assert allowed.asks == {"parse": 3}
    assert "the job itself allows 3 to 128" in allowed.cuts["parse"]


def test_who_lacks_most_gets_what_is_left_of_an_hour():
    history = read_before(None, asks(moment(-3000), parse=2, instances=7), ended(moment(-2950), UP))
    allowed = verdict({"parse": 6, "store": 5}, history=history)
    assert allowed.asks == {"parse": 5}  # 3 of 10 are left; store has 1.7 times too few
    assert allowed.instances == 3
    assert "3 more may change in this hour" in allowed.cuts["parse"]
    assert "0 more may change in this hour" in allowed.cuts["store"]


def test_what_was_asked_for_an_hour_ago_counts_no_more():
    history = read_before(
        None, asks(moment(-3600), parse=2, instances=10), ended(moment(-3500), UP)
    )
    assert verdict({"parse": 6}, history=history).asks == {"parse": 6}


def test_a_bound_that_nobody_chose_may_be_taken_over():
    reading = job(operator("parse", 2, asked=128))
    allowed = verdict({"parse": 2}, reading)
    assert (allowed.asks, allowed.instances) == ({"parse": 2}, 0)


def test_what_is_to_stay_as_it_is_keeps_the_bound_that_lacks_slots():
    """A TaskManager died: when it comes back, Flink takes it up to what was asked for."""
    reading = job(operator("parse", 3, asked=6))
    assert verdict({"parse": 3}, reading).asks == {}
    assert verdict({"parse": 2}, reading).asks == {"parse": 2}


def test_what_was_asked_for_and_does_not_run_counts_too():
    reading = job(operator("parse", 2, asked=8))  # six slots are missing
    allowed = verdict({"parse": 3}, reading, limits=limits_of(changed_instances_per_hour=4))
    assert (allowed.asks, allowed.instances) == ({"parse": 4}, 4)
    far = job(operator("parse", 1, asked=8), operator("store", 3))
    none = verdict({"parse": 3}, far, limits=limits_of(changed_instances_per_hour=3))
    assert none.asks == {}
    assert "1 run and 8 are asked for" in none.cuts["parse"]


def test_an_operator_without_limits_or_that_is_not_there_is_left():
    only = limits_of(default=None, operators={"parse": {"least": 1, "most": 8, "most_at_once": 4}})
    allowed = verdict({"store": 6, "sink": 2}, limits=only)
    assert allowed.asks == {}
    assert "no limits" in allowed.cuts["store"]
    assert "no such operator" in allowed.cuts["sink"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"state": "RESTARTING"}, "the job is RESTARTING"),
        ({"checkpoint_running": True}, "a checkpoint is under way"),
        ({"missing": ("checkpoints: no answer",)}, "readings are missing: checkpoints"),
        ({"elastic": False}, "adaptive scheduler"),
        ({"started_s": 0.0}, "not known since when"),
        ({"job": "j2"}, "never read before"),
    ],
)
def test_hands_off_a_job_that_is_not_ready(given, why):
    allowed = verdict({"parse": 4}, job(**given))
    assert allowed.asks == {}
    assert any(why in reason for reason in allowed.held)


def test_hands_off_what_was_read_too_long_ago_by_any_clock():
    assert verdict({"parse": 4}, read=moment(-60)).asks
    assert verdict({"parse": 4}, read=moment(-61)).held == ("the reading is older than 60 s",)
    assert verdict({"parse": 4}, read=moment(-1, wall_s=-7200)).asks  # a clock was set


def test_hands_off_while_paused_in_quiet_hours_and_with_limits_of_another_job():
    limits = limits_of(operators={"parze": {"most": 4}}, quiet=[{"begin": "11:00", "end": "13:00"}])
    allowed = verdict({"parse": 4}, limits=limits, stopped="paused: release day")
    assert allowed.asks == {}
    told = "\n".join(allowed.held)
    assert "release day" in told
    assert "quiet hours until Tuesday 13:00 (UTC)" in told
    assert "the limits name parze" in told


def test_quiet_hours_all_week_do_not_end():
    assert verdict({"parse": 4}, limits=limits_of(quiet=[{}])).held == ("quiet hours without end",)


def test_hands_off_until_the_last_change_is_up_and_some_time_has_passed():
    asked = asks(moment(-61), parse=4)
    not_up = verdict({"parse": 6}, history=read_before(None, asked))
    assert not_up.held == ("the change to parse 4 is not up yet",)
    taken = read_before(None, asked, ended(moment(-60), TAKEN))
    assert verdict({"parse": 6}, history=taken).held
    up = read_before(None, asked, ended(moment(-60), TAKEN), ended(moment(-50), UP))
    reading = job(operator("parse", 4), operator("store", 3))
    assert verdict({"parse": 6}, reading, history=up).asks == {"parse": 6}
    soon = read_before(None, asks(moment(-59), parse=4), ended(moment(-50), UP))
    assert "until 12:00:01" in verdict({"parse": 6}, history=soon).held[0]


def test_waits_are_doubled_after_each_change_that_did_not_come_up():
    def after(failures, since_s):
        entries = []
        for number in range(failures):
            entries += [
                asks(moment(-4000 + number), f"c{number}", parse=4),
                ended(moment(-since_s), NOT_UP, f"c{number}"),
            ]
        return verdict({"parse": 4}, history=read_before(None, *entries)).held

    assert after(1, 199)
    assert not after(1, 201)
    assert after(2, 399)
    assert not after(2, 401)
    assert after(3, 499)  # not 800: the longest is 500
    assert not after(3, 501)


def test_somebody_elses_change_is_respected_for_a_while():
    others = Entry(moment(-999), "others", {"bounds": {"store": 3}, "was": {"store": 2}})
    assert "somebody else" in verdict({"parse": 4}, history=read_before(None, others)).held[0]
    long_ago = Entry(moment(-1000), "others", {"bounds": {"store": 3}, "was": {"store": 2}})
    assert verdict({"parse": 4}, history=read_before(None, long_ago)).asks


def test_a_clock_that_jumps_gives_no_second_hour():
    spent = read_before(None, asks(moment(-300), parse=2, instances=10), ended(moment(-200), UP))
    later = moment(0, wall_s=7200)  # an hour is over by the wall, five minutes in truth
    allowed = verdict({"parse": 4}, job(at=later), history=spent, now=later)
    assert allowed.asks == {}
    assert "0 more" in allowed.cuts["parse"]
    back = moment(3600, wall_s=-7200)  # by the wall it has not begun yet
    assert verdict({"parse": 4}, job(at=back), history=spent, now=back).asks == {"parse": 4}


@pytest.mark.parametrize(
    ("clock_s", "passed_s"), [(-36000, 0), (0, 0), (59, 59), (900, 60), (36000, 60)]
)
def test_after_a_start_of_the_machine_the_younger_of_two_ages_counts(clock_s, passed_s):
    before = moment(0)
    assert Timestamp(before.at_s + clock_s, "b2", 60.0).since(before) == passed_s


def test_on_a_machine_that_is_up_for_days_an_hour_goes_on():
    spent = read_before(None, asks(moment(-10), parse=2, instances=10), ended(moment(-5), UP))
    elsewhere = Timestamp(moment().at_s, "b2", 864_000.0)
    assert spent.spent(elsewhere) == 10
    assert verdict({"parse": 4}, history=spent, now=elsewhere).held


DOWN = job(operator("parse", 4), operator("store", 3), state="RESTARTING")
FAILED = (
    asks(moment(-130), parse=4),
    ended(moment(-120), TAKEN),
    ended(moment(-10), NOT_UP, down=True),
)


def back(*entries, reading=DOWN, now=None, stopped=""):
    now = now or moment()
    history = read_before(None, *entries)
    return way_back(reading, limits_of(), history, Present(now, now, stopped))


def test_the_way_back_is_to_the_bounds_before_within_the_time_that_a_change_may_take():
    allowed = back(*FAILED)
    assert (allowed.asks, allowed.instances, allowed.back) == ({"parse": 2}, 2, True)
    assert back(*FAILED, now=moment(90)).asks == {"parse": 2}
    assert back(*FAILED, now=moment(91)) is None


def test_there_is_one_way_back_unless_it_never_came_to_flink():
    again = Entry(moment(-5), "asks", {**asks(moment(-5), "c2", parse=2).about, "back": True})
    assert back(*FAILED, again) is None
    assert back(*FAILED, again, ended(moment(-4), NOT_UP, "c2")) is None
    assert back(*FAILED, again, ended(moment(-4), NOT_SENT, "c2")).asks == {"parse": 2}


@pytest.mark.parametrize(
    "entries",
    [
        FAILED[:2],
        (*FAILED[:2], ended(moment(-10), UP)),
        (*FAILED[:2], ended(moment(-10), NOT_UP, down=False)),
        (*FAILED[:2], ended(moment(-10), NOT_UP)),
        (*FAILED, ended(moment(-5), UP)),
        (*FAILED, Entry(moment(-60), "others", {"bounds": {"store": 5}})),
        (*FAILED, Entry(moment(-5), "job", {"job": "j1", "bounds": {"parse": 4, "store": 3}})),
    ],
    ids=[
        "not failed yet",
        "it ran",
        "the job ran",
        "older versions do not say whether",
        "it ran later",
        "others changed the job since",
        "deployed again",
    ],
)
def test_there_is_no_way_back(entries):
    assert back(*entries) is None


def test_a_job_that_runs_goes_back_for_nothing_and_a_pause_holds_the_way_back():
    assert back(*FAILED, reading=job(operator("parse", 3, asked=4), operator("store", 3))) is None
    assert back(*FAILED, stopped="paused").held == ("paused",)
