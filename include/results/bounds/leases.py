"""The cheapest leases that keep so many hosts at every time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from include.model.host import PriceBook

Hosts = Sequence[int] | NDArray[np.int64]


def fewest_btus(hosts: Hosts, steps_per_btu: int) -> int:
    """How many BTUs are paid for ``hosts[t]`` hosts in every step, at least and at best.

    Leasing and prolonging only when short is optimal where every BTU is as long as every other:
    a BTU that begins earlier ends earlier, so it covers no step that a later one would not, and
    one is needed by then. Hosts are ready when they are ordered.
    """
    begun = np.zeros(len(hosts), dtype=np.int64)
    paid = 0
    for step, needed in enumerate(hosts):
        if step >= steps_per_btu:
            paid -= begun[step - steps_per_btu]
        begun[step] = max(0, needed - paid)
        paid += begun[step]
    return int(begun.sum())


def cheapest_cost(hosts: Hosts, book: PriceBook, step_s: float) -> float:
    """Cost of these BTUs; of BTUs that fit into a step, as many as the step has.

    Raises ValueError for a BTU that is no multiple of the step and does not fit into it.
    """
    steps = round(book.btu_s / step_s)
    if steps >= 1 and abs(steps * step_s - book.btu_s) < 1e-9:
        return fewest_btus(hosts, steps) * book.price_per_btu
    each = round(step_s / book.btu_s)
    if abs(each * book.btu_s - step_s) < 1e-9:
        return int(sum(hosts)) * each * book.price_per_btu
    raise ValueError(f"a BTU of {book.btu_s:g} s is no multiple of {step_s:g} s, nor a part")
