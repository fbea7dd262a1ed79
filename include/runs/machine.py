"""How busy the machine is that a run in real time shares: its load, and how late timers are."""

from __future__ import annotations

import math
import os
import threading
import time
from typing import Self

TIMER_S = 0.02
LOAD_EVERY = 250
"""Timers from one look at the load average to the next: five seconds."""


class MachineWatch:
    """Watches while it is entered, in a thread of this process; see ``rows.MachineRow``."""

    def __init__(self) -> None:
        self._lags_ms: list[float] = []
        self._loads: list[float] = [os.getloadavg()[0]]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="machine", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def columns(self, time_s: float) -> dict[str, list[float]]:
        """The row of ``machine`` for what was watched until ``time_s``, as columns."""
        lags_ms = sorted(self._lags_ms) or [0.0]
        return {
            "time_s": [time_s],
            "load": [max(self._loads)],
            "timer_lag_p99_ms": [lags_ms[math.ceil(0.99 * len(lags_ms)) - 1]],
            "timer_lag_max_ms": [lags_ms[-1]],
        }

    def _watch(self) -> None:
        while not self._stop.is_set():
            due_s = time.perf_counter() + TIMER_S
            time.sleep(TIMER_S)
            self._lags_ms.append(max(0.0, (time.perf_counter() - due_s) * 1000))
            if len(self._lags_ms) % LOAD_EVERY == 0:
                self._loads.append(os.getloadavg()[0])
