"""Upstream's own tests, as rows that our rules are held against: a module per autoscaler.

``CHECKS`` has, by the first part of a row's id, what runs such a row: the inputs and the function
of upstream that they are for give what our rule gives, under the names of the row's expectation.
A row that our rule has no way to run raises NotRepresentable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from include.controllers.autoscalers.upstream import druid, flink, keda, kubernetes

Check = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]

CHECKS: Mapping[str, Check] = {
    "druid": druid.check,
    "flink": flink.check,
    "hpa": kubernetes.check,
    "keda": keda.check,
}
ROWS = Path(__file__).parent
"""The folder of the rows, a file ``*.json`` per autoscaler."""
