"""Compiles with numba, and starts it without scipy's BLAS, which no kernel uses.

That saves a tenth of the time and memory of a short run; docs/decisions/0002-the-kernel.md.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

from numba import njit

BLAS = "scipy.linalg.cython_blas"
_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "_nrt": False}
compiled = njit(**_OPTIONS)
"""Without reference counting, which took longer than the queueing."""
inlined = njit(forceinline=True, **_OPTIONS)
"""For functions called per item: a call would pass about a hundred words of array fields."""


@compiled
def _anything(number):
    return number


@cache
def start_numba() -> None:
    """Load numba and its compiler, once per process."""
    if BLAS in sys.modules:
        return
    sys.modules[BLAS] = None  # type: ignore[assignment]  # so that importing it fails
    try:
        _anything(0)
    finally:
        del sys.modules[BLAS]
