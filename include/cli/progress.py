"""Progress of runs on a terminal: one line per run, moving window by window."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from include.experiment.spec import RunSpec
from include.runs.batch import RunResult
from include.runs.session import failed_advisors

AGAIN = "\r\x1b[K"
"""Begins the line of a terminal again, of which nothing stays: the one before may be longer."""
TOLD_EVERY_S = 60.0
"""How often runs in real time say that they go on: a window of theirs may take an hour."""


@dataclass(slots=True)
class Progress:
    """Prints to standard output; on a terminal the line of the current run is rewritten."""

    runs: int
    ended: int = 0

    def window(self, spec: RunSpec, summary: Mapping[str, Any]) -> None:
        """A window of the current run is committed."""
        if sys.stdout.isatty():
            print(
                f"{AGAIN}{self._head(spec, self.ended + 1)}  "
                f"window {summary['window'] + 1:>3}/{spec.windows}  "
                f"{summary['end_min']:>5g} min  {summary['hosts']:>3} hosts  "
                f"{summary['instances']:>3} instances  {summary['waiting_items']:>6} waiting",
                end="",
                flush=True,
            )

    def finished(self, result: RunResult) -> None:
        """A run is measured, reused or has failed."""
        self.ended += 1
        start = AGAIN if sys.stdout.isatty() else ""
        print(f"{start}{self._head(result.spec, self.ended)}  {result.line}")
        for advisor, error in failed_advisors(result.summaries).items():
            print(f"    advisor {advisor} failed, and the run went on without it: {error}")

    @contextmanager
    def told_by_the_clock(self, every_s: float = TOLD_EVERY_S) -> Iterator[None]:
        """Say every so often that runs go on, and how many have ended."""
        started_s, over = time.monotonic(), threading.Event()

        def tell() -> None:
            while not over.wait(every_s):
                minutes = round((time.monotonic() - started_s) / 60)
                line = f"{minutes} min since the start, {self.ended} of {self.runs} runs have ended"
                on_terminal = sys.stdout.isatty()
                with suppress(OSError):  # whoever reads it may be gone; the run goes on
                    print(
                        f"{AGAIN if on_terminal else ''}{line}",
                        end="" if on_terminal else "\n",
                        flush=True,
                    )

        teller = threading.Thread(target=tell, daemon=True)
        teller.start()
        try:
            yield
        finally:
            over.set()
            teller.join()

    def _head(self, spec: RunSpec, number: int) -> str:
        return f"[{number}/{self.runs}] {spec.run_id}"
