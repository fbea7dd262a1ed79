"""Generated topologies: `layered_100` has a hundred operators in ten layers.

The name may end with a seed of the graph, as in `layered_100_7`; the default is 1. Operators get
about the same number of items whatever the size, so that sizes can be compared.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import sqrt
from typing import Any

from include.model.errors import SpecError

NAMES = ("layered_10", "layered_100", "layered_1000")
"""Names in lists of topologies; any number of operators up to MOST_OPERATORS is possible."""
MOST_OPERATORS = 1000
_NAME = re.compile(r"layered_([1-9][0-9]{0,8})(?:_([0-9]{1,9}))?")

ITEMS_PER_LEVEL = 3.0
"""Items of the source per second and level: at level 8 an operator keeps about twelve instances
busy, and `fixed` has about twenty of each."""
SERVICE_MS = (250, 750)
CPU_SHARES = (256, 384, 512)
MEMORY_MB = (480, 640, 800)
"""Ten instances of medium size fill a host of the default flavor."""


def is_layered(name: str) -> bool:
    """Whether ``name`` is a generated topology's."""
    return _NAME.fullmatch(name) is not None


@lru_cache(maxsize=8)
def layered(name: str) -> dict[str, Any]:
    """Plain values of a topology file: every operator of a layer feeds some of the next.

    An operator divides its items evenly among them, so that every layer gets the same number.
    Raises SpecError if there are too many operators.
    """
    match = _NAME.fullmatch(name)
    assert match is not None
    operators, seed = int(match[1]), int(match[2] or 1)
    if operators > MOST_OPERATORS:
        problem = f"{name} has {operators} operators, and there may be {MOST_OPERATORS}; name fewer"
        raise SpecError("topology", [problem])
    draw = random.Random(f"layered:{operators}:{seed}")
    layers = _layers([f"o{i}" for i in range(1, operators + 1)])
    between = [edge for before, layer in pairwise(layers) for edge in _edges(before, layer, draw)]
    return {
        "name": name,
        "level_unit": "level",
        "emission_period_s": 1.0,
        "run_with": {
            "patterns": [{"name": "constant", "level": 8}],
            "duration_min": 30,
            "max_hosts": max(1000, 4 * operators),
        },
        "sources": {"devices": {"label": "devices", "items_per_level": ITEMS_PER_LEVEL}},
        "operators": {
            name: _operator(f"{name} in layer {depth}", draw)
            for depth, layer in enumerate(layers, 1)
            for name in layer
        },
        "edges": [*({"from": "devices", "to": name} for name in layers[0]), *between],
    }


def _layers(names: Sequence[str]) -> list[Sequence[str]]:
    """About as many layers as operators per layer; layer sizes differ by at most one."""
    count = max(1, round(sqrt(len(names))))
    ends = [len(names) * i // count for i in range(count + 1)]
    return [names[first:end] for first, end in pairwise(ends)]


def _edges(before: Sequence[str], layer: Sequence[str], draw: random.Random) -> list[Any]:
    """Edges that connect every operator, and as many random ones."""
    width = max(len(before), len(layer))
    pairs = {(before[i % len(before)], layer[i % len(layer)]) for i in range(width)}
    pairs |= {(draw.choice(before), draw.choice(layer)) for _ in range(width)}
    fed = {origin: sum(origin == target for target, _ in pairs) for origin in before}
    return [{"from": a, "to": b, "out": f"1/{fed[a]}"} for a, b in sorted(pairs)]


def _operator(label: str, draw: random.Random) -> dict[str, Any]:
    service_ms = draw.randint(*SERVICE_MS)
    return {
        "label": label,
        "slo_ms": 2 * service_ms,
        "service_ms": service_ms,
        "cpu_shares": draw.choice(CPU_SHARES),
        "memory_mb": draw.choice(MEMORY_MB),
    }
