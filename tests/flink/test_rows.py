"""Which rows count: each item once, however often it was done."""

from __future__ import annotations

import random
from dataclasses import asdict

from hypothesis import given
from hypothesis import strategies as st

from include.testbeds.flink.instances import JobStart, Starts
from include.testbeds.flink.rows import ItemRow, bounds_of, counts, row_files
from include.testbeds.flink.state import FlinkReading
from tests.flink.world import subtask_of, write_rows

ROW = (0, 7, 100, 110, 120, 130)


def counted_files(folder):
    starts = Starts(folder, ("op",)).look()
    bounds = bounds_of(starts)
    return {(file.graph, file.after) for file in row_files(folder, ("op",)) if counts(file, bounds)}


def test_what_a_later_start_went_back_behind_does_not_count(tmp_path):
    subtask_of(tmp_path, "op", graph="g1", begun_us=1)
    subtask_of(tmp_path, "op", graph="g2", begun_us=9, restored=2)
    for after in (0, 1, 2, 3):
        write_rows(tmp_path, "op", after, [ROW], graph="g1")
    write_rows(tmp_path, "op", 2, [ROW], graph="g2")
    assert counted_files(tmp_path) == {("g1", 0), ("g1", 1), ("g2", 2)}


def test_a_start_that_died_before_its_first_checkpoint_is_undone_whole(tmp_path):
    subtask_of(tmp_path, "op", graph="g1", begun_us=1)
    subtask_of(tmp_path, "op", graph="g2", begun_us=5, restored=4)
    subtask_of(tmp_path, "op", graph="g3", begun_us=9, restored=4)
    write_rows(tmp_path, "op", 3, [ROW], graph="g1")
    write_rows(tmp_path, "op", 4, [ROW], graph="g2")
    write_rows(tmp_path, "op", 4, [ROW], graph="g3")
    assert counted_files(tmp_path) == {("g1", 3), ("g3", 4)}


def test_a_checkpoint_that_failed_bounds_nothing(tmp_path):
    """Checkpoint 2 was begun, so a file after it is there, and never completed: back to 1."""
    subtask_of(tmp_path, "op", graph="g1", begun_us=1)
    subtask_of(tmp_path, "op", graph="g2", begun_us=9, restored=1)
    for after in (0, 1, 2):
        write_rows(tmp_path, "op", after, [ROW], graph="g1")
    assert counted_files(tmp_path) == {("g1", 0)}


def test_a_line_that_is_not_whole_is_left_out(tmp_path):
    path = write_rows(tmp_path, "op", 0, [ROW])
    with path.open("a") as cut:
        cut.write("0,8,100,1")
    (file,) = row_files(tmp_path, ("op",))
    assert file.rows() == [ItemRow(*ROW)]
    with path.open("a") as more:
        more.write("10,120,130\n")
    assert file.rows() == [ItemRow(*ROW), ItemRow(0, 8, 100, 110, 120, 130)]


@given(st.integers(0, 10_000))
def test_every_item_counts_once_whatever_happens(seed):
    """An operator that goes through its items, with checkpoints and losses at random."""
    drawn = random.Random(seed)
    done: list[tuple[str, int, int]] = []  # graph, after, item
    starts: list[tuple[str, int]] = [("g0", 0)]
    position_at = {0: 0}
    after, newest, item = 0, 0, 0
    while item < 30:
        event = drawn.random()
        if event < 0.7:
            done.append((starts[-1][0], after, item))
            item += 1
        elif event < 0.85:
            after = max(position_at) + 1 if drawn.random() < 0.8 else after
            if after not in position_at:
                position_at[after] = item
                newest = after
        else:
            starts.append((f"g{len(starts)}", newest))
            after, item = newest, position_at[newest]
    made = [JobStart(graph, restored, k, ()) for k, (graph, restored) in enumerate(starts)]
    bounds = bounds_of(made)
    counted = sorted(item for graph, after, item in done if after < bounds[graph])
    assert counted == list(range(30))


def test_what_is_certain_has_arrived():
    reading = FlinkReading(time_s=5, arrived={"front": 100})
    assert reading.count_certain("front", 99) == 0
    assert reading.count_certain("front", 3) == 2  # counters are a quarter of a second old
    assert reading.arrived == {"front": 102}
    again = FlinkReading(**asdict(reading))
    assert again.count_certain("front", 1) == 1
