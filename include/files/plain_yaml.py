"""YAML that others wrote, as plain values that also JSON has: the only place that parses it."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import yaml

from include.files.inputs import input_text
from include.model.errors import SpecError

MOST_NESTED = 100
_CRASHES_FROM = 10_000
"""Levels that libyaml has been seen to take; some 30,000 overflow its stack, and the process ends.
No shorter text has as many."""
MOST_VALUES = 20_000
"""Of a text with aliases, which may stand for more values than any machine has room for."""


_ALIAS = re.compile(r"(?:^|[\s\[{,:])\*[^\s*]")
_TAG = "tag:yaml.org,2002:"


# The same language, read ten times as fast where libyaml is there.
class _Plain(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads a date as the text that stands there, and knows no kind of value that JSON lacks.

    Keeps a sentence for every key that stands twice in a mapping, where YAML would take the last.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.twice: list[str] = []

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        first: dict[str, int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != f"{_TAG}merge":
                line = key.start_mark.line + 1
                if key.value in first:
                    both = f"lines {first[key.value]} and {line}"
                    self.twice.append(f"{key.value} stands twice ({both}); keep one of them")
                first.setdefault(key.value, line)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return mapping

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        written = len(node.value)
        super().flatten_mapping(node)
        if len(node.value) > written:
            _refuse_more(len(node.value))


def _whole(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    """A number that messages can show. Raises ValueError for others, also in hexadecimal digits."""
    number: int = loader.construct_yaml_int(node)
    str(number)
    return number


_Plain.add_constructor(f"{_TAG}int", _whole)
_Plain.add_constructor(f"{_TAG}timestamp", yaml.SafeLoader.construct_yaml_str)
for _kind in ("binary", "set", "omap", "pairs"):
    _Plain.add_constructor(f"{_TAG}{_kind}", yaml.SafeLoader.construct_undefined)


def read_yaml(text: str) -> Any:
    """Plain values from YAML text. Raises yaml.YAMLError when it is none, nests too deeply, stands
    for too many values, or has a key twice in one mapping."""
    if len(text) >= _CRASHES_FROM:
        _refuse_nesting(text)
    try:
        loader = _Plain(text)
        try:
            values = loader.get_single_data()
            if _ALIAS.search(text):
                _refuse_more(_values_in(values, {}))
        finally:
            loader.dispose()
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits; lists in lists
        raise yaml.YAMLError(str(error)) from error
    if loader.twice:
        raise yaml.YAMLError("; ".join(loader.twice))
    return values


def input_yaml(path: str | Path, kind: str) -> Any:
    """Plain values of a YAML file that is named. Raises SpecError with what is wrong with it."""
    try:
        return read_yaml(input_text(path, kind))
    except yaml.YAMLError as error:
        raise SpecError(Path(path).name, [f"not readable as YAML: {error}"]) from error


def _refuse_nesting(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_Plain):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MOST_NESTED:
            raise yaml.YAMLError(f"more than {MOST_NESTED} levels deep: {event.start_mark}")


def _refuse_more(values: float) -> None:
    if values > MOST_VALUES:
        raise yaml.YAMLError(f"aliases stand for more than {MOST_VALUES} values; write it shorter")


def _values_in(value: Any, counts: dict[int, float]) -> float:
    """How many values it is written out; without end where an alias is in what it stands for."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in counts:
        counts[id(value)] = math.inf
        parts = value.values() if isinstance(value, dict) else value
        counts[id(value)] = 1 + sum(_values_in(part, counts) for part in parts)
    return counts[id(value)]
