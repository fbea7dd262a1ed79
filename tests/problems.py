"""What is wrong with an input, as whoever gave it is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from include.model.errors import SpecError


def problems_told(read: Callable[..., Any], *arguments: Any, **named: Any) -> list[str]:
    """Every problem with these arguments; fails when there is none."""
    with pytest.raises(SpecError) as refused:
        read(*arguments, **named)
    return list(refused.value.problems)
