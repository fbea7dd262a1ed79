"""The fewest hosts that hold a number of instances of each operator."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from include.results.bounds.demand import Series

EXACT_WITHIN_S = 5.0
"""How long the solver may look for one packing."""
Counts = NDArray[np.int64]


def fewest_hosts(counts: Counts, offered: Series, needs: Series) -> tuple[int, int]:
    """A lower and an upper bound of the hosts; equal where the packing is known to be the best.

    ``counts`` are instances by operator, ``offered`` what a host has of every resource (shape
    (resources,)), ``needs`` what an instance takes (resources, operators).
    """
    low = max(math.ceil(least - 1e-9) for least in (needs @ counts) / offered)
    high = first_fit_hosts(counts, offered, needs)
    return (low, high) if low == high else _exact(counts, offered, needs, low, high)


def first_fit_hosts(counts: Counts, offered: Series, needs: Series) -> int:
    """Hosts that first fit takes when the largest instances come first.

    Instances that are alike are placed at once: as many as fit on the first host, and so on.
    """
    largest = np.argsort(-(needs / offered[:, None]).max(axis=0), kind="stable")
    left = np.empty((0, len(offered)))
    for op in largest:
        need, wanted = needs[:, op], int(counts[op])
        each = max(1, int(_fitting(offered[None, :], need)[0]))
        new = np.tile(offered, (math.ceil(wanted / each), 1))
        fitting = np.append(_fitting(left, need), np.full(len(new), each))
        placed = np.clip(wanted - (np.cumsum(fitting) - fitting), 0, fitting)
        opened = int(np.count_nonzero(placed[len(left) :]))
        left = np.concatenate([left, new[:opened]]) - placed[: len(left) + opened, None] * need
    return len(left)


def _fitting(left: Series, need: Series) -> Counts:
    """Instances that fit on each host; ``left`` has the shape (hosts, resources)."""
    taken = need > 0
    fitting: Counts = np.floor((left[:, taken] + 1e-9) / need[taken]).min(axis=1).astype(np.int64)
    return fitting.clip(0)


def _exact(counts: Counts, offered: Series, needs: Series, low: int, high: int) -> tuple[int, int]:
    """Bin packing as a mixed-integer program: host b holds x[b, op] instances if it is used."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import block_diag, csr_array, hstack, kron

    kinds = len(counts)
    fits = hstack([block_diag([needs] * high), -kron(csr_array(np.eye(high)), offered[:, None])])
    placed = hstack([csr_array(np.tile(np.eye(kinds), high)), csr_array((kinds, high))])
    alike = csr_array(np.eye(high - 1, high, 1) - np.eye(high - 1, high))
    in_order = hstack([csr_array((high - 1, kinds * high)), alike])  # those in use come first
    solution = milp(
        np.concatenate([np.zeros(kinds * high), np.ones(high)]),
        constraints=[
            LinearConstraint(fits.tocsr(), ub=0),
            LinearConstraint(placed.tocsr(), lb=counts, ub=counts),
            LinearConstraint(in_order.tocsr(), ub=0),
        ],
        integrality=np.ones((kinds + 1) * high),
        bounds=Bounds(0, np.concatenate([np.tile(counts, high), np.ones(high)])),
        options={"time_limit": EXACT_WITHIN_S},
    )
    if solution.mip_dual_bound is not None:
        low = max(low, math.ceil(solution.mip_dual_bound - 1e-6))
    return low, high if solution.x is None else min(high, round(solution.fun))
