"""How the extended Kalman filter starts: PVLDB 12(7), section 2.4.

What is collected in the dead time is kept as sums, so the memory does not grow with it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from include.controllers.pvldb127.filters.base import F64
from include.controllers.pvldb127.filters.memory import Regression


def triangular(n: NDArray[np.int64]) -> F64:
    """The n-th triangular number (footnote 3)."""
    numbers: F64 = n * (n + 1) / 2
    return numbers


def initial_state(n: NDArray[np.int64], sums: F64) -> F64:
    """x0: the average of n measurements, the i-th weighted by i (eq. 16).

    ``n`` (filters,), ``sums`` (filters, metrics) the sum of i z_i.
    """
    return sums / triangular(n)[:, None]


def covariance(n: NDArray[np.int64], x0: F64, squares: F64) -> F64:
    """P0: the same average of (z - x0)(z - x0)', with Bessel's correction (eq. 17).

    ``squares`` (filters, metrics, metrics) is the sum of i z_i z_i'. One measurement has no
    spread: 0.
    """
    whole = triangular(n)[:, None, None]
    spread = squares - whole * x0[:, :, None] * x0[:, None, :]
    p0: F64 = np.where(whole > 1, spread / np.maximum(whole - 1, 1), 0.0)
    return p0


def process_noise(p0: F64, r: F64, floor: float) -> F64:
    """Q = P0 - R (eq. 18), raised where it is below ``floor`` times R in any direction.

    The paper assumes P0 > R. At rest P0 is about R, or less, and Q would not be a covariance.
    """
    scale = np.sqrt(np.diag(r))
    values, vectors = np.linalg.eigh((p0 - r) / np.outer(scale, scale))
    lifted = (vectors * np.maximum(values, floor)) @ vectors.T
    q: F64 = lifted * np.outer(scale, scale)
    return q


def no_rows(metrics: int) -> Regression:
    """A regression that has seen nothing."""
    return Regression((0.0,) * 4, (0.0,) * 2 * metrics)


def with_rows(sums: Regression, u: F64, change: F64) -> Regression:
    """With rows of n instances: their input ``u`` (2,) and ``change`` of z (n, metrics)."""
    uu = np.array(sums.uu) + len(change) * np.outer(u, u).ravel()
    uz = np.array(sums.uz) + np.outer(u, change.sum(axis=0)).ravel()
    return Regression(tuple(uu.tolist()), tuple(uz.tolist()))


def least_squares(sums: Regression) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """a and b, one value per metric; what the rows do not tell is 0."""
    uu = np.array(sums.uu).reshape(2, 2)
    a, b = np.linalg.lstsq(uu, np.array(sums.uz).reshape(2, -1), rcond=1e-9)[0]
    return tuple(a.tolist()), tuple(b.tolist())
