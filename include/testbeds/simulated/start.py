"""Start numba without scipy, whose BLAS it looks for and the kernel does not use.

Saves a tenth of the time and memory of a short run; docs/decisions/0002-the-kernel.md.
"""

from __future__ import annotations

import sys
from functools import cache

from include.testbeds.simulated import rings

BLAS = "scipy.linalg.cython_blas"


@cache
def start_numba() -> None:
    """Load numba and the compiled kernel, once per process."""
    if BLAS in sys.modules:
        return
    sys.modules[BLAS] = None  # type: ignore[assignment]  # so that importing it fails
    try:
        rings.emitted(0, 1, 1)
    finally:
        del sys.modules[BLAS]
