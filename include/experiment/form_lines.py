"""What is typed into a form: options as lines of `name = value`, numbers as lists of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from include.files.plain_yaml import read_yaml

MOST_RUNS = 10_000
"""How many runs one experiment may have, so how many seeds a range may stand for."""
_RANGE = re.compile(r"([0-9]{1,18})(?:-|\.\.)([0-9]{1,18})")
_IN_A_RANGE = re.compile(r"(?<=[0-9])\s*(-|\.\.)\s*(?=[0-9])")
_LINE = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*[=:]\s*(\S.*?)\s*")


def options_of(field: str, given: Any, problems: list[str]) -> dict[str, Any]:
    """The options of one field; whatever is wrong with a line is added to ``problems``.

    ``given`` is a list of lines or a text of them, each `name = value` with a value as in YAML;
    or, from a program, a mapping or JSON of one; or nothing.
    """
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, str) and given.lstrip().startswith("{"):
        return _from_json(field, given, problems)
    if given is not None and not isinstance(given, str | Sequence):
        problems.append(f"{field} must be lines of `name = value`, got {given!r}")
        return {}
    options: dict[str, Any] = {}
    for line in _lines(given):
        match = _LINE.fullmatch(line)
        if match is None:
            problems.append(f"{field}: write `name = value`, got {line.strip()!r}")
        elif match[1] in options:
            problems.append(f"{field}: {match[1]} is given twice; keep one line of it")
        else:
            try:
                options[match[1]] = read_yaml(match[2])
            except yaml.YAMLError:
                problems.append(f"{field}: {match[2]!r} is not a value of {match[1]}")
    return options


def numbers_of(given: Any) -> Any:
    """Numbers that stand one per line or with commas between them, as a list; others unchanged."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        given = [given]
    return [number for one in given for number in _split(one)]


def seeds_of(given: Any) -> list[Any]:
    """Numbers as above, where `1-5` and `1..5` stand for all from the first to the last.

    Raises ValueError, saying what to write, for a range that goes down or is too long.
    """
    several = given if isinstance(given, list | tuple) else [given]
    closed = [_IN_A_RANGE.sub(r"\1", one) if isinstance(one, str) else one for one in several]
    return [seed for one in numbers_of(closed) for seed in _from_first_to_last(one)]


def _from_first_to_last(one: Any) -> Iterable[Any]:
    match = _RANGE.fullmatch(one) if isinstance(one, str) else None
    if match is None:
        return [one]
    first, last = int(match[1]), int(match[2])
    if last < first:
        raise ValueError(f"{one} goes down; write {last}-{first}")
    if last - first >= MOST_RUNS:
        many = f"{one} stands for {last - first + 1} seeds"
        raise ValueError(f"{many}, and an experiment has at most {MOST_RUNS} runs; shorten it")
    return range(first, last + 1)


def choices_of(field: str, given: Any, problems: list[str]) -> list[Any]:
    """Names, or names with options, one per line: `keda`, or `{name: tide, care: 2}`.

    ``given`` is a list of lines or a text of them, or from a program a list of choices; whatever
    is wrong with a line is added to ``problems``.
    """
    if given is not None and not isinstance(given, str | Sequence):
        problems.append(f"{field} must be lines, each a name or {{name: ..., ...}}, got {given!r}")
        return []
    lines = given.splitlines() if isinstance(given, str) else given or ()
    choices: list[Any] = []
    for line in lines:
        if isinstance(line, str) and line.lstrip().startswith("{"):
            try:
                choices.append(read_yaml(line))
            except yaml.YAMLError:
                problems.append(f"{field}: write {{name: ..., option: value}}, got {line.strip()}")
        elif not isinstance(line, str) or line.strip():
            choices.append(line.strip() if isinstance(line, str) else line)
    return choices


def entries_of(given: Any) -> Any:
    """Lines without those that are empty: a form leaves one behind the last."""
    return [one for one in given if not isinstance(one, str) or one.strip()] if given else given


def _split(given: Any) -> Iterator[Any]:
    if isinstance(given, str):
        yield from (one for one in re.split(r"[,;\s]+", given) if one)
    elif given is not None:
        yield given


def _lines(given: str | Sequence[Any] | None) -> Iterator[str]:
    lines = given.splitlines() if isinstance(given, str) else given or ()
    yield from (str(line) for line in lines if str(line).strip())


def _from_json(field: str, text: str, problems: list[str]) -> dict[str, Any]:
    try:
        options: dict[str, Any] = json.loads(text)
    except ValueError as error:
        problems.append(f"{field} is not JSON: {error}")
    except RecursionError:
        problems.append(f"{field} is JSON in too many brackets; write plain values")
    else:
        return options
    return {}
