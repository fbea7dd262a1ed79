"""Which policies are tried: controllers with the options that make them fit a recorded job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from include.advise.replay import ReplayConditions, setting_for
from include.controllers import CONTROLLERS
from include.controllers.base import Controller, Setting
from include.experiment.options import checked_options, option_types
from include.model.errors import SpecError, unknown_name

CAPPED = "max_instances"


@dataclass(frozen=True, slots=True)
class Policy:
    """A controller and its options, under the name that the page shows."""

    name: str
    controller: str
    options: Mapping[str, Any] = field(default_factory=dict)
    at_start: int | None = None
    """Instances that it begins with, where that is not what was recorded."""

    def build(self) -> Callable[[Setting], Controller]:
        """What makes the controller from its setting."""
        return partial(_build, CONTROLLERS[self.controller].build, dict(self.options))


def _build(of: Callable[..., Controller], options: dict[str, Any], setting: Setting) -> Controller:
    return of(setting=setting, **options)


def policy(controller: str, options: Mapping[str, Any], conditions: ReplayConditions) -> Policy:
    """A checked policy; it never asks for more instances than there may be, where it has a limit.

    Raises SpecError with everything that is wrong with name and options.
    """
    if controller not in CONTROLLERS:
        raise SpecError("controller", [unknown_name("controller", controller, CONTROLLERS)])
    factory = CONTROLLERS[controller].build
    types = option_types(factory, ("setting",))
    values, problems = checked_options(controller, types, options)
    if problems:
        raise SpecError(controller, problems)
    if CAPPED in types:
        values.setdefault(CAPPED, conditions.max_instances)
    made = Policy(controller, controller, values)
    if wrong := list(made.build()(_some_setting(conditions)).problems()):
        raise SpecError(controller, wrong)
    return made


def _some_setting(conditions: ReplayConditions) -> Setting:
    return setting_for(1.0, 15.0, conditions)


def tried(conditions: ReplayConditions, peak: int, usual: int) -> tuple[Policy, ...]:
    """What ``advise`` compares: ``peak`` instances carry the highest load, ``usual`` the median."""
    few, middle = max(1, usual), max(1, (peak + usual) // 2)
    asked: list[tuple[str, str, Mapping[str, Any]]] = [
        (f"hpa, CPU {100 * share:.0f} %", "hpa", {"target_cpu": share})
        for share in (0.35, 0.5, 0.7)
    ]
    asked += [
        ("target-tracking, 50 %", "target-tracking", {}),
        ("flink-autoscaler", "flink-autoscaler", {}),
        ("ds2", "ds2", {}),
        ("tide", "tide", {}),
    ]
    sizes = sorted({few, middle, peak, conditions.max_instances})
    made = [(name, policy(controller, options, conditions)) for name, controller, options in asked]
    fixed = [Policy(f"fixed, {n}", "fixed", {"instances_each": n}, at_start=n) for n in sizes]
    return (*(Policy(name, one.controller, one.options) for name, one in made), *fixed)
