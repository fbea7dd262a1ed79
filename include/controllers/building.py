"""Controllers in the setting of a run: built, or refused with all that speaks against them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from inspect import signature
from math import isfinite
from numbers import Integral, Real
from typing import Any

from pydantic import TypeAdapter

from include.controllers.base import Controller, Setting
from include.controllers.failures import WHATEVER, error_line, is_ctrl_c, method_failed
from include.model.errors import SpecError, not_above_0, unknown_name


def build_checked(
    name: str, build: Callable[..., Controller], setting: Setting, options: Mapping[str, Any]
) -> Controller:
    """The controller with options of the right types.

    Raises SpecError, whose source is ``name``, with what it says against its options and what no
    run could do with it.
    """
    try:
        controller = build(setting=setting, **options)
        problems = [*_options(controller), *_interval(controller)]
        problems = problems or [*_first_instances(controller), *_deciding(controller)]
    except (*WHATEVER, KeyboardInterrupt) as error:
        if is_ctrl_c(error):
            raise
        problems = [method_failed(error, build)]
    if problems:
        raise SpecError(name, dict.fromkeys(problems))
    return controller


@cache
def memory_adapter(kind: type) -> TypeAdapter[Any]:
    """What stores a class of memory, and reads it; to make one takes longer than to use it."""
    return TypeAdapter(kind)


def _options(controller: Controller) -> Iterator[str]:
    said: Any = controller.problems()
    if isinstance(said, str):
        yield said
    elif isinstance(said, Iterable):
        yield from map(str, said)
    else:
        yield f"problems: return the texts of what is wrong, or none at all, got {said!r:.40}"


def _interval(controller: Controller) -> Iterator[str]:
    interval_s: Any = controller.interval_s
    if isinstance(interval_s, bool) or not isinstance(interval_s, Real) or not isfinite(interval_s):
        yield f"interval_s must be a finite number of seconds, got {interval_s!r:.40}"
    else:
        yield from not_above_0(controller, "interval_s")


def _first_instances(controller: Controller) -> Iterator[str]:
    known, first = controller.setting.topology.operator_names, controller.initial_instances()
    if not isinstance(first, Mapping):
        yield f"initial_instances: return a mapping from operators to numbers, got {first!r:.40}"
        return
    for name, instances in first.items():
        if name not in known:
            yield f"initial_instances: {unknown_name('operator', name, known)}"
        elif not isinstance(instances, Integral) or instances < 0:
            yield f"initial_instances: {name} needs a whole number from 0, got {instances!r}"


def _deciding(controller: Controller) -> Iterator[str]:
    memory = controller.initial_memory()
    try:
        signature(controller.decide).bind(memory, None)
    except TypeError as error:
        yield f"decide is called with memory and observation, which it does not take: {error}"
    try:
        adapter = memory_adapter(memory.__class__)
        adapter.validate_python(adapter.dump_python(memory, mode="json"))
    except WHATEVER as error:
        yield not_stored(error)


def not_stored(error: BaseException) -> str:
    """Sentence for a memory that raised it when it was stored."""
    how = "make it a frozen dataclass of numbers, texts, tuples and mappings"
    return f"memory cannot be stored ({error_line(error)}); {how}"
