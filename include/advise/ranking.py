"""The ranking of policies by what their replays come to, and the gate behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow as pa

from include.advise.outcomes import ReplayOutcome, read_outcomes
from include.results.quality.gates import require_sound
from include.results.tables.catalogue import ADVICE_RANKING, schema_of
from include.results.tables.staged import staged_path, staged_schema, write_table

DECIMALS = 9
"""Costs that differ by less are the same: that is the order in which they were added up."""


def build_ranking(folder: Path) -> int:
    """Write ``folder/staged/advice_ranking.parquet`` and return its rows.

    Raises StoreError without replays.
    """
    rows = pa.Table.from_pylist(ranked(read_outcomes(folder)), staged_schema(ADVICE_RANKING))
    return write_table(staged_path(folder, ADVICE_RANKING), rows, schema_of(ADVICE_RANKING))


def check_ranking(folder: Path) -> None:
    """Gate: raises GateFailed unless Great Expectations accepts the ranking."""
    require_sound(folder, (ADVICE_RANKING,))


def ranked(outcomes: Sequence[ReplayOutcome]) -> list[dict[str, Any]]:
    """Rows of the table advice_ranking: policies that hold the objective with every seed by cost,
    then those that hold it by a guess, then the others by how much they miss it.

    What was recorded is no candidate: rank 0. Of policies that come to the same the one is first
    that scales least, then the one that was tried first.
    """
    in_order = sorted(outcomes, key=lambda one: (one.position, one.seed))
    by_policy = [list(rows) for _, rows in groupby(in_order, key=lambda one: one.policy)]
    won = _seeds_won([rows for rows in by_policy if _holds(rows) and _is_candidate(rows[0])])
    as_run = [_means(rows, 0) for rows in by_policy if rows[0].as_run]
    others = [_means(rows, won.get(rows[0].policy, 0)) for rows in by_policy if not rows[0].as_run]
    return [
        {**row, "rank": rank} for rank, row in enumerate([*as_run, *sorted(others, key=_place)])
    ]


def _is_candidate(one: ReplayOutcome) -> bool:
    return not one.as_run and not one.guessed


def _holds(rows: Sequence[ReplayOutcome]) -> bool:
    return all(one.share_within >= one.asked_share for one in rows)


def _seeds_won(policies: Sequence[Sequence[ReplayOutcome]]) -> dict[str, int]:
    """With how many seeds each was the cheapest."""
    won: dict[str, int] = {}
    for of_seed in zip(*policies, strict=True):
        best = min(
            of_seed, key=lambda one: (round(one.cost_per_month, DECIMALS), one.scalings_per_day)
        )
        won[best.policy] = won.get(best.policy, 0) + 1
    return won


def _place(row: Mapping[str, Any]) -> tuple[bool, bool, float, float]:
    if row["holds"]:
        return False, row["guessed"], row["cost_per_month"], row["scalings_per_day"]
    return True, False, -row["share_within"], row["scalings_per_day"]


def _means(rows: Sequence[ReplayOutcome], won: int) -> dict[str, Any]:
    """A row of the table, but its rank; ``rows`` are the replays of a policy."""
    costs = [one.cost_per_month for one in rows]
    figures = {
        "cost_per_month": fmean(costs),
        "lowest_cost": min(costs),
        "highest_cost": max(costs),
        "regret": fmean(costs) / fmean(one.bound_cost for one in rows),
        "share_within": fmean(one.share_within for one in rows),
        "worst_hour_share": min(one.worst_hour_share for one in rows),
        "scalings_per_day": fmean(one.scalings_per_day for one in rows),
        "mean_instances": fmean(one.mean_instances for one in rows),
        "share_cheapest": won / len(rows),
    }
    return {
        "policy": rows[0].policy,
        "controller": rows[0].controller,
        "seeds": len(rows),
        "holds": _holds(rows),
        "guessed": rows[0].guessed,
        **{name: round(value, DECIMALS) for name, value in figures.items()},
    }
