"""Which policies are tried: controllers with the options that make them fit a recorded job."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from include.advise.replay import ReplayConditions, setting_for
from include.advise.request import (
    BY_BUSY_TIME,
    END_TO_END,
    FIXED,
    MOST_INSTANCES,
    SUITABLE,
    WHOLE_WAY,
)
from include.controllers import CONTROLLERS
from include.controllers.base import Controller, Setting
from include.controllers.building import build_checked
from include.experiment.options import checked_options, option_types, parsed_options
from include.experiment.problems import registration_problems
from include.model.errors import SpecError, all_checked, unknown_name

ANY = ReplayConditions(instances_at_start=1, max_instances=MOST_INSTANCES)
"""Of a replay of which nothing is known yet."""
CAPPED = "max_instances"
CPU_TARGETS = (0.35, 0.5, 0.7)
FLINK = "flink-autoscaler"
REDEPLOY_S = 60.0
"""What a deployment of the Flink operator takes where nobody says."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A controller and its options, under the name that the page shows."""

    name: str
    controller: str
    options: Mapping[str, Any] = field(default_factory=dict)
    at_start: int | None = None
    """Instances that it begins with, where that is not what was recorded."""
    guessed: bool = False
    """Whether it decides by something that was not recorded: of CPU and busy time the other."""

    def build(self, setting: Setting) -> Controller:
        return CONTROLLERS[self.controller].build(setting=setting, **self.options)


def under(
    policy: Policy, conditions: ReplayConditions, asked_restart_s: float | None
) -> ReplayConditions:
    """The conditions that the policy brings: the Flink operator deploys a job again for a change,
    and ``key_groups`` are the parts that its records come in.

    What users say that a restart takes comes before what the controller is told of it.
    """
    if policy.controller != FLINK:
        return conditions
    told_s = policy.options.get("restart_s", REDEPLOY_S)
    redeploy_s = told_s if asked_restart_s is None else asked_restart_s
    return replace(conditions, redeploy_s=redeploy_s, parts=policy.options.get("key_groups", 0))


def policy(
    controller: str,
    options: Mapping[str, Any],
    conditions: ReplayConditions = ANY,
    setting_under: Callable[[str], Setting] | None = None,
) -> Policy:
    """A checked policy; it never asks for more instances than there may be, where it has a limit.

    ``setting_under`` tells its setting in a replay, if that is not yet a job as a whole. Raises
    SpecError with everything that is wrong with name and options.
    """
    if why_not := registration_problems("controller", controller):
        raise SpecError("controller", why_not)
    if CONTROLLERS[controller].needs_peak and controller != FIXED:
        raise SpecError("controller", [f"{controller} has to know the peak, and nobody does"])
    build = CONTROLLERS[controller].build
    values, problems = checked_options(controller, build, options)
    if problems:
        raise SpecError("controller", problems)
    asked = values.get(CAPPED, 0)
    if CAPPED in option_types(build):
        values.setdefault(CAPPED, conditions.max_instances)
    setting = setting_under(controller) if setting_under else setting_for(1.0, conditions)
    built = build_checked(controller, build, setting, values)
    if max(asked, *built.initial_instances().values()) > MOST_INSTANCES:
        wrong = f"a replay has at most {MOST_INSTANCES} instances; ask for fewer"
        raise SpecError(controller, [wrong])
    return Policy(controller, controller, values)


def settings_of(
    lag_each_items: float, *, by_operator: bool
) -> dict[str, dict[str, Mapping[str, Any]]]:
    """By controller the options that are tried, by what they are called; "" are those it has.

    ``lag_each_items`` are the records that wait for an instance at half its CPU. Where operators
    are replayed, ``by_operator``, what is late at one may count at those after it, too.
    """
    settings: dict[str, dict[str, Mapping[str, Any]]] = {
        "hpa": {f"CPU {100 * share:.0f} %": {"target_cpu": share} for share in CPU_TARGETS},
        "target-tracking": {"50 %": {}},
        "keda": {"": {}},
    }
    if math.isfinite(lag_each_items) and (each := round(lag_each_items)) > 0:
        settings["keda"][f"{each} records"] = {"items_each": float(each)}
    if by_operator:
        settings["tide"] = {"": {}, END_TO_END: {WHOLE_WAY: 1.0}}
    return settings


def tried(
    conditions: ReplayConditions,
    *,
    settings: Mapping[str, Mapping[str, Mapping[str, Any]]],
    only: Sequence[str] = SUITABLE,
    unrecorded: Sequence[str] = BY_BUSY_TIME,
    setting_under: Callable[[str], Setting] | None = None,
) -> tuple[Policy, ...]:
    """What ``advise`` compares beside fixed sizes: controllers as they ship or with ``settings``
    (`settings_of`).

    ``unrecorded`` are the controllers that decide by what was not recorded; ``setting_under`` is
    that of `policy`. Raises SpecError with all that is wrong with names and controllers.
    """
    named = [(name, *own) for name in only for own in settings.get(name, {"": {}}).items()]
    checks = (
        partial(policy, name, options, conditions, setting_under) for name, _, options in named
    )
    return tuple(
        replace(trial, name=f"{name}, {told}" if told else name, guessed=name in unrecorded)
        for (name, told, _), trial in zip(named, all_checked("controller", *checks), strict=True)
        if trial.controller != FIXED
    )


def fixed(instances: int) -> Policy:
    """So many instances all the time."""
    return Policy(f"fixed, {instances}", FIXED, {"instances_each": instances}, at_start=instances)


def recorded_policy(
    text: str,
    policies: Sequence[Policy],
    conditions: ReplayConditions,
    unrecorded: Sequence[str],
    setting_under: Callable[[str], Setting],
) -> Policy:
    """What scaled the job: a policy that is tried, by its name, or a controller with options as in
    ``hpa target_cpu=0.4``. Raises SpecError for anything else."""
    by_name, text = {tried.name: tried for tried in policies}, " ".join(text.split())
    if text in by_name:
        return by_name[text]
    controller, *pairs = text.split(" ")
    tried_controllers = {tried.controller for tried in policies}
    is_controller = bool(CONTROLLERS.path_of(controller)) or controller in CONTROLLERS
    if not is_controller or (controller in tried_controllers and not pairs):
        how = "; or write a controller with its options, such as 'hpa target_cpu=0.4'"
        names = (*by_name, *(name for name in SUITABLE if name not in tried_controllers))
        raise SpecError("--recorded", [unknown_name("policy", text, names).rstrip(".") + how])
    made = policy(controller, parsed_options(pairs, "--recorded"), conditions, setting_under)
    if controller == FIXED and (each := made.options.get("instances_each")):
        return fixed(each)
    setting = (controller, made.options)
    same = (tried for tried in policies if (tried.controller, tried.options) == setting)
    name = f"{controller}, as recorded"
    return next(same, replace(made, name=name, guessed=controller in unrecorded))
