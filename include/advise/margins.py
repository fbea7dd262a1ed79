"""How far predictions of recorded jobs have been off, and the margins that follow from it."""

from __future__ import annotations

import csv
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from include.advise.request import BY_BUSY_TIME, BY_CPU, END_TO_END, FIXED, SUITABLE, WHOLE_WAY
from include.files.inputs import input_text
from include.files.whole import csv_text
from include.model.errors import SpecError
from include.workloads.topologies import validation_problems

TABLE = Path(__file__).with_name("backtest_errors.csv")
"""Backtests of the recordings that docs/advise.md names, written by `tidebench backtest-errors`."""
BUSY_TIME = "busy time"
KINDS = ("fixed", "cpu", BUSY_TIME, END_TO_END, "other")
HOLDS, MISSES, CANNOT_TELL = "yes", "no", "cannot tell"
ROUNDING = 1e-9
Above0 = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestError:
    """A model that was fitted to one recording, held against another one of its job.

    ``fitted_under`` and ``under`` are the kinds of the scalers of the two. The limit is
    ``limit_over_rest`` times the latency at rest, shares are of the records within it, instances
    are means over time (what hosts cost by the second is proportional). ``by_operator`` if every
    operator had a model of its own.
    """

    fitted: str
    fitted_under: str
    against: str
    under: str
    limit_over_rest: Above0
    predicted_share: Share
    recorded_share: Share
    predicted_instances: Above0
    recorded_instances: Above0
    by_operator: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """How far a prediction may be off: ``share`` of the records, ``cost`` as a share of it, as
    ``backtests`` have shown. None has shown anything of a controller that is not in the list: the
    share may be any."""

    share: float = 0.0
    cost: float = 0.0
    backtests: int = 0


def scaler_kind(controller: str, options: Mapping[str, Any]) -> str:
    """What a controller decides by: how well that is predicted is what its kind has in common. One
    that is not in the list is a kind of its own."""
    if controller not in SUITABLE:
        return controller
    if controller == FIXED:
        return "fixed"
    if options.get(WHOLE_WAY):
        return END_TO_END
    if controller in BY_CPU:
        return "cpu"
    return BUSY_TIME if controller in BY_BUSY_TIME else "other"


def margin_of(
    errors: Sequence[BacktestError],
    fitted_under: str | None,
    under: str,
    limit_over_rest: float,
    *,
    by_operator: bool = False,
) -> Margin:
    """The margin of what is predicted for a scaler of the kind ``under`` from a recording that was
    made under ``fitted_under`` (None: not known).

    Backtests of models of every operator or of the whole job count, as is asked, of scalers of the
    kind, of recordings that were both made under a scaler by busy
    time or both not: that one deploys a job again for every change, so a recording tells of little
    else. Where there is none of a kind in `KINDS`, all count. Of n backtests the
    largest error is taken (n + 1) / n times: of n draws from 0 to an unknown end that is the
    unbiased estimate of the end. Shares are of the limits on both sides of the one asked for; of
    one nearer to rest than any backtest nothing is known.
    """
    errors = [error for error in errors if error.by_operator == by_operator] or errors
    if fitted_under is not None:
        redeployed = fitted_under == BUSY_TIME
        same = [one for one in errors if (one.fitted_under == BUSY_TIME) == redeployed]
        errors = same or errors
    of_kind = [error for error in errors if error.under == under]
    errors = of_kind or errors
    limits = sorted({one.limit_over_rest for one in errors})
    place = bisect_left(limits, limit_over_rest)
    near = limits[max(0, min(place - 1, len(limits) - 1)) : place + 1]
    shares = (
        abs(one.predicted_share - one.recorded_share)
        for one in errors
        if one.limit_over_rest in near
    )
    costs = (abs(one.recorded_instances / one.predicted_instances - 1) for one in errors)
    count = len({(one.fitted, one.against) for one in errors})
    wider = (count + 1) / count
    if not of_kind and under not in KINDS:
        return Margin(share=1.0, cost=wider * max(costs))
    if 1 <= limit_over_rest < limits[0]:  # a replay at rest has one latency, a job has many
        return Margin(share=1.0, cost=wider * max(costs), backtests=count)
    return Margin(share=wider * max(shares), cost=wider * max(costs), backtests=count)


def share_range(
    known: Sequence[float], possible: Sequence[float], margin: float
) -> tuple[float, float]:
    """From what to what the share within the limit may be: over the seeds, and around their mean.

    ``known`` counts records for late, ``possible`` for in time, that come at a load of which
    nothing was recorded.
    """
    low = min(*known, sum(known) / len(known) - margin)
    high = max(*possible, sum(possible) / len(possible) + margin)
    return max(0.0, low), min(1.0, high)


def verdict(target: float, low: float, high: float) -> str:
    """Whether a share from low to high is as high as asked, but for the rounding of its sums."""
    least = target - ROUNDING
    return HOLDS if low >= least else MISSES if high < least else CANNOT_TELL


def errors_csv(errors: Sequence[BacktestError]) -> str:
    """The table as a file."""
    rows = [[f"{cell:.5g}" if isinstance(cell, float) else cell for cell in astuple(one)]
            for one in errors]  # fmt: skip
    return csv_text([field.name for field in fields(BacktestError)], rows)


def read_errors(text: str, name: str) -> tuple[BacktestError, ...]:
    """What `errors_csv` wrote. Raises SpecError for anything else."""
    rows = tuple(csv.DictReader(text.splitlines()))
    try:
        errors = TypeAdapter(tuple[BacktestError, ...]).validate_python(rows)
    except ValidationError as error:
        first = validation_problems(error)[0]
        problem = f"is no table of backtest errors ({first}); write one with backtest-errors"
        raise SpecError(name, [problem]) from error
    if not errors:
        raise SpecError(name, ["has no backtests; write one with backtest-errors"])
    return errors


def errors_text(path: str) -> str:
    """The table at ``path``, or the one that comes with the project. Raises SpecError."""
    return input_text(path or TABLE, "table of backtest errors")
