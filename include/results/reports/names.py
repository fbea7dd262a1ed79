"""What a reader sees instead of an id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def named(run: Mapping[str, Any]) -> str:
    """A controller with what differs from its defaults: `threshold (scale_up_above_items=500)`."""
    return f"{run['controller']} ({run['variant']})" if run["variant"] else str(run["controller"])
