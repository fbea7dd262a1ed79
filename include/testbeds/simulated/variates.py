"""Blocks of service times and latencies, as numpy draws them.

Two in three numbers of a run are gamma distributed. numpy calls its generator through a pointer
for each, and computes again what depends on the shape only. Compiled, the same bits take half the
CPU.
"""

from __future__ import annotations

import math

import numpy as np
from numba.np.random import _constants
from numpy.typing import NDArray

from include.testbeds.simulated.kernel import BLOCK
from include.testbeds.virtual.jit import compiled, inlined

HIGHEST = _constants.ki_double
WIDTH = _constants.wi_double
DENSITY = _constants.fi_double
TAIL, TAIL_INVERSE = _constants.ziggurat_nor_r, _constants.ziggurat_nor_inv_r
"""numpy's ziggurat of a normal density: by layer, then where its tail begins."""

STATE_HIGH, STATE_LOW, STEP_HIGH, STEP_LOW = range(4)
WORD, HALF = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(32)
ONE, LOW_HALF, LAYER, SIGN = (np.uint64(bits) for bits in (1, 0xFFFFFFFF, 0xFF, 0x100))
FRACTION = np.uint64(0x000FFFFFFFFFFFFF)
MULTIPLIER = np.uint64(0xDA942042E4DD58B5)
MULTIPLIER_HIGH, MULTIPLIER_LOW = MULTIPLIER >> HALF, MULTIPLIER & LOW_HALF


@inlined
def _raw(words):
    """The next 64 bits of PCG64DXSM (numpy 2.4, numpy/random/src/pcg64/pcg64.h).

    The state, of 128 bits, becomes state * MULTIPLIER + step, by halves of its low word.
    """
    high, low = words[STATE_HIGH], words[STATE_LOW]
    upper, lower = low >> HALF, low & LOW_HALF
    outer, inner = lower * MULTIPLIER_HIGH, upper * MULTIPLIER_LOW
    middle = (lower * MULTIPLIER_LOW >> HALF) + (outer & LOW_HALF) + (inner & LOW_HALF)
    carried = (outer >> HALF) + (inner >> HALF) + (middle >> HALF)
    next_low = low * MULTIPLIER + words[STEP_LOW]
    carried += next_low < words[STEP_LOW]
    words[STATE_HIGH] = upper * MULTIPLIER_HIGH + carried + high * MULTIPLIER + words[STEP_HIGH]
    words[STATE_LOW] = next_low
    high ^= high >> HALF
    high *= MULTIPLIER
    high ^= high >> np.uint64(48)
    return high * (low | ONE)


@inlined
def _uniform(words):
    return np.float64(np.int64(_raw(words) >> np.uint64(11))) / 9007199254740992.0


@inlined
def _normal(words):
    """Marsaglia and Tsang, The ziggurat method for generating random variables (2000).

    In the order of random_standard_normal (numpy/random/src/distributions/distributions.c).
    """
    while True:
        raw = _raw(words)
        layer, size = raw & LAYER, raw >> np.uint64(9) & FRACTION
        x = np.float64(np.int64(size)) * WIDTH[layer]
        if raw & SIGN:
            x = -x
        if size < HIGHEST[layer]:
            return x
        if layer:
            above, here = DENSITY[layer - ONE], DENSITY[layer]
            if (above - here) * _uniform(words) + here < math.exp(-0.5 * x * x):
                return x
        else:
            while True:
                beyond = -TAIL_INVERSE * math.log1p(-_uniform(words))
                height = -math.log1p(-_uniform(words))
                if height + height > beyond * beyond:
                    break
            return -(TAIL + beyond) if size & SIGN else TAIL + beyond


@compiled
def _fill_gamma_us(words, shape, scale_us, drawn_us):
    """Fill with gamma numbers of a shape above 1, whole and at least 1.

    Marsaglia and Tsang, A simple method for generating gamma variables (2000), in the order of
    random_standard_gamma (numpy/random/src/distributions/distributions.c).
    """
    b = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9 * b)
    for i in range(drawn_us.size):
        while True:
            x = _normal(words)
            v = 1.0 + c * x
            if v <= 0.0:
                continue
            v = v * v * v
            uniform = _uniform(words)
            if uniform < 1.0 - 0.0331 * (x * x) * (x * x):
                break
            if math.log(uniform) < 0.5 * x * x + b * (1.0 - v + math.log(v)):
                break
        drawn_us[i] = max(np.int64(np.rint(b * v * scale_us)), 1)


def drawn_service_us(
    generator: np.random.Generator, mean_ms: float, cv: float
) -> NDArray[np.int64]:
    """``BLOCK`` service times, gamma distributed; every item takes at least 1 us."""
    mean_us = mean_ms * 1000
    if cv == 0:
        return np.full(BLOCK, max(1, round(mean_us)), dtype=np.int64)
    shape = 1 / cv**2
    if shape <= 1:  # numpy draws these in another way
        drawn = generator.standard_gamma(shape, BLOCK)
        drawn *= mean_us / shape
        return np.maximum(np.rint(drawn, out=drawn), 1, out=drawn).astype(np.int64)
    drawn_us, bits = np.empty(BLOCK, dtype=np.int64), generator.bit_generator
    state = bits.state
    numbers = state["state"]["state"], state["state"]["inc"]
    words = np.array([n >> s & int(WORD) for n in numbers for s in (64, 0)], dtype=np.uint64)
    _fill_gamma_us(words, shape, mean_us / shape, drawn_us)
    state["state"]["state"] = int(words[STATE_HIGH]) << 64 | int(words[STATE_LOW])
    bits.state = state
    return drawn_us


def drawn_latency_us(generator: np.random.Generator, mean_ms: float) -> NDArray[np.int64]:
    """``BLOCK`` messaging latencies, exponentially distributed."""
    drawn = generator.standard_exponential(BLOCK)
    drawn *= mean_ms * 1000
    return np.rint(drawn, out=drawn).astype(np.int64)
