"""Sampled items: the kernel says what they met on average, the draws make single items of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from include.testbeds.flow.arrays import F64, I64, R_DONE_S, R_NUMBER, R_OPERATOR, R_WAIT_S
from include.testbeds.flow.calibration import FlowCalibration
from include.testbeds.virtual.draws import Draws

BLOCK = 1024
HAS_TO_WAIT, WAIT, SERVICE, MESSAGE = range(4)


@dataclass(slots=True)
class ItemSampler:
    """Draws per operator and number of the sample, so that nothing else decides about them."""

    names: tuple[str, ...]
    calibration: FlowCalibration
    draws: Draws
    _drawn: F64 = field(init=False)
    _block: I64 = field(init=False)
    _rest_s: F64 = field(init=False)
    _pass_s: F64 = field(init=False)

    def __post_init__(self) -> None:
        self._drawn = np.zeros((len(self.names), BLOCK, 4))
        self._block = np.full(len(self.names), -1)
        self._rest_s = np.array([self.calibration.rest_s.get(name, 0.0) for name in self.names])
        self._pass_s = np.array([self.calibration.pass_s.get(name, 0.0) for name in self.names])

    def durations(self, rows: I64, values: F64) -> tuple[F64, F64, F64]:
        """Recorded duration, wait and age of each row, in milliseconds."""
        drawn = self._of(rows[:, R_OPERATOR], rows[:, R_NUMBER])
        wait_s, random_s, chance, service_s, latency_s, age_s = values[:, R_WAIT_S:].T
        waits = drawn[:, HAS_TO_WAIT] < chance
        # Queued by a backlog or by chance: the longer of the two, as in the means.
        waited_s = np.maximum(wait_s, waits * drawn[:, WAIT] * random_s / chance)
        waited_s += self._rest_s[rows[:, R_OPERATOR]]
        service_s = service_s * drawn[:, SERVICE] + self._pass_s[rows[:, R_OPERATOR]]
        duration_s = drawn[:, MESSAGE] * latency_s + waited_s + service_s
        age_s = age_s + np.maximum(waited_s - wait_s, 0.0) + service_s
        if resolution_s := self.calibration.timestamp_resolution_s:
            done_s = values[:, R_DONE_S]
            published_s = done_s - duration_s
            duration_s = done_s - np.floor(published_s / resolution_s) * resolution_s
        return duration_s * 1000, waited_s * 1000, age_s * 1000

    def _of(self, operator: I64, number: I64) -> F64:
        """The draws of each row; numbers of an operator only grow from call to call."""
        samples = np.empty((operator.size, 4))
        block, column = np.divmod(number, BLOCK)
        left = np.arange(operator.size)
        while left.size:
            now = np.full(len(self.names), np.iinfo(np.int64).max)
            np.minimum.at(now, operator[left], block[left])
            for o in np.flatnonzero((now != self._block) & (now < np.iinfo(np.int64).max)):
                self._draw(int(o), int(now[o]))
            mine = block[left] == now[operator[left]]
            rows = left[mine]
            samples[rows] = self._drawn[operator[rows], column[rows]]
            left = left[~mine]
        return samples

    def _draw(self, o: int, block: int) -> None:
        generator = self.draws.generator("sample", self.names[o], block)
        self._block[o], drawn = block, self._drawn[o]
        drawn[:, HAS_TO_WAIT] = generator.random(BLOCK)
        drawn[:, WAIT] = generator.standard_exponential(BLOCK)
        cv = self.calibration.service_cv
        drawn[:, SERVICE] = generator.standard_gamma(1 / cv**2, BLOCK) * cv**2 if cv else 1.0
        drawn[:, MESSAGE] = generator.standard_exponential(BLOCK)
