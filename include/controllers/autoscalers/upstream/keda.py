"""Rows of kedacore/keda, and of what an HPA does with its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from include.controllers.autoscalers.keda import per_instance
from include.controllers.autoscalers.upstream.left_out import NotRepresentable


def check(function: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """What our rule gives for a row; raises NotRepresentable."""
    if "target_per_pod" in inputs:
        wanted = per_instance(
            inputs["metric"], inputs["current"], inputs["target_per_pod"], inputs["tolerance"]
        )
        return {"replicas": wanted}
    raise NotRepresentable("AUTO-CONFORM-KEDA")
