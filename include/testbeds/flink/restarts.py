"""A row for every start of the job in the run: who caused it, how long nothing came out, what was
done again."""

from __future__ import annotations

import math

from include.testbeds.flink.instances import JobStart, counted
from include.testbeds.flink.rows import ItemRow, RowFile, bounds_of, counts, row_files
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
            first_s = self._first_output_s(restart, files)
            waited_s = (state.now_s() - restart.up_s) / state.clock.scale
            if first_s is None and waited_s < SHOWN_AFTER_S and not at_end:
                left.append(restart)
                continue
            row = self._row(restart, first_s, starts, files)
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
        first_s: float | None,
        starts: list[JobStart],
        files: list[RowFile],
    ) -> tuple[float | str | int, ...]:
        """Columns of the table; the gap is NaN where no output says when it ended."""
        bounds = bounds_of(starts)
        previous = next(each for each in starts if each.graph == restart.previous)
        down_s = min(self._down_s(previous), restart.up_s)
        last_s = self._last_output_s(restart, files, bounds)
        gap_s = math.nan if first_s is None or last_s is None else max(0.0, first_s - last_s)
        return (
            min(restart.asked_s, down_s) if restart.asked_s >= 0 else down_s,
            down_s,
            restart.up_s,
            round(gap_s, 6),
            restart.cause,
            self._undone(restart.previous, files, bounds),
            restart.checkpoint_s,
            restart.checkpoint_bytes,
            restart.before,
            restart.after,
        )

    def _down_s(self, start: JobStart) -> float:
        """When the first of its subtasks closed; where none could, when the last wrote last."""
        lines = [line for each in start.subtasks if (line := counted(each)) is not None]
        closed = [line.us for line in lines if line.closed]
        return self._state.second_of(min(closed) if closed else max(line.us for line in lines))

    def _first_output_s(self, restart: PendingRescale, files: list[RowFile]) -> float | None:
        """When the first item was done at an output after it."""
        rows = self._output_rows(restart.graph, files)
        return self._state.second_of(min(row.done_us for row in rows)) if rows else None

    def _last_output_s(
        self, restart: PendingRescale, files: list[RowFile], bounds: dict[str, int]
    ) -> float | None:
        """When the last item that counts was done at an output before it."""
        counting = [file for file in files if counts(file, bounds)]
        rows = self._output_rows(restart.previous, counting)
        return self._state.second_of(max(row.done_us for row in rows)) if rows else None

    def _output_rows(self, graph: str, files: list[RowFile]) -> list[ItemRow]:
        of = [file for file in files if file.graph == graph and file.operator in self._outputs]
        return [row for file in of for row in file.rows()]

    @staticmethod
    def _undone(graph: str, files: list[RowFile], bounds: dict[str, int]) -> int:
        """Items that were done and are done again."""
        of = (file for file in files if file.graph == graph and not counts(file, bounds))
        return sum(len(file.rows()) for file in of)
