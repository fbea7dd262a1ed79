"""What a reading says of the last change, and what a journal folds into."""

from dataclasses import replace

from include.service.history import Entry, news
from include.service.journal import sentence
from tests.service.acting_world import (
    asks,
    ended,
    job,
    limits_of,
    moment,
    operator,
    read_before,
)

STORE = operator("store", 3)


def kinds(history, reading, now=None):
    return [entry.kind for entry in news(history, reading, limits_of(), now or moment())]


def test_a_change_that_does_not_run_in_time_did_not_come_up_and_the_wait_begins():
    taken = read_before(None, asks(moment(-102), parse=4), ended(moment(-101), "taken"))
    short = job(operator("parse", 3, asked=4), STORE)  # a slot is missing
    [entry] = news(taken, short, limits_of(), moment())
    assert (entry.kind, entry.about["runs"]) == ("not up", {"parse": 3})
    assert not entry.about["down"]
    [down] = news(taken, replace(short, state="RESTARTING"), limits_of(), moment())
    assert down.about["down"]
    again = replace(operator("parse", 3, asked=4), idle_s=3 * 20.0)
    [flaps] = news(taken, replace(short, operators=(again, STORE)), limits_of(), moment())
    assert flaps.about["down"], "it has run for 20 s"
    was_down = taken.after(down)
    for ran_s, told in ((59.0, []), (60.0, [{"id": "c1", "asks": {"parse": 4}}])):
        runs = replace(operator("parse", 3, asked=4), idle_s=3 * ran_s)
        runs_on = replace(short, operators=(runs, STORE))
        said = news(was_down, runs_on, limits_of(), moment(70))
        assert [entry.about for entry in said] == [
            {**about, "runs": {"parse": 3}, "down": False} for about in told
        ]
    after = was_down.after(said[0])
    assert not after.last.down, "it restarts with what runs, and is not taken back"
    assert (after.failures, after.failed) == (1, moment())
    assert news(after, runs_on, limits_of(), moment(80)) == []
    assert kinds(taken, short, moment(-1)) == []  # 100 s are not over
    after = taken.after(entry)
    assert (after.failures, after.failed, after.pending) == (1, moment(), None)
    assert after.after(Entry(moment(9), "up", {"id": "c1"})).failures == 0


def test_a_change_that_comes_up_late_is_up_unless_it_was_overruled():
    failed = read_before(
        None,
        asks(moment(-500), parse=4),
        ended(moment(-499), "taken"),
        ended(moment(-390), "not up", down=True),
    )
    assert kinds(failed, job(operator("parse", 3, asked=4), STORE)) == []
    up = job(operator("parse", 4), STORE)
    assert kinds(failed, replace(up, state="RESTARTING")) == []
    [entry] = news(failed, up, limits_of(), moment())
    after = failed.after(entry)
    assert (entry.kind, after.failures, after.failed) == ("up", 0, None)
    assert kinds(after, up) == []
    assert kinds(failed, job(operator("parse", 4, asked=6), STORE)) == ["others"]
    anew = job(operator("parse", 4), STORE, job="j2")
    deployed = failed
    for entry in news(failed, anew, limits_of(), moment()):
        deployed = deployed.after(entry)
    assert (kinds(deployed, anew, moment(5)), deployed.failures) == ([], 1)


def test_a_restart_under_way_is_not_up():
    taken = read_before(None, asks(moment(-50), parse=4), ended(moment(-49), "taken"))
    up = (operator("parse", 4), STORE)
    assert kinds(taken, job(*up, state="RESTARTING")) == []
    assert kinds(taken, job(*up)) == ["up"]


def test_an_answer_that_never_came_is_found_out_from_what_the_job_asks_for():
    lost = read_before(None, asks(moment(-119), parse=4))
    assert kinds(lost, job()) == []  # it may still be carried out
    assert kinds(lost, job(), moment(2)) == ["not taken"]
    assert kinds(lost, job(operator("parse", 2, asked=4), STORE), moment(-30)) == ["taken"]
    other = job(operator("parse", 2, asked=7), STORE)
    assert kinds(lost, other) == ["others"]  # and it may still be carried out
    assert kinds(lost, other, moment(2)) == ["not taken", "others"]


def test_a_request_that_is_carried_out_after_all_is_no_change_of_somebody_else():
    given_up = read_before(None, asks(moment(-200), parse=4), ended(moment(-80), "not taken"))
    assert kinds(given_up, job(operator("parse", 4), STORE)) == ["taken", "up"]


def test_a_number_that_others_set_long_after_a_request_is_theirs():
    given_up = read_before(None, asks(moment(-600), parse=4), ended(moment(-480), "not taken"))
    there = job(operator("parse", 4), STORE)
    assert kinds(given_up, there, moment(-1)) == ["taken", "up"]
    assert kinds(given_up, there) == ["others"]


def test_the_time_to_come_up_begins_when_the_change_is_known_to_be_taken():
    given_up = read_before(None, asks(moment(-200), parse=4), ended(moment(-80), "not taken"))
    short = job(operator("parse", 2, asked=4), STORE)
    assert kinds(given_up, short) == ["taken"]
    taken = given_up.after(ended(moment(), "taken"))
    assert kinds(taken, short, moment(100)) == []
    assert kinds(taken, short, moment(101)) == ["not up"]


def test_lower_bounds_that_others_change_are_noticed_once():
    raised = job(operator("parse", 2, least=2), STORE)
    [entry] = news(read_before(), raised, limits_of(), moment())
    assert sentence(entry).endswith("began anew: parse at least 1 -> 2")
    after = read_before().after(entry)
    assert after.others == moment()
    assert kinds(after, raised) == []
    assert kinds(after, job()) == ["others"]


def test_lower_bounds_of_a_new_job_are_as_they_are():
    there = job(operator("parse", 2, least=2), STORE, job="j2")
    [entry] = news(read_before(), there, limits_of(), moment())
    assert kinds(read_before().after(entry), there) == []


def test_a_change_that_others_overrule_or_a_new_deployment_ends_is_waited_for_no_more():
    taken = read_before(None, asks(moment(-50), parse=4), ended(moment(-49), "taken"))
    assert kinds(taken, job(operator("parse", 4, asked=6), STORE)) == ["others", "gone"]
    assert kinds(taken, job(job="j2")) == ["gone", "job"]


def test_of_a_job_that_says_nothing_of_what_it_asks_for_nothing_is_learnt():
    taken = read_before(None, asks(moment(-500), parse=4), ended(moment(-490), "taken"))
    assert kinds(taken, job(elastic=False)) == []
