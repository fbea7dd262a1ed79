"""What a form says about options: the names of all, and the defaults they have."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any


def options_help(known: Mapping[str, Callable[..., Any]], hidden: Collection[str] = ()) -> str:
    """Markdown: a paragraph per class of the registry, with the names it has there."""
    names: dict[Any, list[str]] = {}
    for name, factory in known.items():
        names.setdefault(factory.func if isinstance(factory, partial) else factory, []).append(name)
    fixed = {key for one in known.values() if isinstance(one, partial) for key in one.keywords}
    paragraphs = []
    for cls, own in names.items():
        shown = [
            f"`{field.name} = {_default(field)}`" if field.name not in fixed else f"`{field.name}`"
            for field in dataclasses.fields(cls)
            if field.init and field.name not in hidden
        ]
        if shown:
            paragraphs.append(f"**{', '.join(own)}**: {', '.join(shown)}")
    return "\n\n".join(paragraphs)


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is dataclasses.MISSING:
        return "..."
    value = field.default
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return str(list(value))
    return f"{value:g}" if isinstance(value, float) else str(value)
