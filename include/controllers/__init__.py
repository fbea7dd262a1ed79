"""The controllers. To add one: write the file, add the line, run ``make test``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from include.controllers.base import Controller
from include.controllers.fixed import Fixed
from include.controllers.fugu.global_thresholds import FuguGlobal
from include.controllers.fugu.local_thresholds import FuguLocal
from include.controllers.fugu.reinforcement import FuguSarsa
from include.controllers.henge.controller import Henge
from include.controllers.peerj141.btu import Btu
from include.controllers.peerj141.btu_runtime import BtuRuntime
from include.controllers.peerj141.threshold import Threshold
from include.controllers.pvldb127.filtered import Filtered

CONTROLLERS: Mapping[str, Callable[..., Controller]] = {
    "btu": Btu,
    "btu-runtime": BtuRuntime,
    "btu-preprint": partial(Btu, formula="preprint", interval_s=20.0, release_limit_share=1.0),
    "threshold": Threshold,
    "threshold-peerj": partial(Threshold, scale_up_above_items=50, scale_up_twice_above_items=250),
    "threshold-preprint": partial(Threshold, interval_s=20.0, scale_up_twice_above_items=1000),
    "fixed": Fixed,
    "fugu-local": FuguLocal,
    "fugu-global": FuguGlobal,
    "fugu-sarsa": FuguSarsa,
    "kalman-pure": Filtered,
    "kalman-weierstrass": partial(Filtered, filter="weierstrass"),
    "kalman-ekf": partial(Filtered, filter="ekf"),
    "henge": Henge,
    "default-storm": partial(Fixed, instances="topology"),
    "manual": partial(Fixed, instances="topology"),
}
