"""Which code an operator runs."""

from __future__ import annotations

from collections.abc import Mapping

from include.testbeds.live.operators import manufacturing, relay
from include.testbeds.live.operators.code import Code

CODES: Mapping[str, Code] = {
    "O1": manufacturing.o1,
    "O2": manufacturing.o2,
    "O3": manufacturing.o3,
    "O4": manufacturing.o4,
    "O5": manufacturing.o5,
    "O6": manufacturing.o6,
    "O7": manufacturing.o7,
    "O8": manufacturing.o8,
    "O9": manufacturing.o9,
    "relay": relay.code,
}
"""An operator of another name is a ``relay``."""


def code_of(operator: str, override: str = "") -> Code:
    """Code by the name of an operator, or another one. Raises ValueError for an unknown one."""
    if override and override not in CODES:
        raise ValueError(f"unknown code {override!r}; known: {', '.join(CODES)}")
    return CODES.get(override or operator, relay.code)
