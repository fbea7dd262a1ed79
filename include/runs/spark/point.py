"""One point of a sweep, on whatever machine Spark has chosen: measure it and say how it went."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from include.experiment.spec import RunSpec
from include.runs.batch import RunResult, how, run_batch


@dataclass(frozen=True, slots=True, kw_only=True)
class PointStatus:
    """One row of ``sweep_status.csv``: all that leaves a worker.

    Options are JSON. ``took_s`` is 0 for a reused point, and ``stored`` says what was found of it
    before; ``samples`` are sampled items, and the percentages their compliance over the whole
    run (None after a failure or without a sample).
    """

    run: str
    controller: str
    controller_options: str
    pattern: str
    pattern_options: str
    btu_min: float
    seed: int
    outcome: Literal["measured", "reused", "failed"]
    took_s: float = 0.0
    stored: str = ""
    samples: int = 0
    real_time_percent: float | None = None
    near_real_time_percent: float | None = None
    relaxed_percent: float | None = None
    error: str = ""

    def line(self) -> str:
        if self.outcome == "failed":
            reason = self.error.strip().splitlines()
            return f"{self.run}  FAILED: {reason[-1] if reason else 'for no known reason'}"
        shares = (self.real_time_percent, self.near_real_time_percent, self.relaxed_percent)
        compliance = " / ".join("-" if share is None else f"{share:.1f}" for share in shares)
        came = how(self.outcome, self.took_s, self.stored)
        return f"{self.run}  compliance {compliance} %  {came}"


def measure_point(text: str, root: str) -> str:
    """Measure the run whose JSON is ``text`` below ``root``; returns its status as JSON.

    A complete run of the same inputs and code is reused, an interrupted one goes on from its
    last window. Never raises: what goes wrong is in the status.
    """
    result = run_batch([RunSpec.from_json(text)], Path(root), processes=1)[0]
    return json.dumps(asdict(status_of(result)))


def status_of(result: RunResult) -> PointStatus:
    """The status of a run that has ended, one way or the other."""
    spec = result.spec
    return PointStatus(
        run=spec.run_id,
        controller=spec.controller,
        controller_options=_as_json(spec.controller_options),
        pattern=spec.pattern,
        pattern_options=_as_json(spec.pattern_options),
        btu_min=spec.btu_min,
        seed=spec.seed,
        outcome=result.outcome,
        took_s=result.took_s,
        stored=result.stored,
        samples=result.samples,
        error=result.error,
        **{f"{level}_percent": share for level, share in result.compliance_percent.items()},
    )


def _as_json(options: object) -> str:
    return json.dumps(options, sort_keys=True)
