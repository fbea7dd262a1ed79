"""Options that are axes: `{name: btu, observations: {sweep: [3, 5]}}` stands for two choices."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable
from itertools import product
from typing import Any

from include.experiment.form_lines import MOST_RUNS

SWEEP = "sweep"


def unfolded(choices: Any) -> list[Any]:
    """One choice or several, each with plain options: the product over the options with a sweep.

    The first option named is the slowest. Raises ValueError, saying what to write, for all sweeps
    that are not lists of values, or stand for more choices than there may be runs.
    """
    axes: list[tuple[Any, list[list[Any]]]] = []
    problems = []
    for choice in as_list(choices):
        options = choice.items() if isinstance(choice, dict) else ()
        try:
            axes.append((choice, [_option_values(name, value) for name, value in options]))
        except ValueError as error:
            problems.append(str(error))
    sizes = [math.prod(map(len, values)) for _, values in axes]
    many = sum(size for size in sizes if size > 1)
    if many > MOST_RUNS:
        problems.append(
            f"the sweeps stand for {many} choices, and an experiment has at most {MOST_RUNS} runs; "
            "take some values out"
        )
    if problems:
        raise ValueError("; ".join(problems))
    return [
        dict(zip(choice, picked, strict=True)) if isinstance(choice, dict) else choice
        for choice, values in axes
        for picked in product(*values)
    ]


def none_swept(choices: Any) -> list[Any]:
    """Choices that every run has all of. Raises ValueError, saying what to write, for a sweep."""
    listed = [] if choices is None else as_list(choices)
    options = [pair for choice in listed if isinstance(choice, dict) for pair in choice.items()]
    swept = [name for name, value in options if isinstance(value, dict) and SWEEP in value]
    if swept:
        once = "every run has all of these, so list one per value in place of a sweep"
        raise ValueError(f"option {', '.join(dict.fromkeys(swept))}: {once}")
    return listed


def as_list(value: Any) -> list[Any]:
    """One value, or several."""
    return list(value) if isinstance(value, list | tuple) else [value]


def _option_values(name: str, value: Any) -> list[Any]:
    if not isinstance(value, dict) or SWEEP not in value:
        return [value]
    values = value[SWEEP]
    if len(value) > 1 or not isinstance(values, list) or not values:
        raise ValueError(
            f"option {name}: write {{sweep: [...]}} with at least one value, got {value!r}"
        )
    counts = Counter(item if isinstance(item, Hashable) else repr(item) for item in values)
    if twice := [str(item) for item, times in counts.items() if times > 1]:
        raise ValueError(
            f"option {name}: {', '.join(twice)} is listed twice in its sweep; list it once"
        )
    return values
