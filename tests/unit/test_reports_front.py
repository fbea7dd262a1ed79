"""The figure of cost against compliance: which points it has, joins, marks and names."""

from __future__ import annotations

import csv
import io
import re
import shutil
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from include.model.errors import SpecError
from include.results.reports.figures import front, style
from include.results.reports.tournament import END_TO_END_SHARE
from tests.builders_staged import as_published, restage
from tests.command_line import refused, said

SHARE = front.SHARE
ROOT = Path(__file__).parents[2]


def rows(controller: str, cost: float, share: float, **changes: Any) -> list[dict[str, Any]]:
    values = {
        "topology": "manufacturing", "pattern": "random_walk", "conditions": "", "variant": "",
        "controller": controller, "btu_min": 10.0, "unit": "any", "sigma": 1.0, "runs": 4,
    } | changes  # fmt: skip
    return [
        values | {"metric": "resource_cost", "mean": cost},
        values | {"metric": SHARE, "mean": share},
    ]


ALL = [
    *rows("btu", 70.0, 85.0),
    *rows("tide", 65.0, 90.0),
    *rows("tide", 80.0, 94.0, variant="care=2"),
    *rows("tide", 60.0, 88.0, variant="care=0.4"),
    *rows("btu", 70.0, 84.0, pattern="stepwise"),
    *rows("tide", 62.0, 91.0, pattern="stepwise", sigma=None, runs=1),
]


def texts(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def test_every_point_has_its_name_and_every_panel_says_what_was_chosen_on_it() -> None:
    words = texts(front.draw(ALL, {"stepwise"}))
    assert [words.count(name) for name in ("btu", "tide", "2", "0.4")] == [2, 2, 1, 1]
    panels = [text for text in words if "chosen on it" in text]
    assert panels == [
        "manufacturing · random walk · BTU 10 min (no option was chosen on it)",
        "manufacturing · stepwise · BTU 10 min (options were chosen on it)",
    ]
    assert {"70", "85", "90"} <= set(words)


def test_a_variant_of_a_rival_has_its_name_too() -> None:
    low = {"variant": "scale_down_below_items=2, scale_up_above_items=25"}
    rivals = [
        *ALL,
        *rows("ds2", 50.0, 80.0, variant="factor=0.3"),
        *rows("threshold", 55.0, 70.0, **low),
    ]
    shown = texts(front.draw(rivals, ()))
    assert {"ds2 0.3", "threshold 2/25", "0.4"} <= set(shown)


def test_what_has_no_cost_or_no_compliance_is_no_point() -> None:
    free = [*ALL[:2], *rows("manual", 0.0, 99.0), rows("henge", 50.0, 0.0)[0]]
    words = texts(front.draw(free, ()))
    assert "btu" in words
    assert not {"manual", "henge"} & set(words)


def test_points_beyond_the_end_of_the_axis_are_beaten_by_no_worse_one() -> None:
    svg = front.draw([*rows("btu", 10.0, 99.9), *rows("threshold", 9.0, 99.7)], ())
    large = re.findall(r'id="([^"]+)" d="M 0 2.9', svg)
    assert sum(svg.count(f'href="#{mark}"') for mark in large) == 2


def test_an_interval_that_the_axis_cuts_is_whole_on_the_other_side() -> None:
    """From 95.6 to 101.8 %."""
    words = texts(front.draw([*rows("btu", 10.0, 98.7, sigma=1.95), *rows("tide", 9.0, 98.8)], ()))
    assert {"99.5", "99", "97"} <= set(words)


def test_the_same_rows_give_the_same_bytes() -> None:
    assert front.draw(ALL, ["stepwise"]) == front.draw(list(reversed(ALL)), {"stepwise"})


def test_the_figure_of_the_readme_is_that_of_its_table_and_no_name_covers_another() -> None:
    results = (ROOT / "docs" / "results" / "tide_care.csv").read_text()
    table = [
        row | {name: float(row[name]) for name in ("mean", "sigma", "btu_min")}
        | {"runs": int(row["runs"])}
        for row in csv.DictReader(io.StringIO(results))
    ]  # fmt: skip
    svg = f"{style.standalone(front.draw(table, ['stepwise']))}\n"
    assert svg == (ROOT / "docs" / "images" / "tide.svg").read_text()
    boxes = []
    for side, x, y, name in re.findall(
        r'<text[^>]*7.5px[^>]*text-anchor: (\w+)[^>]*x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]+)<', svg
    ):
        width = 0.55 * 7.5 * len(name)
        left = float(x) - {"start": 0.0, "middle": width / 2, "end": width}[side]
        boxes.append((name, left, left + width, float(y)))
    assert len(boxes) > 60
    for (one, left, right, y), (other, left_2, right_2, y_2) in combinations(boxes, 2):
        beside = right <= left_2 or right_2 <= left
        assert beside or abs(y - y_2) >= 6.5, (one, other)


def test_the_command_draws_what_was_published(tmp_path: Path) -> None:
    restage(tmp_path, "tournament", ALL)
    as_published(tmp_path)
    command = ["figure", str(tmp_path), "--front", "--fitted", "stepwise", "--out"]
    said(*command, str(tmp_path / "out.svg"))
    svg = (tmp_path / "out.svg").read_text()
    assert texts(svg) == texts(front.draw(ALL, ["stepwise"]))
    assert "currentColor" not in svg
    said(*command[:2], "--out", str(tmp_path / "tournament.svg"))
    assert "random walk" in texts((tmp_path / "tournament.svg").read_text())
    alone = refused("figure", str(tmp_path), "--fitted", "stepwise", "--out", "a.svg")
    assert "it marks panels of --front" in alone
    assert "let it end in .svg, got out.png" in refused(*command, "out.png")
    shutil.copytree(tmp_path / "published", tmp_path / "again" / "published")
    twice = refused(*command[:2], str(tmp_path / "again"), "--out", "a.svg")
    assert "is in a folder before it; leave one of them out" in twice


def test_end_to_end_it_has_the_points_of_runs_with_ages(tmp_path: Path) -> None:
    restage(tmp_path, "tournament", ALL)
    as_published(tmp_path)
    command = ["figure", str(tmp_path), "--front", "--end-to-end", "--out", "a.svg"]
    assert "no run has end-to-end figures; first: tidebench report" in refused(*command)
    older = [row for row in ALL if row["controller"] == "btu"]
    share = [row | {"metric": END_TO_END_SHARE} for row in ALL[2:4] if row["metric"] == SHARE]
    words = texts(front.draw([*older, *ALL[2:4], *share], (), end_to_end=True))
    assert {"end-to-end near real-time, %", "tide"} <= set(words)
    assert "btu" not in words


def test_where_nothing_is_named_nothing_is_said_of_what_was_chosen() -> None:
    assert not any("chosen on it" in text for text in texts(front.draw(ALL, [])))


def test_a_pattern_that_is_not_drawn_is_told_of() -> None:
    with pytest.raises(SpecError, match=r"unknown pattern 'stepwize'.*stepwise"):
        front.draw(ALL, ["stepwise", "stepwize"])
