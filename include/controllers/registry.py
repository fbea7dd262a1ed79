"""Controllers by name: those of the project, of installed packages, and classes of a user's own."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterator, Mapping
from functools import cache, partial
from importlib.metadata import entry_points
from typing import Any, get_type_hints

from include.controllers.base import Registration
from include.controllers.failures import WHATEVER, error_line, import_advice
from include.model.errors import SpecError

ENTRY_POINTS = "tidebench.controllers"
"""The group in which a package announces a class, or a `Registration` of one."""


class Controllers(Mapping[str, Registration]):
    """Registrations by name, or by ``module:Class`` where neither project nor package has one.

    Iterates over the project's and those announced ones that can be imported, which happens when
    one is asked for.
    """

    def __init__(self, registered: Mapping[str, Registration]) -> None:
        self._registered = registered

    def __getitem__(self, name: str) -> Registration:
        if name in self._registered:
            return self._registered[name]
        if not (path := self.path_of(name)):
            raise KeyError(name)
        try:
            return imported(path)
        except SpecError as error:
            raise KeyError(name) from error

    def __iter__(self) -> Iterator[str]:
        yield from self._registered
        yield from (name for name in announced() if name not in self._registered and name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def path_of(self, name: str) -> str:
        """The ``module:Class`` behind a name that is not of the project, else an empty text."""
        return (
            "" if name in self._registered else announced().get(name, name if ":" in name else "")
        )


@cache
def announced() -> Mapping[str, str]:
    """The ``module:Class`` of every controller that an installed package announces."""
    return {entry.name: entry.value for entry in entry_points(group=ENTRY_POINTS)}


@cache
def imported(path: str) -> Registration:
    """The registration of ``module:Class``, which may also name a `Registration`.

    Raises SpecError that says what is missing.
    """
    module, _, attribute = path.partition(":")
    try:
        value: Any = importlib.import_module(module)
        for name in attribute.split("."):
            value = getattr(value, name)
    except WHATEVER as error:
        problem = f"{path} cannot be imported ({error_line(error)})"
        raise SpecError("controller", [f"{problem}; {import_advice(error, module)}"]) from error
    registration = value if isinstance(value, Registration) else Registration(value)
    build: Any = registration.build
    kind = build.func if isinstance(build, partial) else build
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        raise SpecError("controller", [f"{path} is no dataclass; docs/adding.md has a whole one"])
    if missing := [name for name in _METHODS if not hasattr(kind, name)]:
        raise SpecError("controller", [f"{path} lacks {', '.join(missing)}; write them"])
    try:
        get_type_hints(kind)
    except WHATEVER as error:
        advice = "import in its module what its annotations name, outside of TYPE_CHECKING"
        problem = f"{path} has an option whose type cannot be read ({error_line(error)})"
        raise SpecError("controller", [f"{problem}; {advice}"]) from error
    return registration


_METHODS = ("problems", "initial_instances", "initial_memory", "decide")
