"""The arrival patterns. To add one: write the file, add the line, run `make test`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from include.arrivals.base import Pattern
from include.arrivals.constant import Constant
from include.arrivals.random_walk import PublishedWalk, RandomWalk
from include.arrivals.stepwise import Stepwise
from include.arrivals.trace import Trace
from include.arrivals.two_level import TwoLevel

PATTERNS: Mapping[str, Callable[..., Pattern]] = {
    "stepwise": Stepwise,
    "two_level": TwoLevel,
    "random_walk_1": partial(PublishedWalk, number=1),
    "random_walk_2": partial(PublishedWalk, number=2),
    "random_walk": RandomWalk,
    "constant": Constant,
    "trace": Trace,
}
