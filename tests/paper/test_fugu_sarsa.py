"""Heinze et al., section IV-C: the lookup table of a host and its learning."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.controllers.fugu.sarsa import (
    IN,
    NONE,
    OUT,
    Learning,
    Table,
    Transition,
    best_action,
    decided,
    initial_row,
    initial_table,
    learn,
    monotone,
    reward,
    updated,
)

PAPER = Learning(lower=0.3, upper=0.8, target=0.6)
TABLE_IA = {  # utilisation: scale in, no action, scale out
    0.7: (0.40, 0.85, 0.80),
    0.8: (0.38, 0.70, 0.85),
    0.9: (0.35, 0.50, 0.90),
    1.0: (0.32, 0.40, 1.00),
}


def row(table: Table, utilisation: float) -> tuple[float, float, float]:
    return table.rewards[PAPER.state(utilisation)]


@pytest.mark.parametrize("utilisation", TABLE_IA)
def test_a_new_table_is_table_ia(utilisation):
    assert row(initial_table(PAPER), utilisation) == pytest.approx(TABLE_IA[utilisation])


def test_errors_of_the_example():
    assert PAPER.error(0.7) == pytest.approx(1 / 6)  # the paper prints 0.16
    assert PAPER.error(0.9) == pytest.approx(0.5)


def test_the_update_of_the_example_with_its_rounding():
    earned = reward(0.16, 0.5)
    assert earned == pytest.approx(0.66)
    assert PAPER.alpha(0) == pytest.approx(0.2)
    assert updated(0.85, 0.2, earned, 0.1, 0.5) == pytest.approx(0.822)


def test_the_update_of_the_example_exactly():
    """0.8 * 0.85 + 0.2 * (1 + 1/6 - 1/2 + 0.1 * 0.5) with Q(0.9, no action) = 0.5."""
    before = initial_table(PAPER)
    took_no_action = decided(before, Transition(PAPER.state(0.7), NONE, PAPER.error(0.7)))
    after = learn(took_no_action, 0.9, PAPER)
    assert row(after, 0.7)[NONE] == pytest.approx(0.8 * 0.85 + 0.2 * (2 / 3 + 0.05))
    assert round(row(after, 0.7)[NONE], 2) == 0.82
    changed = [
        (state, action)
        for state, (old, new) in enumerate(zip(before.rewards, after.rewards, strict=True))
        for action in (IN, NONE, OUT)
        if old[action] != new[action]
    ]
    assert changed == [(PAPER.state(0.7), NONE)], "Table Ib differs in one entry"
    assert after.visits[PAPER.state(0.7)] == (0, 1, 0)
    assert after.last is None
    assert best_action(row(after, 0.7)) == NONE, "scale out only after the next learning steps"


def test_the_next_learning_steps_make_scale_out_the_best():
    table, steps = initial_table(PAPER), 0
    while best_action(row(table, 0.7)) == NONE and steps < 10:
        table = learn(
            decided(table, Transition(PAPER.state(0.7), NONE, PAPER.error(0.7))), 0.9, PAPER
        )
        steps += 1
    assert best_action(row(table, 0.7)) == OUT
    assert 1 < steps < 10


def test_alpha_halves_after_dur_visits():
    assert [PAPER.alpha(visits) for visits in (0, 80, 240)] == pytest.approx([0.2, 0.1, 0.05])
    assert replace(PAPER, dur=160).alpha(160) == pytest.approx(0.1)


def test_nothing_is_learned_without_impact():
    none = replace(PAPER, imp=0.0)
    table = learn(decided(initial_table(none), Transition(14, NONE, 0.2)), 0.9, none)
    assert table.rewards == initial_table(none).rewards


def test_a_refused_decision_earns_the_penalty():
    scaled_in = Transition(PAPER.state(0.25), IN, PAPER.error(0.25), refused=True)
    before = initial_table(PAPER)
    after = learn(decided(before, scaled_in), 0.25, PAPER)
    q = row(before, 0.25)[IN]
    assert row(after, 0.25)[IN] == pytest.approx(0.8 * q + 0.2 * (-1 + 0.1 * q))
    assert best_action(row(after, 0.25)) == NONE


thresholds = st.tuples(
    st.floats(0.05, 0.4), st.floats(0.45, 0.65), st.floats(0.7, 1.0), st.sampled_from([0.05, 0.1])
)


@given(thresholds)
def test_a_new_table_behaves_like_the_thresholds(given_thresholds):
    lower, target, upper, step = given_thresholds
    learning = Learning(lower=lower, target=target, upper=upper, step=step)
    for state, rewards in enumerate(initial_table(learning).rewards):
        utilisation = state * step
        if utilisation > upper:
            assert best_action(rewards) == OUT
        elif utilisation < lower:
            assert best_action(rewards) == IN
        elif lower + 1e-6 < utilisation < upper - 1e-6:
            assert best_action(rewards) == NONE


@given(thresholds)
def test_scale_out_gains_and_scale_in_loses_with_the_utilisation(given_thresholds):
    lower, target, upper, step = given_thresholds
    rewards = initial_table(Learning(lower=lower, target=target, upper=upper, step=step)).rewards
    for low, high in pairwise(rewards):
        assert high[OUT] >= low[OUT] - 1e-9
        assert high[IN] <= low[IN] + 1e-9


def is_monotone(rewards) -> bool:
    actions = [best_action(rewards) for rewards in rewards]
    return actions == sorted(actions)


updates = st.lists(
    st.tuples(st.integers(0, 20), st.sampled_from([IN, NONE, OUT]), st.floats(0, 1), st.booleans()),
    max_size=40,
)


@given(updates)
def test_whatever_is_learned_a_higher_utilisation_never_asks_for_fewer_hosts(steps):
    learning = replace(PAPER, imp=1.0)
    table = initial_table(learning)
    for state, action, reached, refused in steps:
        step = Transition(state, action, learning.error(state * learning.step), refused)
        table = learn(decided(table, step), reached, learning)
        assert is_monotone(table.rewards)


def test_monotonicity_leaves_the_state_that_was_learned_alone():
    rewards = initial_table(PAPER).rewards
    wants_out = (*rewards[:13], (0.4, 0.6, 0.9), *rewards[14:])
    fixed = monotone(wants_out, 13)
    assert fixed[13] == (0.4, 0.6, 0.9)
    assert [best_action(fixed[state]) for state in (12, 13, 14, 15)] == [NONE, OUT, OUT, OUT]
    assert fixed[14][OUT] == rewards[14][OUT], "only what contradicts is lowered"


def test_states_are_the_nearest_rows():
    assert [PAPER.state(u) for u in (0.0, 0.024, 0.026, 0.774, 0.776, 1.0, 1.3)] == [
        0, 0, 1, 15, 16, 20, 20,
    ]  # fmt: skip


def test_between_the_printed_rows_rewards_lie_on_lines():
    assert initial_row(0.85, PAPER) == pytest.approx((0.365, 0.60, 0.875))


def test_the_row_may_be_that_of_the_next_lower_utilisation():
    down = replace(PAPER, rounds_down=True)
    assert [PAPER.state(u) for u in (0.29, 0.776, 0.8, 1.2)] == [6, 16, 16, 20]
    assert [down.state(u) for u in (0.29, 0.776, 0.8, 1.2)] == [5, 15, 16, 20]
