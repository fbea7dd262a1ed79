"""The controllers. To add one: write the file, add the line, run ``make test``.

One that lies elsewhere needs no line: `registry.py` finds it by ``module:Class``.
"""

from __future__ import annotations

from functools import partial

from include.controllers.autoscalers.daedalus import Daedalus
from include.controllers.autoscalers.dhalion import Dhalion
from include.controllers.autoscalers.drs import Drs
from include.controllers.autoscalers.druid import Druid
from include.controllers.autoscalers.ds2 import Ds2
from include.controllers.autoscalers.flink import Flink
from include.controllers.autoscalers.hpa import Hpa
from include.controllers.autoscalers.keda import Keda
from include.controllers.autoscalers.target_tracking import TargetTracking
from include.controllers.base import Group, Registration
from include.controllers.fixed import Fixed
from include.controllers.fugu.reinforcement import FuguSarsa
from include.controllers.fugu.thresholds import FuguGlobal, FuguLocal
from include.controllers.henge.controller import Henge
from include.controllers.peerj141.btu import Btu
from include.controllers.peerj141.btu_runtime import BtuRuntime
from include.controllers.peerj141.threshold import Threshold
from include.controllers.pvldb127.filtered import Filtered
from include.controllers.registry import Controllers
from include.controllers.tide.controller import Tide

_OF_THE_PROJECT = {
    "btu": Registration(Btu),
    "btu-runtime": Registration(BtuRuntime),
    "btu-preprint": Registration(
        partial(Btu, formula="preprint", interval_s=20.0, release_limit_share=1.0)
    ),
    "threshold": Registration(Threshold, pays_by_btu=False),
    "threshold-peerj": Registration(
        partial(
            Threshold,
            reading="paper",
            scale_up_above_items=50,
            scale_up_twice_above_items=250,
            scale_down_below_items=1,
        ),
        pays_by_btu=False,
    ),
    "threshold-preprint": Registration(
        partial(
            Threshold,
            reading="paper",
            interval_s=20.0,
            scale_up_twice_above_items=1000,
            scale_down_below_items=1,
        ),
        pays_by_btu=False,
    ),
    "fixed": Registration(Fixed, pays_by_btu=False, needs_peak=True),
    "fugu-local": Registration(FuguLocal),
    "fugu-global": Registration(FuguGlobal),
    "fugu-sarsa": Registration(FuguSarsa),
    "kalman-pure": Registration(Filtered),
    "kalman-weierstrass": Registration(partial(Filtered, filter="weierstrass")),
    "kalman-ekf": Registration(partial(Filtered, filter="ekf")),
    "henge": Registration(Henge),
    "default-storm": Registration(partial(Fixed, instances="topology")),
    "manual": Registration(partial(Fixed, instances="topology")),
    "tide": Registration(Tide, group=Group.OURS),
    "hpa": Registration(Hpa, group=Group.IN_USE_TODAY),
    "keda": Registration(Keda, group=Group.IN_USE_TODAY),
    "target-tracking": Registration(TargetTracking, group=Group.IN_USE_TODAY),
    "flink-autoscaler": Registration(Flink, group=Group.IN_USE_TODAY),
    "ds2": Registration(Ds2, group=Group.IN_USE_TODAY),
    "drs": Registration(Drs, group=Group.IN_USE_TODAY),
    "dhalion": Registration(Dhalion, group=Group.IN_USE_TODAY),
    "daedalus": Registration(Daedalus, group=Group.IN_USE_TODAY),
    "druid": Registration(Druid, group=Group.IN_USE_TODAY),
}
CONTROLLERS = Controllers(_OF_THE_PROJECT)
