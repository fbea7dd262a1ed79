"""Sends due items to the broker and notes confirmed ones."""

from __future__ import annotations

import time
from pathlib import Path

from include.testbeds.live.operators import wire
from include.testbeds.live.operators.connection import SLICE_S, BrokerConnection
from include.testbeds.live.operators.logs import Log
from include.testbeds.live.provider.plan import ProviderPlan
from include.testbeds.live.provider.position import GIVE_UP_S, Position, Positions

SHORTEST_REST_S, LONGEST_REST_S = 0.002, 0.05
NOTE_EVERY_S = 0.2
MOST_OPEN = 1000
"""Highest number of unconfirmed items, so that a late provider does not flood the broker."""
HEARTBEAT_S = 5
STOP_WITHIN_S = 3.0


class Publisher(BrokerConnection[tuple[Position, int]]):
    """Sends items until all are sent, it is told to stop, or the file of its plan is gone."""

    longest_delay_s = 0.5

    def __init__(
        self, url: str, path: Path, plan: ProviderPlan, positions: Positions, log: Log
    ) -> None:
        super().__init__(url, HEARTBEAT_S, log)
        self._path = path
        self._plan = plan
        self._positions = positions
        self._late_s: list[float] = []
        """Lateness of the items since the last note, in wall seconds."""
        self._noted_s = 0.0

    def _begin(self) -> None:
        for position in self._positions:
            position.lose()

    def _tick(self) -> float:
        for position, number in self._confirms.take_settled():
            position.confirmed = number + 1
        if self._channel and not self.stopping:
            self._send_what_is_due()
        stopped = self.stopping and (
            not self._confirms.unsettled or time.monotonic() > self._stop_s + STOP_WITHIN_S
        )
        ends = stopped or all(position.done for position in self._positions)
        if ends or time.monotonic() - self._noted_s >= NOTE_EVERY_S:
            self._note_now()
        if ends:
            self._end()
        return self._rest_s()

    def _rest_s(self) -> float:
        due_s = min((position.next_due_s for position in self._positions), default=0.0)
        left_s = (due_s - self._now_s()) / self._plan.time_scale
        return min(max(left_s, SHORTEST_REST_S), LONGEST_REST_S)

    def _send_what_is_due(self) -> None:
        """Send from sources in turn, so that rendering pictures does not delay the others."""
        end_s = time.monotonic() + SLICE_S
        sent = True
        while sent and time.monotonic() < end_s:
            sent = False
            for position in self._positions:
                if self._confirms.unsettled < MOST_OPEN and position.next_due_s <= self._now_s():
                    self._send(position)
                    sent = True

    def _send(self, position: Position) -> None:
        number, due_s, body = position.following, position.next_due_s, position.body()
        position.following += 1
        last = 0
        for target in position.stream.targets:
            now_us = wire.now_us()
            props = wire.properties(wire.ItemId(position.stream.source, number), now_us, now_us)
            last = self._publish(target, body, props)
        self._confirms.add((position, number), last)
        self._late_s.append((self._now_s() - due_s) / self._plan.time_scale)

    def _note_now(self) -> None:
        self._noted_s = time.monotonic()
        self._positions.write(self._late_s)
        self._late_s.clear()

    def _now_s(self) -> float:
        return (wire.now_us() - self._plan.started_us) / 1e6 * self._plan.time_scale

    def _goes_on(self, lost_for_s: float) -> bool:
        return self._path.is_file() and lost_for_s < GIVE_UP_S
