"""Compiling with numba, and starting it without scipy, whose BLAS it looks for and no kernel uses.

The latter saves a tenth of the time and memory of a short run; docs/decisions/0002-the-kernel.md.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

from numba import njit

BLAS = "scipy.linalg.cython_blas"
_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "_nrt": False}
compiled = njit(**_OPTIONS)
"""Without the run-time that counts references: counting them took longer than the queueing."""
inlined = njit(forceinline=True, **_OPTIONS)
"""For what is called per item: a call passes every field of every array, a hundred words or so."""


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
