"""Generated topologies: `layered_100` has a hundred operators in ten layers.

Seed 1 draws the graph unless the name goes on with another one, as in `layered_100_7`. Whatever
their number, operators get about as many items each, so that a size can be compared with another.
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
"""Those that lists of topologies show; any number of operators goes."""
MOST_OPERATORS = 1000
_NAME = re.compile(r"layered_([1-9][0-9]{0,8})(?:_([0-9]{1,9}))?")

ITEMS_PER_LEVEL = 3.0
"""Of the source in a second: at level 8 an operator keeps some twelve instances busy, and `fixed`
has some twenty of each."""
SERVICE_MS = (250, 750)
CPU_SHARES = (256, 384, 512)
MEMORY_MB = (480, 640, 800)
"""Ten instances of medium size fill a host of the default flavor."""


def is_layered(name: str) -> bool:
    """Whether the name is that of a generated topology."""
    return _NAME.fullmatch(name) is not None


@lru_cache(maxsize=8)
def layered(name: str) -> dict[str, Any]:
    """The plain values of a topology file: every operator of a layer feeds some of the next.

    An operator divides what it has done evenly among those, so layers get the same in all.
    Raises SpecError when there are too many operators.
    """
    found = _NAME.fullmatch(name)
    assert found is not None
    operators, seed = int(found[1]), int(found[2] or 1)
    if operators > MOST_OPERATORS:
        told = f"{name} has {operators} operators, and there may be {MOST_OPERATORS}; name fewer"
        raise SpecError("topology", [told])
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
            one: _operator(f"{one} in layer {depth}", draw)
            for depth, layer in enumerate(layers, 1)
            for one in layer
        },
        "edges": [*({"from": "devices", "to": one} for one in layers[0]), *between],
    }


def _layers(names: Sequence[str]) -> list[Sequence[str]]:
    """About as many layers as operators in one, their sizes differing by one at most."""
    count = max(1, round(sqrt(len(names))))
    ends = [len(names) * i // count for i in range(count + 1)]
    return [names[first:end] for first, end in pairwise(ends)]


def _edges(before: Sequence[str], layer: Sequence[str], draw: random.Random) -> list[Any]:
    """Nobody is left out, and as many edges again anywhere."""
    width = max(len(before), len(layer))
    pairs = {(before[i % len(before)], layer[i % len(layer)]) for i in range(width)}
    pairs |= {(draw.choice(before), draw.choice(layer)) for _ in range(width)}
    fed = {origin: sum(origin == one for one, _ in pairs) for origin in before}
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
