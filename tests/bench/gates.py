"""How a bench ends: with 1 when a figure is out of its bounds, if it is asked to."""

from __future__ import annotations

import sys
from collections.abc import Iterable


def exit_code(figures: Iterable[tuple[str, float, float]], *, gate: bool) -> int:
    """Of figures by name, each with the most that it may be; prints those that are above it."""
    above = [(name, figure, most) for name, figure, most in figures if gate and figure > most]
    for name, figure, most in above:
        print(f"{name}: {figure:.3g}, above {most:.3g}", file=sys.stderr)
    return int(bool(above))
