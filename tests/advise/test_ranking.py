"""The ranking on small rows: who holds, what that costs, and who wins a seed."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from include.advise.outcomes import ReplayOutcome
from include.advise.ranking import build_ranking, ranked
from include.files.whole import write_json
from include.model.errors import GateFailed, StoreError
from include.results.tables.staged import read_staged


def row(position: int, policy: str, cost: float, within: float, **more: Any) -> ReplayOutcome:
    """A replay of a policy; position 0 is what was recorded. Asked are 90 %, the bound is 10."""
    values: dict[str, Any] = {
        "controller": "hpa", "as_run": position == 0, "guessed": False, "seed": 1,
        "worst_hour_share": 0.5, "scalings_per_day": 0.0, "mean_instances": 1.0,
        "asked_share": 0.9, "bound_cost": 10.0, "known_share": within, "possible_share": within,
        "share_margin": 0.0, "cost_margin": 0.0,
    } | more  # fmt: skip
    return ReplayOutcome(
        position=position, policy=policy, cost_per_month=cost, share_within=within, **values
    )


def test_the_cheapest_that_holds_comes_first_and_of_the_others_the_nearest() -> None:
    rows = ranked(
        [
            row(0, "as it was run", 90, 0.8),
            row(1, "near", 60, 0.89),
            row(2, "dear", 50, 0.99),
            row(3, "cheap", 40, 0.9),
            row(4, "far", 10, 0.1),
        ]
    )
    assert [one.policy for one in rows] == ["as it was run", "cheap", "dear", "near", "far"]
    assert [one.rank for one in rows] == [0, 1, 2, 3, 4]
    assert [one.holds for one in rows] == ["no", "yes", "yes", "no", "no"]
    assert [one.regret for one in rows] == [9.0, 4.0, 5.0, 6.0, 1.0]
    assert [one.share_cheapest for one in rows] == [0.0, 1.0, 0.0, 0.0, 0.0]


def test_a_guess_comes_after_all_that_hold_and_of_equal_costs_who_scales_least_is_first() -> None:
    rows = ranked(
        [
            row(0, "as it was run", 90, 0.99),
            row(1, "guess", 20, 1.0, guessed=True),
            row(2, "scales", 30 + 1e-12, 1.0, scalings_per_day=9.0),
            row(3, "quiet", 30, 0.95),
            row(4, "as quiet", 30, 0.95),
            row(5, "misses", 10, 0.5),
        ]
    )
    names = ["quiet", "as quiet", "scales", "guess", "misses"]
    assert [one.policy for one in rows[1:]] == names
    assert [one.share_cheapest for one in rows[1:]] == [1.0, 0.0, 0.0, 0.0, 0.0]


def test_of_those_that_may_hold_and_cost_the_same_the_surest_is_first() -> None:
    rows = ranked(
        [
            row(1, "dear", 102.0, 0.95, share_margin=0.1),
            row(2, "cheapest", 100.0, 0.95, share_margin=0.4),
            row(3, "surer", 100.9, 0.95, share_margin=0.2),
            row(4, "below", 100.0, 0.85, share_margin=0.1),
            row(5, "surest, dearer", 103.03, 0.95, share_margin=0.06),
        ]
    )

    assert {one.holds for one in rows} == {"cannot tell"}
    names = ["surer", "cheapest", "dear", "surest, dearer", "below"]
    assert [one.policy for one in rows] == names
    assert [one.rank for one in rows] == [1, 2, 3, 4, 5]


def test_one_seed_that_misses_is_enough_and_means_are_over_seeds() -> None:
    rows = ranked(
        [
            row(0, "as it was run", 90, 0.99),
            row(1, "a", 20, 1.0, scalings_per_day=2.0, mean_instances=3.0, worst_hour_share=0.9),
            row(1, "a", 30, 0.85, seed=2, scalings_per_day=4.0, mean_instances=4.0),
            row(2, "b", 50, 0.9),
            row(2, "b", 60, 0.92, seed=2),
            row(3, "c", 70, 0.9),
            row(3, "c", 41, 0.92, seed=2, bound_cost=5.0),
        ]
    )
    assert [one.policy for one in rows[1:]] == ["b", "c", "a"]
    assert [one.share_cheapest for one in rows[1:]] == [0.5, 0.5, 0.0]
    *_, c, a = rows
    assert a.holds == "cannot tell"
    assert (a.cost_per_month, a.lowest_cost, a.highest_cost) == (25.0, 20.0, 30.0)
    assert (a.share_within, a.worst_hour_share, a.seeds) == (0.925, 0.5, 2)
    assert (a.scalings_per_day, a.mean_instances) == (3.0, 3.5)
    assert c.regret == 7.4


def measured(folder: Path, *rows: ReplayOutcome) -> Path:
    """A folder with a file of rows per policy."""
    for one in rows:
        path = folder / "measurements" / f"{one.position:03d}.json"
        write_json(path, [asdict(one)])
    return folder


def test_what_is_ranked_is_staged_and_checked(tmp_path: Path) -> None:
    folder = measured(tmp_path, row(0, "as it was run", 90, 0.99), row(1, "a", 20, 1.0))
    assert build_ranking(folder) == 2
    assert [one["policy"] for one in read_staged(folder, "advice_ranking")] == [
        "as it was run",
        "a",
    ]
    with pytest.raises(GateFailed, match="share_within"):
        build_ranking(measured(tmp_path, row(1, "a", 20, 1.5)))


def test_missing_and_foreign_rows_are_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="has no replays; ask for the advice again"):
        build_ranking(tmp_path)
    write_json(tmp_path / "measurements" / "000.json", [{"policy": "a", "price": 1}])
    with pytest.raises(StoreError, match="is of another version"):
        build_ranking(tmp_path)


def test_a_range_of_shares_has_no_more_digits_than_are_known() -> None:
    rows = ranked(
        [
            row(0, "narrow", 90, 0.9886, known_share=0.9885, possible_share=0.9887),
            row(1, "wide", 60, 0.9, known_share=0.22, possible_share=1.0),
            row(2, "between", 50, 0.9, known_share=0.7849, possible_share=0.95),
        ]
    )
    assert {one.policy: one.share_span for one in rows} == {
        "narrow": "98.85 % to 98.87 %",
        "wide": "22 % to 100 %",
        "between": "78.5 % to 95 %",
    }
