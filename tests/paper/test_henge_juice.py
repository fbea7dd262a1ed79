"""Juice: Henge, section 5, eq. 5 and 6, and both of its examples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.model.juice import operator_juice, topology_juice

FIG_1 = {"A": ("spout",), "B": ("A",), "C": ("A",), "D": ("B", "C")}
FIG_1_SENT = {
    ("spout", "A"): 10_000.0,
    ("A", "B"): 8_000.0,
    ("A", "C"): 8_000.0,
    ("B", "D"): 8_000.0,
    ("C", "D"): 6_000.0,
}
FIG_1_EXECUTED = {**FIG_1_SENT, ("A", "C"): 6_000.0}

# Spout 1 -> A -> B -> C (sink); spout 2 -> D -> E -> B and F (sink).
FIG_5 = {
    "A": ("spout 1",),
    "D": ("spout 2",),
    "E": ("D",),
    "B": ("A", "E"),
    "C": ("B",),
    "F": ("E",),
}
FIG_5_SENT = {
    ("spout 1", "A"): 1000.0,
    ("spout 2", "D"): 1000.0,
    ("D", "E"): 1000.0,
    ("A", "B"): 500.0,
    ("E", "B"): 250.0,
    ("E", "F"): 250.0,
    ("B", "C"): 750.0,
}
FIG_5_EXECUTED = {
    **FIG_5_SENT,
    ("spout 1", "A"): 500.0,  # half of what spout 1 sent
    ("D", "E"): 500.0,  # half is not processed due to congestion
    ("E", "F"): 200.0,  # a fifth is not
}


def test_example_1_operator_by_operator() -> None:
    juice = operator_juice(("spout",), FIG_1, FIG_1_SENT, FIG_1_EXECUTED)
    assert juice == {"spout": 1.0, "A": 1.0, "B": 0.5, "C": 0.375, "D": 0.875}


def test_example_1_topology() -> None:
    assert topology_juice(("spout",), ("D",), FIG_1, FIG_1_SENT, FIG_1_EXECUTED) == 0.875


def test_if_b_and_c_were_sinks_their_juice_would_sum_up_to_the_topologys() -> None:
    parents = {name: FIG_1[name] for name in ("A", "B", "C")}
    assert topology_juice(("spout",), ("B", "C"), parents, FIG_1_SENT, FIG_1_EXECUTED) == 0.875


def test_example_2_operator_by_operator() -> None:
    juice = operator_juice(("spout 1", "spout 2"), FIG_5, FIG_5_SENT, FIG_5_EXECUTED)
    assert juice["A"] == 0.5
    assert juice["D"] == 1.0
    assert juice["E"] == 0.5
    assert juice["B"] == 0.75
    assert juice["F"] == pytest.approx(0.25 * 0.8)
    assert juice["C"] == 0.75


def test_example_2_topology() -> None:
    juice = topology_juice(("spout 1", "spout 2"), ("C", "F"), FIG_5, FIG_5_SENT, FIG_5_EXECUTED)
    assert juice == pytest.approx((0.2 + 0.75) / 2, abs=1e-12)


@pytest.mark.parametrize("filtered", [1.0, 0.64, 0.001])
def test_an_operator_that_drops_tuples_by_design_loses_no_juice(filtered: float) -> None:
    edges = {("spout", "A"): 1000.0, ("A", "B"): 1000.0 * filtered}
    parents = {"A": ("spout",), "B": ("A",)}
    assert topology_juice(("spout",), ("B",), parents, edges, edges) == 1.0


def test_a_parent_that_sent_nothing_shares_its_juice_out_in_equal_parts() -> None:
    parents = {"A": ("spout",), "B": ("A",), "C": ("A",)}
    edges = {("spout", "A"): 10.0}
    juice = operator_juice(("spout",), parents, edges, edges)
    assert juice["B"] == juice["C"] == 0.5


def test_what_waited_in_earlier_windows_may_lift_juice_above_one() -> None:
    parents = {"A": ("spout",)}
    edge = ("spout", "A")
    assert topology_juice(("spout",), ("A",), parents, {edge: 100.0}, {edge: 110.0}) == 1.1


def test_without_a_source_there_is_no_juice() -> None:
    with pytest.raises(ValueError, match="give at least one"):
        topology_juice((), ("A",), {"A": ()}, {}, {})


@given(
    rate=st.floats(1e-3, 1e6),
    shares=st.lists(st.floats(0.0, 1.0), min_size=5, max_size=5),
)
def test_juice_is_independent_of_the_input_rate(rate: float, shares: list[float]) -> None:
    """Section 5, "rate independent": counts in another unit of time give the same."""
    executed = {
        edge: n * share for (edge, n), share in zip(FIG_1_SENT.items(), shares, strict=True)
    }
    once = topology_juice(("spout",), ("D",), FIG_1, FIG_1_SENT, executed)
    scaled = topology_juice(
        ("spout",),
        ("D",),
        FIG_1,
        {edge: n * rate for edge, n in FIG_1_SENT.items()},
        {edge: n * rate for edge, n in executed.items()},
    )
    assert scaled == pytest.approx(once)
    assert 0.0 <= once <= 1.0 + 1e-9
