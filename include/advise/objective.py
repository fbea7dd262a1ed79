"""What a user asks of a job: a share of the records within a latency."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from include.model.errors import SpecError
from include.workloads.recordings import Recording
from include.workloads.recordings.recording import FloatArray

_LIMIT = r"(\d{1,9}(?:\.\d+)?)\s*(ms|s|min)"
_PERCENTILE = re.compile(r"(?:latency\s+)?p(\d+(?:\.\d+)?)\s*<=?\s*" + _LIMIT)
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%\s*within\s+" + _LIMIT)
_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0}
MOST_S = 86_400.0


@dataclass(frozen=True, slots=True)
class LatencyObjective:
    """At least ``share`` of the records have a latency of at most ``limit_s``."""

    share: float
    limit_s: float

    def __str__(self) -> str:
        """As a sentence has it."""
        return f"{self.share * 100:g} % within {self.limit_s:g} s"

    def within(self, load_per_s: FloatArray, latency_s: FloatArray) -> float:
        """The share of the records that came while the latency was within the limit.

        Where latency is absent nothing is known, and nothing counts; where no record comes, none
        is late.
        """
        measured = ~np.isnan(latency_s)
        met = measured & (latency_s <= self.limit_s)
        came = float(load_per_s[measured].sum())
        return float(load_per_s[met].sum()) / came if came else 1.0

    def between(
        self, load_per_s: FloatArray, latency_s: FloatArray, unknown: NDArray[np.bool_]
    ) -> tuple[float, float]:
        """The share if all records were late, and if none were, that come while it is unknown."""
        late, prompt = (np.where(unknown, one, latency_s) for one in (np.inf, 0.0))
        return self.within(load_per_s, late), self.within(load_per_s, prompt)


def parse_objective(text: str) -> LatencyObjective:
    """``latency p95 < 2 s`` or ``95 % within 2 s``. Raises SpecError for anything else."""
    for form in (_PERCENTILE, _SHARE):
        match = form.fullmatch(text.strip().lower())
        if match is None:
            continue
        percent, limit, unit = float(match[1]), float(match[2]), match[3]
        limit_s = limit * _SECONDS[unit]
        if 0 < percent < 100 and 0 < limit_s <= MOST_S:
            return LatencyObjective(float(f"{match[1]}e-2"), limit_s)  # 99.9 / 100 is above 0.999
    problem = f"cannot read {text!r}; write 'latency p95 < 2 s' or '95 % within 2 s'"
    raise SpecError("--objective", [problem])


def percentile_doubts(recording: Recording, objective: LatencyObjective) -> list[str]:
    """What to mind where the column of the latency names no percentile. Raises SpecError if it
    names a lower one than is asked for."""
    recorded, column = recording.latency_percentile, recording.latency_column
    asked = f"p{100 * objective.share:g}"
    if recorded is not None and recorded < 100 * objective.share - 1e-9:
        problem = (
            f"{column} is p{recorded:g}: up to {100 - recorded:.4g} % of the records are later "
            f"than it says, so {asked} cannot be told from it; map a column of {asked} "
            f"(--map latency=COLUMN), or ask for p{recorded:g}"
        )
        raise SpecError(recording.name, [problem])
    if recorded is not None:
        return []
    if recording.latency_is_mean:
        late = "is a mean, so some records of every reading are later than it says, and"
        how = f"is worse than what is told here; map a column of {asked}"
        return [f"{column} {late} {asked} {how}"]
    taken = "does not say of which percentile it is, and is taken for"
    return [f"{column or 'the latency'} {taken} {asked}; call it latency_{asked}_s if it is"]
