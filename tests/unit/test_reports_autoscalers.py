"""What the autoscalers in use today show of themselves, and the figures that are made of it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import pytest

from include.controllers import CONTROLLERS
from include.controllers.base import Gauge, Group, Watching
from include.results.reports.autoscalers import Reading, draw, figure_of
from include.results.reports.figures import style
from include.testing.builders import a_setting, a_topology
from tests.autoscaler_world import flowing, looked, numbers
from tests.docs.pages import REPOSITORY

TODAY = [
    name for name, registration in CONTROLLERS.items() if registration.group is Group.IN_USE_TODAY
]
SETTING = a_setting(a_topology("O1"))


def watched(name: str, rows: Sequence[tuple[int, int, float]], count: int) -> tuple[Any, int]:
    """What a rule watches at the last look, and how many instances it asks for then."""
    rule: Any = CONTROLLERS[name].build(setting=SETTING)
    memory, gauge, wanted = rule.initial_memory(), None, count
    for turn, reading in enumerate(flowing("O1", rows, count, durations_ms=[100.0])):
        observation = looked(rule.interval_s * turn, reading)
        gauge = rule.watched(memory, observation, "O1")
        memory, targets = rule.targets(memory, observation)
        wanted = numbers(targets).get("O1", count)
    return gauge, wanted


SURGE = [(200, 100, 1.0)] * 3
CALM = [(100, 100, 0.475)] * 4


@pytest.mark.parametrize("name", ["hpa", "keda", "target-tracking", "ds2", "dhalion"])
def test_a_rule_adds_instances_when_what_it_watches_is_above_its_bound(name: str) -> None:
    rows = SURGE if name != "dhalion" else SURGE[:1]
    gauge, wanted = watched(name, rows, 2)
    assert gauge.value > gauge.high
    assert wanted > 2


@pytest.mark.parametrize("name", ["target-tracking", "ds2", "dhalion"])
def test_a_rule_leaves_alone_what_is_within_its_bounds(name: str) -> None:
    gauge, wanted = watched(name, CALM if name != "ds2" else [(100, 100, 0.9)] * 4, 2)
    assert (gauge.low or 0.0) <= gauge.value <= gauge.high
    assert wanted == 2


def test_daedalus_shows_what_its_instances_were_able_to_do() -> None:
    gauge, _ = watched("daedalus", SURGE[:3], 2)
    assert (gauge.value, gauge.high) == pytest.approx((200 / 60, 100 / 60))


def test_drs_shows_nothing_where_a_queue_grows_without_end() -> None:
    assert watched("drs", SURGE, 2)[0] is None
    gauge, _ = watched("drs", [(100, 100, 0.9)] * 4, 2)
    assert gauge.value > 0
    assert gauge.low is None


def test_flink_shows_nothing_while_it_stabilises() -> None:
    assert watched("flink-autoscaler", SURGE, 2)[0] is None
    gauge, _ = watched("flink-autoscaler", [(100, 100, 1.0)] * 12, 2)
    assert gauge.value == pytest.approx(100 / 60)
    assert gauge.low <= gauge.high


@pytest.mark.parametrize("name", TODAY)
def test_every_one_says_what_it_watches(name: str) -> None:
    rule = CONTROLLERS[name].build(setting=SETTING)
    assert isinstance(rule, Watching)
    assert rule.watches
    file = REPOSITORY / "docs" / "images" / "autoscalers" / f"{name}.svg"
    assert rule.watches in file.read_text()


def a_look(minute: float, value: float | None) -> Reading:
    return Reading(minute, None if value is None else Gauge(value, 1.0, 2.0), 2, 1.5, 7)


def test_where_a_rule_can_say_nothing_the_line_has_a_gap() -> None:
    looks = [a_look(0, 1.5), a_look(1, None), a_look(2, 1.6), a_look(3, math.nan)]
    svg = draw("mine: O1", "load, items/s", looks, 4)
    assert svg == draw("mine: O1", "load, items/s", looks, 4)
    ElementTree.fromstring(svg)
    assert {"mine: O1: load, items/s", "items that wait"} <= set(
        re.findall(r">([^<>]+)</text", svg)
    )


def test_a_figure_on_its_own_is_light_or_dark() -> None:
    svg = style.standalone(draw("mine: O1", "load, items/s", [a_look(0, 1), a_look(1, 3)], 2))
    ElementTree.fromstring(svg)
    rules = re.findall(r'\[style\*="(\w+: #\w+)"\]', svg)
    assert "prefers-color-scheme:dark" in svg
    assert all(
        rule in svg.partition("</style>")[2] for rule in ("fill: #1c2126", "stroke: #1c2126")
    )
    assert {"fill: #1c2126", "stroke: #dcdfe2"} <= set(rules)
    assert not re.search(r' d="[^"]*\.\d\d', svg)


def test_a_run_is_drawn_as_the_rule_saw_it() -> None:
    assert "dhalion: O1: back pressure" in figure_of("dhalion", duration_min=5)


def test_a_controller_that_shows_nothing_is_refused() -> None:
    with pytest.raises(TypeError, match="btu does not show what it watches"):
        figure_of("btu")
