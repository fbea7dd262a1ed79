"""Every error this project raises on purpose:

* TidebenchError
  x SpecError            the user can fix the input; carries every problem at once
  x TestbedError         the world misbehaved
    + CapacityExhausted  no room or quota left; retrying will not help
    + TestbedNotReady    retrying will help
  x StoreError           a stored file is missing, corrupt or of another version
  x ControllerFailed     code of a controller raised something else
  x GateFailed           validation refused the data; nothing was published
  x PublishError         a target (folder, results database) could not be written
  x SetupError           the machine lacks something (Java, a writable folder)
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from typing import Any, NamedTuple

MOST_SHOWN = 100
"""Characters of a name that is not known."""
_ADDRESS = re.compile(r"://|:[^@]*@")


class Problem(NamedTuple):
    """One sentence that says what to do, and the field of the spec that it is about."""

    field: str
    text: str


class TidebenchError(Exception):
    """Base class of every error this project raises on purpose."""


class SpecError(TidebenchError):
    """The input has problems; all of them are listed, each with what to do."""

    def __init__(self, source: str, problems: Iterable[str]) -> None:
        self.source = source
        self.problems = tuple(problems)
        listed = "\n".join(f"  - {problem}" for problem in self.problems)
        noun = "problem" if len(self.problems) == 1 else "problems"
        super().__init__(f"{source}: {len(self.problems)} {noun}\n{listed}")


class TestbedError(TidebenchError):
    """The testbed misbehaved."""

    __test__ = False  # the name starts with "Test", which pytest would collect


class CapacityExhausted(TestbedError):
    """No room or quota left; retrying will not help."""


class TestbedNotReady(TestbedError):
    """Not there yet; retrying will help."""


class StoreError(TidebenchError):
    """A stored file is missing, corrupt or was written by another version."""


class ControllerFailed(TidebenchError):
    """Code of a controller raised something else, which is the cause."""


class GateFailed(TidebenchError):
    """Validation refused the data; nothing was published."""


class PublishError(TidebenchError):
    """A publication target could not be written; nothing there was changed."""


class SetupError(TidebenchError):
    """The machine lacks something that a run needs."""


def all_checked(source: str, *checks: Callable[[], Any]) -> list[Any]:
    """What the checks return. Raises SpecError with the problems of all, each once."""
    results, problems = [], []
    for check in checks:
        try:
            results.append(check())
        except SpecError as error:
            problems += [
                one if error.source == source else f"{error.source}: {one}"
                for one in error.problems
            ]
    if problems:
        raise SpecError(source, dict.fromkeys(problems))
    return results


def command(*words: object) -> str:
    """What to type to call this program with these words, quoted for a shell."""
    return shlex.join(["tidebench", *map(str, words)])


def unknown_name(kind: str, name: object, names: Iterable[str], *, most: int = 0) -> str:
    """One sentence for a name that is in no registry, with the closest known one, or all that begin
    with it and a comma. Of more than ``most`` only so many are listed, the closest ones; 0: all.

    What may be an address with a password is not repeated.
    """
    sorted_names = sorted(names)
    if 0 < most < len(sorted_names):
        closest = get_close_matches(str(name), sorted_names, n=most, cutoff=0.0)
        rest = f"and {len(sorted_names) - most} more"
        return unknown_name(kind, name, closest).removesuffix(".") + f" {rest}."
    separator = "; " if any("," in each for each in sorted_names) else ", "
    listed = separator.join(sorted_names)
    if isinstance(name, str) and _ADDRESS.search(name):
        return f"unknown {kind}: what was given is an address. Known: {listed}."
    similar = [each for each in sorted_names if each.startswith(f"{name},")]
    similar = similar or get_close_matches(str(name), sorted_names, n=1, cutoff=0.5)
    hint = f" Did you mean {' or '.join(map(repr, similar))}?" if similar else ""
    shown = repr(name)
    shown = shown if len(shown) <= MOST_SHOWN else f"{shown[:MOST_SHOWN]}..."
    return f"unknown {kind} {shown}.{hint} Known: {listed}."


def not_above_0(options: object, *names: str) -> Iterator[str]:
    """Sentence for each of these options that is not above 0."""
    for name in names:
        if getattr(options, name) <= 0:
            yield f"{name} must be above 0, got {getattr(options, name):g}"


def below_0(options: object, *names: str) -> Iterator[str]:
    """Sentence for each of these options that is below 0."""
    for name in names:
        if getattr(options, name) < 0:
            yield f"{name} must not be negative, got {getattr(options, name):g}"
