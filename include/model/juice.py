"""Juice: the share of a topology's input that it processes (Henge, section 5)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping


def topology_juice(
    sources: tuple[str, ...],
    sinks: tuple[str, ...],
    parents: Mapping[str, tuple[str, ...]],
    sent: Mapping[tuple[str, str], float],
    executed: Mapping[tuple[str, str], float],
) -> float:
    """Eq. 6: the juice of all sinks together, per source.

    ``parents`` holds every operator, each after all of its own parents. ``sent`` and
    ``executed`` count the items of each edge (parent, operator) in one time window. An edge
    that is missing counted nothing. Juice can exceed 1 for a moment, when items that waited
    from earlier windows are executed now.
    """
    if not sources:
        raise ValueError("juice is defined per source: give at least one")
    juice = operator_juice(sources, parents, sent, executed)
    return sum(juice[sink] for sink in sinks) / len(sources)


def operator_juice(
    sources: tuple[str, ...],
    parents: Mapping[str, tuple[str, ...]],
    sent: Mapping[tuple[str, str], float],
    executed: Mapping[tuple[str, str], float],
) -> dict[str, float]:
    """Eq. 5: the juice of every source and operator, over all sources together.

    Eq. 5 is linear in the juice of the parents, so the sum over the sources follows the same
    recursion as each of them. The denominator is all that a parent sent out, to whichever child:
    "B has a T of 16K and not 8K" (Example 1). A parent that sent nothing lost nothing, so what it
    shares out counts as executed by its children in equal parts.
    """
    out: defaultdict[str, float] = defaultdict(float)
    for (parent, _), items in sent.items():
        out[parent] += items
    children: defaultdict[str, int] = defaultdict(int)
    for named in parents.values():
        for parent in named:
            children[parent] += 1
    juice = dict.fromkeys(sources, 1.0)
    for operator, named in parents.items():
        juice[operator] = sum(
            juice[parent]
            * (
                executed.get((parent, operator), 0.0) / out[parent]
                if out[parent] > 0
                else 1 / children[parent]
            )
            for parent in named
        )
    return juice
