"""Options of controllers and patterns, as a user writes them, against what their class takes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING
from functools import cache, partial
from typing import Any, get_args, get_type_hints

import yaml
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError

from include.files.plain_yaml import read_yaml
from include.model.errors import SpecError, unknown_name

SETTING = "setting"
"""The field of a controller that a run fills in."""


def parsed_options(pairs: Iterable[str], source: str = "--set") -> dict[str, Any]:
    """``NAME=VALUE`` as options; values as YAML reads them. Raises SpecError with every bad one."""
    options: dict[str, Any] = {}
    problems: list[str] = []
    for pair in pairs:
        name, _, text = pair.partition("=")
        if not (name.strip() and text.strip()):
            problems.append(f"{pair!r} is no NAME=VALUE, such as target_cpu=0.35")
            continue
        if name.strip() in options:
            problems.append(f"{name.strip()} is given twice; give it once")
            continue
        try:
            options[name.strip()] = read_yaml(text)
        except yaml.YAMLError:
            problems.append(f"{pair!r} has no value that YAML can read; put it in quotes")
    if problems:
        raise SpecError(source, problems)
    return options


@cache
def option_types(factory: Callable[..., Any]) -> Mapping[str, Any]:
    """The options a registered dataclass takes, with their types; its setting is the run's."""
    cls: Any = factory.func if isinstance(factory, partial) else factory
    hints = get_type_hints(cls)
    return {f.name: hints[f.name] for f in dataclasses.fields(cls) if f.init and f.name != SETTING}


def missing_options(factory: Callable[..., Any], options: Collection[str]) -> list[str]:
    """Options without a default that were not given, each with what its class says it is."""
    cls = factory.func if isinstance(factory, partial) else factory
    return [
        f"{f.name}: {f.metadata['is']}" if "is" in f.metadata else f.name
        for f in dataclasses.fields(cls)  # type: ignore[arg-type]
        if f.init
        and f.default is f.default_factory is MISSING
        and f.name not in (*options, *getattr(factory, "keywords", ()))
    ]


def checked_options(
    where: str, factory: Callable[..., Any], options: Mapping[str, Any], fixed: Collection[str] = ()
) -> tuple[dict[str, Any], list[str]]:
    """The options with the right types, and everything wrong with them; none may be ``fixed``."""
    types = {name: kind for name, kind in option_types(factory).items() if name not in fixed}
    values: dict[str, Any] = {}
    problems: list[str] = []
    for name, value in options.items():
        if name not in types:
            problem = f"{unknown_name('option', name, types)}" if types else "takes no options"
            problems.append(f"{where}: {problem}")
            continue
        try:
            no_bool = bool not in (types[name], *get_args(types[name]))
            if no_bool and any(isinstance(one, bool) for one in _elements(value)):
                problems.append(f"{where}.{name}: write a number or a text, got {value!r}")
                continue
            values[name] = TypeAdapter(types[name]).validate_python(value)
        except ValidationError as error:
            message = error.errors(include_url=False)[0]["msg"]
            problems.append(f"{where}.{name}: {message[:1].lower()}{message[1:]}, got {value!r}")
            continue
        except PydanticSchemaGenerationError:
            how = "annotate it with a number, a text, or a tuple of them"
            kind = getattr(types[name], "__name__", types[name])
            problems.append(f"{where}.{name}: no spec can give a {kind}; {how}")
            continue
        numbers = [one for one in _elements(values[name]) if isinstance(one, float | int)]
        if not all(map(_is_finite, numbers)):
            problems.append(f"{where}.{name}: must be a finite number, got {value!r:.40}")
            del values[name]
    return values, problems


def changed_options(factory: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Options, in the types of the registered class, whose value is not the default one.

    Values that the class does not take are left to ``checked_options``.
    """
    values, _ = checked_options("", factory, options)
    defaults = default_options(factory)
    return {name: value for name, value in values.items() if value != defaults[name]}


def _elements(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list | tuple) else [value]


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # a whole number of hundreds of digits
        return False


def options_help(factories: Mapping[str, Callable[..., Any]]) -> str:
    """Markdown: a paragraph for all names with the same options, each with its default if all
    of them share it."""
    defaults = {
        name: {option: _text(value) for option, value in default_options(factory).items()}
        for name, factory in factories.items()
    }
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, options in defaults.items():
        if options:
            groups.setdefault(tuple(options), []).append(name)
    return "\n\n".join(
        f"**{', '.join(names)}**: "
        + ", ".join(
            _shown(option, {defaults[name][option] for name in names}) for option in options
        )
        for options, names in groups.items()
    )


def default_options(factory: Callable[..., Any]) -> dict[str, Any]:
    """The options of a registered dataclass with their defaults; MISSING where there is none."""
    preset = factory.keywords if isinstance(factory, partial) else {}
    cls: Any = factory.func if isinstance(factory, partial) else factory
    options = [f for f in dataclasses.fields(cls) if f.init and f.name != SETTING]
    made = {f.name: f.default_factory() for f in options if f.default_factory is not MISSING}
    return {f.name: f.default for f in options} | made | preset


def _shown(option: str, defaults: Collection[str]) -> str:
    (default, *more) = defaults
    return option if more or not default else f"{option} = {default}"


def _text(value: Any) -> str:
    """A default as it would be typed; empty where there is none, or it is."""
    if value is MISSING or value == {}:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return str(list(value))
    return f"{value:g}" if isinstance(value, float) else str(value)
