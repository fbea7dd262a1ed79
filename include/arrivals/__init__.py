"""The arrival patterns. To add one: write the file, add the line, run `make test`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from include.arrivals.base import Pattern
from include.arrivals.constant import Constant
from include.arrivals.diurnal import Diurnal
from include.arrivals.image_rates import Lab, Pyramid, Square
from include.arrivals.random_walk import PublishedWalk, RandomWalk
from include.arrivals.spike import Spike
from include.arrivals.stepwise import Stepwise
from include.arrivals.trace import Trace
from include.arrivals.trading_day import TradingDay
from include.arrivals.two_level import TwoLevel

PATTERNS: Mapping[str, Callable[..., Pattern]] = {
    "stepwise": Stepwise,
    "two_level": TwoLevel,
    "random_walk_1": partial(PublishedWalk, number=1),
    "random_walk_2": partial(PublishedWalk, number=2),
    "random_walk": RandomWalk,
    "constant": Constant,
    "pyramid": Pyramid,
    "square": Square,
    "lab": Lab,
    "trace": Trace,
    "spike": Spike,
    "step": partial(Spike, to_s=0.0),
    "diurnal": Diurnal,
    "trading_day_1": partial(TradingDay, number=1),
    "trading_day_2": partial(TradingDay, number=2),
    "trading_day_3": partial(TradingDay, number=3),
}
