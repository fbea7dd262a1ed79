"""What a form says about options: the names of all, and the defaults they have."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any


def options_help(factories: Mapping[str, Callable[..., Any]], hidden: Collection[str] = ()) -> str:
    """Markdown: a paragraph for all names with the same options, each with its default if all
    of them share it."""
    defaults = {name: _defaults(factory, hidden) for name, factory in factories.items()}
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


def _defaults(factory: Callable[..., Any], hidden: Collection[str]) -> dict[str, str]:
    preset = factory.keywords if isinstance(factory, partial) else {}
    cls: Any = factory.func if isinstance(factory, partial) else factory
    return {
        field.name: _text(preset.get(field.name, field.default))
        for field in dataclasses.fields(cls)
        if field.init and field.name not in hidden
    }


def _shown(option: str, defaults: Collection[str]) -> str:
    (default, *more) = defaults
    return option if more or not default else f"{option} = {default}"


def _text(value: Any) -> str:
    """A default as it would be typed; empty where there is none."""
    if value is dataclasses.MISSING:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return str(list(value))
    return f"{value:g}" if isinstance(value, float) else str(value)
