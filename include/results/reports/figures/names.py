"""Where the names of points stand: on no point, no line and no other name, if there is room."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Box = tuple[float, float, float, float]
"""Left, bottom, right and top, in typographic points."""
Place = tuple[int, int, str]
"""How far right of a point and above it a name is, and which of its sides or centre is there."""


def box_of(at: tuple[float, ...], name: str, place: Place, font: float) -> Box:
    """Where a name would be; its letters are some 0.6 as wide as high."""
    right, up, side = place
    width = 0.6 * font * len(name)
    left = at[0] + right - {"left": 0.0, "center": width / 2, "right": width}[side]
    return left - 1, at[1] + up - 2, left + width + 1, at[1] + up + font


def covered(boxes: FloatArray, others: FloatArray) -> FloatArray:
    """By box the area that others cover, added up."""
    ends = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    sides = np.maximum(0.0, ends - np.maximum(boxes[:, None, :2], others[None, :, :2]))
    area: FloatArray = sides.prod(axis=2).sum(axis=1)
    return area


def outside(boxes: FloatArray, panel: Box) -> FloatArray:
    """By box the area that is not on its panel and may be cut."""
    areas: FloatArray = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
    return areas - covered(boxes, np.array([panel]))
