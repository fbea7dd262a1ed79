"""LocalExecutor that reports the end of every task late, as on a machine that is very busy."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from airflow.executors.local_executor import LocalExecutor

LATE_S = 20.0


class LateExecutor(LocalExecutor):
    """Keeps what workers report for ``LATE_S`` seconds before the scheduler hears of it."""

    def start(self) -> None:
        self.kept: deque[tuple[float, Any, Any]] = deque()
        super().start()

    def _read_results(self) -> None:
        while not self.result_queue.empty():
            key, state, _ = self.result_queue.get()
            self.kept.append((time.monotonic() + LATE_S, key, state))
        while self.kept and self.kept[0][0] <= time.monotonic():
            _, key, state = self.kept.popleft()
            self.change_state(key, state)
