"""A row for every start of the job in the run: who caused it, how long nothing came out, what was
done again."""

from __future__ import annotations

import math
from collections.abc import Iterator

from include.testbeds.flink.instances import JobStart, counted
from include.testbeds.flink.rows import RowFile, bounds_of, counts, row_files
from include.testbeds.flink.state import CONTROLLER, FlinkState, PendingRescale

SHOWN_AFTER_S = 10.0
"""Outputs have so long (wall) to say something after a start; then nobody knows its gap."""


class RestartRows:
    """Writes each row once its gap is over."""

    def __init__(self, state: FlinkState) -> None:
        self._state = state
        origins = {edge.origin for edge in state.config.topology.edges}
        self._outputs = [name for name in state.operators if name not in origins]

    def write(self, starts: list[JobStart], *, at_end: bool = False) -> None:
        """Rows of starts whose gap can be seen by now."""
        state = self._state
        if not state.restarts:
            return
        files = list(row_files(state.folder, state.operators))
        left = []
        for restart in state.restarts:
            first_us = min(self._outputs_us(restart.graph, files), default=None)
            waited_s = (state.now_s() - restart.up_s) / state.clock.scale
            if first_us is None and waited_s < SHOWN_AFTER_S and not at_end:
                left.append(restart)
                continue
            row = self._row(restart, first_us, starts, files)
            state.journal.append("rescale", [row])
            if not math.isnan(gap_s := float(row[3])):
                state.job_starts += 1
                if restart.cause == CONTROLLER:
                    state.job_changes += 1
                    state.job_paused_in_all_s += gap_s
        state.restarts = left

    def _row(
        self,
        restart: PendingRescale,
        first_us: int | None,
        starts: list[JobStart],
        files: list[RowFile],
    ) -> tuple[float | str | int, ...]:
        """Columns of the table; the gap is NaN where no output says when it began or ended.

        It begins with the last item that counts, and what is done again had been done since.
        """
        bounds = bounds_of(starts)
        previous = next(each for each in starts if each.graph == restart.previous)
        down_s = min(self._down_s(previous), restart.up_s)
        before = [file for file in files if file.graph == restart.previous]
        counting = [file for file in before if counts(file, bounds)]
        last_us = max(self._outputs_us(restart.previous, counting), default=None)
        gap_s = math.nan
        if first_us is not None and last_us is not None:
            gap_s = max(0.0, self._state.second_of(first_us) - self._state.second_of(last_us))
        return (
            min(restart.asked_s, down_s) if restart.asked_s >= 0 else down_s,
            down_s,
            restart.up_s,
            round(gap_s, 6),
            restart.cause,
            sum(len(file.rows()) for file in before if not counts(file, bounds)),
            restart.checkpoint_s,
            restart.checkpoint_bytes,
            restart.before,
            restart.after,
        )

    def _down_s(self, start: JobStart) -> float:
        """When the first of its subtasks closed; where none could, when the last wrote last, or
        opened where none could write either."""
        lines = [line for each in start.subtasks if (line := counted(each)) is not None]
        closed = [line.us for line in lines if line.closed]
        last_us = max((line.us for line in lines), default=start.up_us)
        return self._state.second_of(min(closed, default=last_us))

    def _outputs_us(self, graph: str, files: list[RowFile]) -> Iterator[int]:
        """When items were done at the outputs, in one start of the job."""
        of = (file for file in files if file.graph == graph and file.operator in self._outputs)
        return (row.done_us for file in of for row in file.rows())
