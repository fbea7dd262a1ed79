"""Which operators an overloaded host keeps: the subset sum problem, solved exactly."""

from __future__ import annotations

from collections.abc import Sequence


def largest_subset(weights: Sequence[int], capacity: int) -> tuple[int, ...]:
    """Positions of a subset whose sum is as large as possible and at most ``capacity``.

    Weights are not negative. Dynamic programming over reachable sums (bit s of an integer is set
    when s can be reached). Among subsets of equal sum, one without the last weights is taken.
    """
    if capacity < 0:
        return ()
    within = (1 << (capacity + 1)) - 1
    reachable = [1]
    for weight in weights:
        reachable.append((reachable[-1] | reachable[-1] << weight) & within)
    left = reachable[-1].bit_length() - 1
    chosen = []
    for position in reversed(range(len(weights))):
        if not reachable[position] >> left & 1:
            chosen.append(position)
            left -= weights[position]
    return tuple(reversed(chosen))
