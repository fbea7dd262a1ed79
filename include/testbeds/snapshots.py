"""Plain values of a snapshot as an array of JSON bytes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from include.model.errors import StoreError


def packed(plain: dict[str, Any], version: int) -> np.ndarray:
    """JSON bytes of ``plain`` with the format's version."""
    text = json.dumps({"version": version, **plain}, separators=(",", ":")).encode()
    return np.frombuffer(text, dtype=np.uint8)


def unpacked(array: np.ndarray, version: int) -> dict[str, Any]:
    """The inverse of ``packed``. Raises StoreError for another version."""
    plain: dict[str, Any] = json.loads(array.tobytes())
    if plain["version"] != version:
        raise StoreError(
            f"the snapshot has version {plain['version']}, this code reads {version}; remove the "
            "run's folder and run it again"
        )
    return plain
