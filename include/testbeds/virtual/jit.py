"""Compiles with numba, and starts it without what no kernel uses.

That saves a fifth of the time and memory of a short run; docs/decisions/0002-the-kernel.md.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

from numba import njit
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys

UNUSED = ("scipy.linalg.cython_blas", "cffi")
_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "_nrt": False}
compiled = njit(**_OPTIONS)
"""Without reference counting, which took longer than the queueing."""
inlined = njit(forceinline=True, **_OPTIONS)
"""For functions called per item: a call would pass about a hundred words of array fields."""


class _LateRuntime(type(rtsys)):  # type: ignore[misc]
    """What counts references, compiled when something is compiled and not whenever numba starts."""

    def initialize(self, ctx):
        """Not yet."""

    @property
    def library(self):
        super().initialize(cpu_target.target_context)
        return self._library


@compiled
def _anything(number):
    return number


@cache
def start_numba() -> None:
    """Load numba and its compiler, once per process."""
    rtsys.__class__ = _LateRuntime
    hidden = [name for name in UNUSED if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # so that importing fails
    try:
        _anything(0)
    finally:
        for name in hidden:
            del sys.modules[name]
