"""The ranking of policies by what their replays come to, and the gate behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from statistics import fmean

import pyarrow as pa

from include.advise.margins import CANNOT_TELL, HOLDS, share_range, verdict
from include.advise.outcomes import ReplayOutcome, failures, read_outcomes
from include.model.errors import GateFailed
from include.results.quality.gates import require_sound
from include.results.tables.catalogue import ADVICE_RANKING
from include.results.tables.staged import staged_path, staged_schema, write_table

MAY_HOLD = 2
"""The place, after those that hold the objective, of policies whose mean share reaches it, while
it cannot be told whether they hold it."""
SAME_COST = 1.01
"""Costs of such policies up to so many times the lowest count as the same: chosen, after one
recording on which 0.02 % of cost decided."""
HIGHER_LOAD = "a higher load of each instance"
"""What a row says is to be recorded."""
KNOWN = 0.01
"""Shares within a narrower range have two decimals of a percent, others one."""
DECIMALS = 9
"""Costs that differ by less are the same: that is the order in which they were added up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRow:
    """A row of the table advice_ranking: a policy, or the job as it was run. ``holds`` is yes, no
    or cannot tell, ``to_record`` what would tell."""

    rank: int
    policy: str
    controller: str
    seeds: int
    holds: str
    to_record: str
    guessed: bool
    cost_per_month: float
    lowest_cost: float
    highest_cost: float
    regret: float
    share_within: float
    lowest_share: float
    highest_share: float
    share_margin: float
    worst_hour_share: float
    scalings_per_day: float
    mean_instances: float
    share_cheapest: float

    @property
    def cost_span(self) -> str:
        """From what to what a month may cost."""
        return f"{self.lowest_cost:,.0f} to {self.highest_cost:,.0f}"

    @property
    def share_span(self) -> str:
        """From what to what the share within the limit may be; hundredths of a percent only where
        it is known to a percent."""
        decimals = 2 if self.highest_share - self.lowest_share < KNOWN else 1
        return f"{percent(self.lowest_share, decimals)} to {percent(self.highest_share, decimals)}"


def percent(share: float, decimals: int = 2) -> str:
    """A share for readers, without zeros at its end: ``98.85 %``, ``22 %``."""
    return f"{round(100 * share, decimals):g} %"


def money(cost: float, sign: str = "") -> str:
    """A cost for readers: cents only below a thousand."""
    return f"{cost:{sign},.{2 if abs(cost) < 1000 else 0}f}"


def build_ranking(folder: Path) -> int:
    """Write ``folder/staged/advice_ranking.parquet`` and return its rows.

    A gate: raises GateFailed unless Great Expectations accepts the ranking, or when every
    controller has failed; StoreError without replays.
    """
    outcomes, failed = read_outcomes(folder), failures(folder)
    if failed and all(outcome.as_run for outcome in outcomes):
        raise GateFailed("\n".join(["every controller failed:", *failed.values()]))
    rows = [asdict(row) for row in ranked(outcomes)]
    table = pa.Table.from_pylist(rows, staged_schema(ADVICE_RANKING))
    count = write_table(staged_path(folder, ADVICE_RANKING), ADVICE_RANKING, table)
    require_sound(folder, (ADVICE_RANKING,))
    return count


def ranked(outcomes: Sequence[ReplayOutcome]) -> list[PolicyRow]:
    """Policies that hold the objective by cost, then those that hold it by a guess, then those of
    which it cannot be told (by cost where their mean reaches it; of costs within `SAME_COST` the
    highest ``lowest_share`` first), then the others by how much they miss it.

    What was recorded is no candidate: rank 0. Of policies that come to the same the one is first
    that scales least, then the one of which most is known, then the one that was tried first.
    """
    in_order = sorted(outcomes, key=lambda replay: (replay.position, replay.seed))
    policies = [list(replays) for _, replays in groupby(in_order, key=lambda replay: replay.policy)]
    candidates = [own for own in policies if not (own[0].as_run or own[0].guessed)]
    holding = [own for own in candidates if _means(own, 0).holds == HOLDS]
    won = Counter(min(of_seed, key=_price).policy for of_seed in zip(*holding, strict=True))
    as_run = [_means(own, 0) for own in policies if own[0].as_run]
    others = [_means(own, won[own[0].policy]) for own in policies if not own[0].as_run]
    place = partial(_place, target=outcomes[0].asked_share)
    in_places = groupby(sorted(others, key=place), key=lambda row: place(row)[0])
    others = [
        row
        for number, own in in_places
        for row in (_surest_first([*own]) if number == MAY_HOLD else own)
    ]
    return [*as_run, *(replace(row, rank=rank) for rank, row in enumerate(others, start=1))]


def _surest_first(by_cost: Sequence[PolicyRow]) -> list[PolicyRow]:
    """Rows by cost, but of those that cost about the same the one of which most is known first."""
    ordered: list[PolicyRow] = []
    while rest := by_cost[len(ordered) :]:
        most = SAME_COST * rest[0].cost_per_month
        alike = [row for row in rest if row.cost_per_month <= most]
        ordered += sorted(alike, key=lambda row: -row.lowest_share)
    return ordered


def _to_record(replays: Sequence[ReplayOutcome]) -> str:
    """What would tell whether the objective is held, where that is not known."""
    first, shares = replays[0], [replay.share_within for replay in replays]
    if all((replay.known_share, replay.possible_share) == (0.0, 1.0) for replay in replays):
        return "scalings"
    if verdict(first.asked_share, *share_range(shares, shares, first.share_margin)) != CANNOT_TELL:
        return HIGHER_LOAD
    return f"a day under {first.policy}"


def _price(replay: ReplayOutcome) -> tuple[float, float, float]:
    return round(replay.cost_per_month, DECIMALS), replay.scalings_per_day, replay.share_margin


def _place(row: PolicyRow, target: float) -> tuple[int, float, float, float]:
    ties = row.scalings_per_day, row.share_margin
    if row.holds == HOLDS:
        return int(row.guessed), row.cost_per_month, *ties
    if row.holds == CANNOT_TELL and row.share_within >= target:
        return MAY_HOLD, row.cost_per_month, *ties
    place = 3 if row.holds == CANNOT_TELL else 4
    return place, -row.share_within, *ties


def _means(replays: Sequence[ReplayOutcome], won: int) -> PolicyRow:
    """The row of a policy by its replays, before it has a rank; ``won`` is with how many seeds it
    was the cheapest."""
    costs = [replay.cost_per_month for replay in replays]
    margin = replays[0].cost_margin
    known = [replay.known_share for replay in replays]
    possible = [replay.possible_share for replay in replays]
    low, high = share_range(known, possible, replays[0].share_margin)
    held = verdict(replays[0].asked_share, low, high)
    figures = {
        "cost_per_month": fmean(costs),
        "lowest_cost": max(0.0, min(*costs, fmean(costs) * (1 - margin))),
        "highest_cost": max(*costs, fmean(costs) * (1 + margin)),
        "regret": fmean(costs) / fmean(replay.bound_cost for replay in replays),
        "share_within": fmean(replay.share_within for replay in replays),
        "lowest_share": low,
        "highest_share": high,
        "share_margin": replays[0].share_margin,
        "worst_hour_share": min(replay.worst_hour_share for replay in replays),
        "scalings_per_day": fmean(replay.scalings_per_day for replay in replays),
        "mean_instances": fmean(replay.mean_instances for replay in replays),
        "share_cheapest": won / len(replays),
    }
    return PolicyRow(
        rank=0,
        policy=replays[0].policy,
        controller=replays[0].controller,
        seeds=len(replays),
        holds=held,
        to_record=_to_record(replays) if held == CANNOT_TELL else "",
        guessed=replays[0].guessed,
        **{name: round(value, DECIMALS) for name, value in figures.items()},
    )
