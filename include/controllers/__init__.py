"""The controllers. To add one: write the file, add the line, run ``make test``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from include.controllers.base import Controller
from include.controllers.btu import Btu
from include.controllers.btu_runtime import BtuRuntime
from include.controllers.filtered import Filtered
from include.controllers.fixed import Fixed
from include.controllers.fugu_global import FuguGlobal
from include.controllers.fugu_local import FuguLocal
from include.controllers.fugu_sarsa import FuguSarsa
from include.controllers.henge import Henge
from include.controllers.threshold import Threshold

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
