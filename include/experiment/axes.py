"""Options that are axes: `{name: btu, observations: {sweep: [3, 5]}}` stands for two choices."""

from __future__ import annotations

from itertools import product
from typing import Any

SWEEP = "sweep"


def unfolded(choices: Any) -> list[Any]:
    """One choice or several, each with plain options: the product over the options with a sweep.

    The first option named is the slowest. Raises ValueError, saying what to write, for all sweeps
    that are not lists of values.
    """
    plain, problems = _tried(choices)
    if problems:
        raise ValueError("; ".join(problems))
    return plain


def those_that_unfold(choices: Any) -> list[Any]:
    """As above, without the choices whose sweep is not a list of values."""
    return _tried(choices)[0]


def as_list(value: Any) -> list[Any]:
    """One value, or several."""
    return list(value) if isinstance(value, list | tuple) else [value]


def _tried(choices: Any) -> tuple[list[Any], list[str]]:
    plain: list[Any] = []
    problems = []
    for choice in as_list(choices):
        try:
            plain += _plain(choice)
        except ValueError as error:
            problems.append(str(error))
    return plain, problems


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
