from datetime import UTC, datetime
from pathlib import Path

import pytest

from include.model.errors import SpecError
from include.service.limits import load_limits
from tests.problems import problems_told
from tests.service.acting_world import limits_of

USUAL = "default: {least: 1, most: 8, most_at_once: 4}\nchanged_instances_per_hour: 20\n"


def loaded(tmp_path, text):
    path = tmp_path / "limits.yaml"
    path.write_text(text)
    return load_limits(path)


def test_an_operator_has_its_own_limits_and_else_those_of_all(tmp_path):
    limits = loaded(tmp_path, USUAL + "operators: {parse: {most: 16}}\n")
    assert limits.of("parse") == (1, 16, 4)
    assert limits.of("store") == (1, 8, 4)


def test_everything_wrong_is_told_at_once(tmp_path):
    text = (
        "default: {least: 1, most: 8, most_at_once: 2}\n"
        "operators: {parse: {least: 9}, store: {most: 0}}\n"
        "quiet: [{days: [monday]}, {begin: 22}]\n"
        "time_zone: Vienna\n"
        "hours: 3\n"
    )
    told = "\n".join(problems_told(loaded, tmp_path, text))
    for words in (
        "operators.store.most", "changed_instances_per_hour: missing", "quiet.0.days.0",
        "quiet.1.begin: write a time of day", "time zone 'Vienna'", "hours: unknown field",
    ):  # fmt: skip
        assert words in told


@pytest.mark.parametrize(
    ("days", "told"),
    [
        ("[moon]", ["quiet.0.days.0: input should be 'mon'"]),
        ("[]", ["quiet.0.days: is empty; give at least one value"]),
    ],
)
def test_days_that_are_none_are_told_once(tmp_path, days, told):
    found = problems_told(loaded, tmp_path, USUAL + f"quiet: [{{days: {days}}}]\n")
    assert [one[: len(words)] for one, words in zip(found, told, strict=True)] == told


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"operators": {"parse": {"least": 9}}},
            r"parse: least \(9\) must not be above most \(8\)",
        ),
        ({"default": {"least": 1}}, "default: most and most_at_once missing"),
        (
            {"default": {"least": 5, "most": 2}},
            r"default: most_at_once missing .*, and least \(5\) must not be above most \(2\)",
        ),
        ({"default": None}, "name an operator"),
        *(
            ({"quiet": [hours]}, "the same; leave both out for the whole day")
            for hours in ({"begin": "08:00", "end": "08:00"}, {"begin": "24:00"}, {"end": "00:00"})
        ),
    ],
)
def test_limits_that_do_not_fit_each_other_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        limits_of(**given)


def test_hours_of_the_night_belong_to_the_day_on_which_they_begin():
    nights = limits_of(
        time_zone="Europe/Vienna", quiet=[{"days": ["fri"], "begin": "22:00", "end": "06:00"}]
    )

    def quiet(day, hour, minute=0):
        return nights.quiet_until(datetime(2025, 11, day, hour, minute, tzinfo=UTC).timestamp())

    assert quiet(28, 20, 59) is None  # Friday, 21:59 in Vienna
    assert f"{quiet(28, 21):%a %H:%M}" == "Sat 06:00"
    assert f"{quiet(29, 4, 59):%a %H:%M}" == "Sat 06:00"
    assert quiet(29, 5) is None
    assert quiet(28, 3) is None  # Friday, 04:00: the night before began on Thursday


def test_the_file_to_begin_with_is_one_and_so_are_its_comments(tmp_path):
    text = Path("infra/service/limits.yaml").read_text()
    assert loaded(tmp_path, text).of("any") == (1, 8, 4)
    options = ("# operators:", "#   ", "# quiet:")
    lines = [line.removeprefix("# ") if line.startswith("# ") and line.startswith(options)
             else f"  {line[4:]}" if line.startswith("#   ") else line
             for line in text.splitlines()]  # fmt: skip
    example = loaded(tmp_path, "\n".join(lines))
    assert example.of("sink") == (1, 2, 4)
    assert len(example.quiet) == 2


@pytest.mark.parametrize("time", ["830", "22:30", "10:00:00", "1320", "8.30"])
def test_a_time_that_yaml_makes_a_number_is_refused(tmp_path, time):
    with pytest.raises(SpecError, match="in quotes, for example '08:30'"):
        loaded(tmp_path, f"{USUAL}quiet: [{{begin: {time}}}]\n")


def test_a_time_that_yaml_leaves_as_text_needs_no_quotes(tmp_path):
    limits = loaded(tmp_path, USUAL + "quiet: [{begin: 08:30, end: '22:30'}]\n")
    assert (limits.quiet[0].begin, limits.quiet[0].end) == (8 * 60 + 30, 22 * 60 + 30)


def test_hours_that_never_end_are_told_so():
    always = limits_of(quiet=[{"begin": "00:00", "end": "24:00"}])
    assert always.quiet_until(0.0).year == 9999
