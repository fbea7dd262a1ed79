"""Progress of runs on a terminal: one line per run, moving window by window."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from include.experiment.spec import RunSpec
from include.model.compliance import LEVEL_NAMES
from include.runs.batch import RunResult
from include.runs.session import failed_advisors


@dataclass(slots=True)
class Progress:
    """Prints to standard output; on a terminal the line of the current run is rewritten."""

    runs: int
    begun: int = 0
    spec: RunSpec | None = None
    started_s: float = field(default_factory=time.perf_counter)

    def begin(self, spec: RunSpec) -> None:
        self.begun += 1
        self.spec = spec
        self.started_s = time.perf_counter()

    def window(self, summary: Mapping[str, Any]) -> None:
        if sys.stdout.isatty() and self.spec is not None:
            done = summary["window"] + 1
            print(
                f"\r{self._head(self.spec)}  window {done:>3}/{self.spec.windows}  "
                f"{summary['end_min']:>5g} min  {summary['hosts']:>3} hosts  "
                f"{summary['instances']:>3} instances  {summary['waiting_items']:>6} waiting",
                end="",
                flush=True,
            )

    def end(self, spec: RunSpec, summaries: Sequence[Mapping[str, Any]]) -> None:
        self._line(spec, summaries, f"{time.perf_counter() - self.started_s:.2f} s")

    def _line(self, spec: RunSpec, summaries: Sequence[Mapping[str, Any]], took: str) -> None:
        samples = max(1, sum(summary["samples"] for summary in summaries))
        shares = [
            100 * sum(summary["samples_within"][level] for summary in summaries) / samples
            for level in LEVEL_NAMES
        ]
        compliance = " / ".join(f"{share:.1f}" for share in shares)
        start = "\r" if sys.stdout.isatty() else ""
        left = summaries[-1]["waiting_items"] if summaries else 0
        print(
            f"{start}{self._head(spec)}  compliance {compliance} % "
            f"(real-time / near real-time / relaxed), {left} items left  {took}"
        )
        for advisor, error in failed_advisors(summaries).items():
            print(f"    advisor {advisor} failed, and the run went on without it: {error}")

    def finished(self, result: RunResult) -> None:
        """Print the line of one run of a batch that has ended."""
        self.begun += 1
        if result.outcome == "failed":
            print(f"{self._head(result.spec)}  FAILED: {result.error.strip().splitlines()[-1]}")
        else:
            self._line(result.spec, result.summaries, result.how)

    def _head(self, spec: RunSpec) -> str:
        return f"[{self.begun}/{self.runs}] {spec.run_id}"
