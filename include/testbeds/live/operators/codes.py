"""Which code an operator runs."""

from __future__ import annotations

from collections.abc import Mapping

from include.testbeds.live.operators import o1, o2, o3, o4, o5, o6, o7, o8, o9, relay
from include.testbeds.live.operators.code import Code

CODES: Mapping[str, Code] = {
    "O1": o1.code,
    "O2": o2.code,
    "O3": o3.code,
    "O4": o4.code,
    "O5": o5.code,
    "O6": o6.code,
    "O7": o7.code,
    "O8": o8.code,
    "O9": o9.code,
    "relay": relay.code,
}
"""An operator of another name is a ``relay``."""


def code_of(operator: str, override: str = "") -> Code:
    """Code by the name of an operator, or another one. Raises ValueError for an unknown one."""
    if override and override not in CODES:
        raise ValueError(f"unknown code {override!r}; known: {', '.join(CODES)}")
    return CODES.get(override or operator, relay.code)
