"""Options that are axes: `{name: btu, observations: {sweep: [3, 5]}}` stands for two choices."""

from __future__ import annotations

from itertools import product
from typing import Any

SWEEP = "sweep"


def unfolded(choices: Any) -> list[Any]:
    """One choice or several, each with plain options: the product over the options with a sweep.

    The first option named is the slowest. Raises ValueError, saying what to write, when a sweep
    is not a list of values.
    """
    several = choices if isinstance(choices, list | tuple) else [choices]
    return [plain for choice in several for plain in _plain(choice)]


def _plain(choice: Any) -> list[Any]:
    if not isinstance(choice, dict):
        return [choice]
    axes = [_values(name, value) for name, value in choice.items()]
    return [dict(zip(choice, values, strict=True)) for values in product(*axes)]


def _values(name: str, value: Any) -> list[Any]:
    if not isinstance(value, dict) or SWEEP not in value:
        return [value]
    values = value[SWEEP]
    if len(value) > 1 or not isinstance(values, list) or not values:
        raise ValueError(
            f"option {name}: write {{sweep: [...]}} with at least one value, got {value!r}"
        )
    if any(values.index(one) < i for i, one in enumerate(values)):
        raise ValueError(f"option {name}: a value is listed twice in its sweep, {values!r}")
    return values
