"""What is typed into a form: options as lines of `name = value`, numbers as lists of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from include.files.plain_yaml import read_yaml

MOST_RUNS = 10_000
"""How many runs one experiment may have, so how many seeds a range may stand for."""
_RANGE = re.compile(r"([0-9]{1,18})(?:-|\.\.)([0-9]{1,18})")
_IN_A_RANGE = re.compile(r"(?<=[0-9])\s*(-|\.\.)\s*(?=[0-9])")
_LINE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*[=:]\s*(\S.*)")


def options_of(field: str, text: Any, problems: list[str]) -> dict[str, Any]:
    """The options of one field; whatever is wrong with a line is added to ``problems``.

    ``text`` is a list of lines or a text of them, each `name = value` with a value as in YAML;
    or, from a program, a mapping; or nothing.
    """
    if isinstance(text, Mapping):
        return dict(text)
    if text is not None and not isinstance(text, str | Sequence):
        problems.append(f"{field} must be lines of `name = value`, got {text!r}")
        return {}
    options: dict[str, Any] = {}
    for line in _lines(text):
        match = _LINE.fullmatch(line)
        if match is None:
            problems.append(f"{field}: write `name = value`, got {line!r}")
        elif match[1] in options:
            problems.append(f"{field}: {match[1]} is given twice; keep one line of it")
        else:
            try:
                options[match[1]] = read_yaml(match[2])
            except yaml.YAMLError:
                problems.append(f"{field}: {match[2]!r} is not a value of {match[1]}")
    return options


def numbers_of(entries: Any) -> Any:
    """Numbers that stand one per line or with commas between them, as a list; others unchanged."""
    if isinstance(entries, str) or not isinstance(entries, Sequence):
        entries = [entries]
    return [number for entry in entries for number in _split(entry)]


def seeds_of(entries: Any) -> list[Any]:
    """Numbers as above, where `1-5` and `1..5` stand for all from the first to the last.

    Raises ValueError, saying what to write, for all ranges that go down or are too long.
    """
    several = entries if isinstance(entries, list | tuple) else [entries]
    closed = [
        _IN_A_RANGE.sub(r"\1", entry) if isinstance(entry, str) else entry for entry in several
    ]
    seeds, problems = list[Any](), list[str]()
    for number in numbers_of(closed):
        try:
            seeds += _from_first_to_last(number)
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise ValueError("; ".join(problems))
    return seeds


def _from_first_to_last(number: Any) -> Iterable[Any]:
    match = _RANGE.fullmatch(number) if isinstance(number, str) else None
    if match is None:
        return [number]
    first, last = int(match[1]), int(match[2])
    if last < first:
        raise ValueError(f"{number} goes down; write {last}-{first}")
    if last - first >= MOST_RUNS:
        many = f"{number} stands for {last - first + 1} seeds"
        raise ValueError(f"{many}, and an experiment has at most {MOST_RUNS} runs; shorten it")
    return range(first, last + 1)


def choices_of(field: str, text: Any, problems: list[str]) -> list[Any]:
    """Names, or names with options, one per line: `keda`, or `{name: tide, care: 2}`.

    ``text`` is a list of lines or a text of them, or from a program a list of choices; whatever
    is wrong with a line is added to ``problems``.
    """
    if text is not None and not isinstance(text, str | Sequence):
        problems.append(f"{field} must be lines, each a name or {{name: ..., ...}}, got {text!r}")
        return []
    lines = text.splitlines() if isinstance(text, str) else text or ()
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


def entries_of(lines: Any) -> Any:
    """Lines without those that are empty: a form leaves one behind the last."""
    return [line for line in lines if not isinstance(line, str) or line.strip()] if lines else lines


def _split(entry: Any) -> Iterator[Any]:
    if isinstance(entry, str):
        yield from (number for number in re.split(r"[,;\s]+", entry) if number)
    elif entry is not None:
        yield entry


def _lines(text: str | Sequence[Any] | None) -> Iterator[str]:
    lines = text.splitlines() if isinstance(text, str) else text or ()
    yield from filter(None, (str(line).strip() for line in lines))
