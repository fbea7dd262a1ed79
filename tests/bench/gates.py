"""How a bench ends: with 1 when a figure is out of its bounds, if it is asked to."""

from __future__ import annotations

import sys
from collections.abc import Iterable


def exit_code(problems: Iterable[str], *, gate: bool) -> int:
    """Print the problems; nothing is one without the gate."""
    reported = list(problems) if gate else []
    for problem in reported:
        print(problem, file=sys.stderr)
    return int(bool(reported))
