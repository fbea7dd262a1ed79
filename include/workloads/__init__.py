"""The arrival patterns. To add one: write the file, add the line, run `make test`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from include.workloads.espa.load_patterns import Cosine, Rounds, Walk
from include.workloads.images.image_rates import Lab, Pyramid, Square
from include.workloads.manufacturing.load_patterns import (
    PublishedWalk,
    RandomWalk,
    Stepwise,
    TwoLevel,
)
from include.workloads.pattern import Constant, Pattern
from include.workloads.tenants.load_patterns import Diurnal, Spike
from include.workloads.trace import Trace
from include.workloads.trading.trading_day import TradingDay

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
    "espa_cosine": Cosine,
    "espa_random": Walk,
    "espa_step": Rounds,
    "trading_day_1": partial(TradingDay, number=1),
    "trading_day_2": partial(TradingDay, number=2),
    "trading_day_3": partial(TradingDay, number=3),
}
