"""What we demand of every registered arrival pattern, and of the files of workloads."""

from __future__ import annotations

from itertools import pairwise

import pytest

from include.testbeds.calibrations import WORKLOADS
from include.workloads import PATTERNS


@pytest.fixture(params=sorted(PATTERNS))
def pattern(request, tmp_path):
    if request.param == "trace":
        path = tmp_path / "trace.csv"
        path.write_text("time_s,level\n0,2\n600,5\n1200,1\n")
        return PATTERNS["trace"](path=str(path))
    return PATTERNS[request.param]()


def test_it_has_no_problems_as_it_comes(pattern):
    assert list(pattern.problems()) == []


def test_it_starts_at_0_in_order_and_is_never_negative(pattern):
    levels = pattern.unfold(3600, seed=1)
    assert levels.starts_s[0] == 0
    assert list(levels.starts_s) == sorted(set(levels.starts_s))
    assert min(levels.levels) >= 0
    assert levels.peak() > 0


def test_the_same_seed_gives_the_same_levels(pattern):
    assert pattern.unfold(3600, seed=3) == pattern.unfold(3600, seed=3)


def test_its_pieces_cover_the_run_without_gap(pattern):
    pieces = list(pattern.unfold(3000, seed=1).pieces(3000))
    assert pieces[0][0] == 0
    assert pieces[-1][1] == 3000
    assert all(a[1] == b[0] for a, b in pairwise(pieces))


def test_steps_that_are_no_whole_milliseconds_have_a_level_each():
    levels = PATTERNS["lab"](step_s=0.1009, hold_s=1).unfold(1200, seed=1)
    assert len(levels.starts_s) == len(levels.levels) == 11893


def test_steps_that_divide_a_way_but_for_rounding_are_taken():
    assert list(PATTERNS["pyramid"](high=0.3, step=0.1).problems()) == []


def test_no_two_workloads_have_a_file_of_the_same_name():
    """They are found by name, and one would hide the other."""
    for each in ("*/*.yaml", "*/calibrations/virtual/*.yaml", "*/calibrations/flow/*.yaml"):
        names = [path.stem for path in WORKLOADS.glob(each)]
        assert names, each
        assert len(names) == len(set(names)), each
