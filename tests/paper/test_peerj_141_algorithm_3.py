"""PeerJ CS 141, Algorithm 3 (Operator Selection Algorithm), line by line, and its preprint."""

from __future__ import annotations

import pytest

from include.controllers.peerj141.reclaim import (
    AllOperators,
    Candidate,
    Utility,
    Weights,
    best_first,
    record_highs,
    utility_final,
    utility_preprint,
)

AMONG = AllOperators(fewest_instances=1, most_instances=5, scalings=20)
PAPER = Weights()


def standing(**changes: float) -> Candidate:
    values = {
        "instances": 3,
        "duration_ms": 600.0,
        "slo_ms": 1000.0,
        "waiting_items": 7,
        "scalings": 4,
    }
    return Candidate(**(values | changes))


@pytest.mark.parametrize("formula", [utility_final, utility_preprint])
@pytest.mark.parametrize(("instances", "refused"), [(0, True), (1, True), (2, False)])
def test_lines_2_to_4_refuse_the_only_instance(
    formula: Utility, instances: int, refused: bool
) -> None:
    value = formula(standing(instances=instances, waiting_items=0), AMONG, PAPER)
    assert bool(value == -1.0) is refused


def test_line_13_with_the_numbers_of_a_worked_example() -> None:
    # instances = (3 - 1) / (5 - 1) = 0.5; delay = 600 / 1000 * 1.0001 = 0.60006
    # scalings = 4 / 20 = 0.2; queueLoad = 0; 1 + 0.5 + 0 - 0.60006 - 0.2 = 0.69994
    assert utility_final(standing(), AMONG, PAPER) == pytest.approx(0.69994)


def test_line_13_of_the_preprint_has_no_leading_1_and_p_alone_in_the_delay() -> None:
    # 0.5 - 600 / 1000 * 0.0001 - 0.2 + 0 = 0.29994
    assert utility_preprint(standing(), AMONG, PAPER) == pytest.approx(0.29994)


def test_line_6_lets_a_delay_outweigh_everything_else_only_in_the_final_version() -> None:
    late = standing(duration_ms=5000.0)
    assert utility_final(late, AMONG, PAPER) < 0
    assert utility_preprint(late, AMONG, PAPER) > 0


@pytest.mark.parametrize("formula", [utility_final, utility_preprint])
@pytest.mark.parametrize(("waiting_items", "queue_load"), [(0, 100.0), (1, 0.0)])
def test_lines_8_to_12_add_ql_when_nothing_waits(
    formula: Utility, waiting_items: int, queue_load: float
) -> None:
    busy = formula(standing(waiting_items=2), AMONG, PAPER)
    value = formula(standing(waiting_items=waiting_items), AMONG, PAPER)
    assert value - busy == pytest.approx(queue_load)


@pytest.mark.parametrize(
    ("weights", "final", "preprint"),
    [
        (Weights(instances=2), 1.0 - 0.60006 - 0.2 + 1 + 100, 1.0 - 0.00006 - 0.2 + 100),
        (Weights(queue_load=2), 0.5 - 0.60006 - 0.2 + 1 + 200, 0.5 - 0.00006 - 0.2 + 200),
        (Weights(delay=2), 0.5 - 1.20012 - 0.2 + 1 + 100, 0.5 - 0.00012 - 0.2 + 100),
        (Weights(scalings=2), 0.5 - 0.60006 - 0.4 + 1 + 100, 0.5 - 0.00006 - 0.4 + 100),
        (Weights(empty_queue_bonus=10), 0.5 - 0.60006 - 0.2 + 11, 0.5 - 0.00006 - 0.2 + 10),
        (Weights(penalty_per_item=0.5), 0.5 - 0.9 - 0.2 + 101, 0.5 - 0.3 - 0.2 + 100),
    ],
)
def test_line_13_weighs_each_aspect_with_its_own_weight(
    weights: Weights, final: float, preprint: float
) -> None:
    idle = standing(waiting_items=0)
    assert utility_final(idle, AMONG, weights) == pytest.approx(final)
    assert utility_preprint(idle, AMONG, weights) == pytest.approx(preprint)


@pytest.mark.parametrize("formula", [utility_final, utility_preprint])
def test_line_5_counts_0_when_all_operators_have_as_many_instances(formula: Utility) -> None:
    same = AllOperators(fewest_instances=3, most_instances=3, scalings=20)
    assert formula(standing(), AMONG, PAPER) - formula(standing(), same, PAPER) == pytest.approx(
        0.5
    )


@pytest.mark.parametrize("formula", [utility_final, utility_preprint])
def test_line_7_counts_0_before_the_first_scaling(formula: Utility) -> None:
    before = AllOperators(fewest_instances=1, most_instances=5, scalings=0)
    value = formula(standing(scalings=0), before, PAPER)
    assert value - formula(standing(), AMONG, PAPER) == pytest.approx(0.2)


def test_only_a_positive_utility_lets_an_operator_shrink_the_highest_first() -> None:
    utilities = {"O1": -0.1, "O2": 0.0, "O3": 1.5, "O4": 2.5, "O5": 1.5}
    assert list(best_first(utilities)) == ["O4", "O3", "O5"]


def test_the_original_runtime_counts_record_highs_only() -> None:
    utilities = {"O1": -1.0, "O2": 0.5, "O3": 0.2, "O4": 0.5, "O5": 2.0, "O6": 1.0}
    assert record_highs(utilities) == {"O5": 2.0, "O2": 0.5}
    assert next(iter(record_highs(utilities))) == "O5"
