"""Compiled draws are those of numpy, bit for bit, and leave the generator where numpy would."""

from __future__ import annotations

import numpy as np
import pytest

from include.testbeds.simulated.kernel import BLOCK
from include.testbeds.simulated.variates import drawn_service_us
from include.testbeds.virtual.draws import Draws

BLOCKS = 60
"""A million numbers, some 300 of which are of the tail of the ziggurat."""


@pytest.mark.parametrize("cv", [0.1, 0.5, 0.99, 1, 2])
def test_service_times_are_gamma_numbers_of_numpy(cv):
    shape, mean_ms = 1 / cv**2, 0.5
    for block in range(BLOCKS):
        ours, theirs = (Draws(1).generator("operator", "O1", block) for _ in range(2))
        expected = np.rint(theirs.standard_gamma(shape, BLOCK) * (mean_ms * 1000 / shape))
        assert np.array_equal(drawn_service_us(ours, mean_ms, cv), np.maximum(expected, 1))
        assert ours.random() == theirs.random()
