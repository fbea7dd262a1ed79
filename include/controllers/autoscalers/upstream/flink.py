"""Rows of apache/flink-kubernetes-operator, flink-autoscaler."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from include.controllers.autoscalers.upstream.left_out import NotRepresentable


def check(function: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """What our rule gives for a row; raises NotRepresentable."""
    if function == "computeTrueProcessingRate" and "observed_rates" not in inputs:
        in_s, busy = inputs["input_per_s"], inputs["busy_ms_per_s"]
        return {"true_rate": in_s / (busy / 1000) if in_s > 0 and busy > 0 else math.inf}
    raise NotRepresentable("AUTO-CONFORM-FLINK")
