"""Print how many decisions of tide differ if one of its numbers is halved or doubled.

    python -m infra.tide_numbers > docs/results/tide_numbers.csv     # some minutes

tide runs each load once, and what has another number sees the same observations: what another
decision would have changed is not in it. A cell is a share of the decisions in percent.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from importlib import import_module
from typing import Any

import pandas as pd

from include.controllers import tide
from include.controllers.tide.controller import Tide
from include.experiment.run import resolve
from include.experiment.spec import RunSpec
from include.model.decision import Action
from include.model.observation import Observation
from include.runs.session import Session

MODULES = [
    import_module(f"{tide.__name__}.{module.name}")
    for module in pkgutil.iter_modules(tide.__path__)
]
NO_CHOICE = {
    "setting", "interval_s", "end_to_end", "FIRST", "MOST_CARE", "ROUNDING_S",
    "TURNS", "MORE", "AT_ONCE",
}  # fmt: skip
"""What a run is about; a value above all others, a bound of an option, a tolerance, and how much is
computed at once."""
LOADS: Mapping[str, Mapping[str, Any]] = {
    "stepwise": {"pattern": "stepwise", "seed": 31},
    "walk": {"pattern": "random_walk", "seed": 931},
    "pauses": {"pattern": "stepwise", "seed": 31, "calibration": "manufacturing_paused"},
    "job_pauses": {"pattern": "stepwise", "seed": 31, "calibration": "manufacturing_flink"},
}


def observed(duration_min: int, **load: Any) -> tuple[Tide, list[Observation]]:
    """tide, and what it saw in a run, from one decision to the next."""
    spec = RunSpec(
        experiment="numbers", controller="tide", btu_min=10, duration_min=duration_min, **load
    )
    session = Session.open(resolve(spec))
    session.deploy()
    turns = session.loop.turns(session.memories, 0.0, 60.0 * duration_min)
    seen = [turn.acted.observed for turn in turns if turn.acted]
    return Tide(setting=session.loop.setting), seen


def decided(controller: Tide, seen: Sequence[Observation]) -> list[tuple[Action, ...]]:
    """What it would do, remembering what it saw before."""
    memory, actions = controller.initial_memory(), []
    for observation in seen:
        memory, decision = controller.decide(memory, observation)
        actions.append(decision.actions)
    return actions


def numbers() -> dict[str, tuple[float, list[Any]]]:
    """Every option and constant: its value, and the modules that have it, none of an option."""
    of: dict[str, tuple[float, list[Any]]] = {
        option.name: (float(str(option.default)), [])
        for option in fields(Tide)
        if option.name not in NO_CHOICE
    }
    for module in MODULES:
        for name, value in vars(module).items():
            if name.isupper() and name not in NO_CHOICE and isinstance(value, float | int):
                of.setdefault(name, (value, []))[1].append(module)
    return of


def variants() -> Iterator[tuple[str, str, float, list[Any]]]:
    """Every number halved and doubled: its name, how, what it is then, and the modules."""
    for how, factor in (("halved", 0.5), ("doubled", 2.0)):
        for name, (value, modules) in numbers().items():
            yield name, how, type(value)(value * factor), modules


@contextmanager
def with_number(
    controller: Tide, name: str, value: float, modules: Sequence[Any]
) -> Iterator[Tide]:
    """tide with another value of an option, or of a constant in every module that has it."""
    before = [vars(module)[name] for module in modules]
    options: dict[str, Any] = {} if modules else {name: value}
    try:
        for module in modules:
            setattr(module, name, value)
        yield replace(controller, **options)
    finally:
        for module, usual in zip(modules, before, strict=True):
            setattr(module, name, usual)


def shares(controller: Tide, seen: Sequence[Observation]) -> pd.DataFrame:
    """Percent of decisions that differ: a row for every number, columns ``halved``, ``doubled``."""
    usual, percent = decided(controller, seen), dict[tuple[str, str], float]()
    for name, how, value, modules in variants():
        with with_number(controller, name, value, modules) as other:
            changed = zip(usual, decided(other, seen), strict=True)
            percent[name, how] = 100 * sum(a != b for a, b in changed) / len(usual)
    return pd.Series(percent).unstack()[["halved", "doubled"]]


def main(duration_min: int = 90) -> None:
    """Print the table, numbers that matter first."""
    table = pd.concat(
        [
            shares(*observed(duration_min, **spec)).add_prefix(f"{load}_").add_suffix("_percent")
            for load, spec in LOADS.items()
        ],
        axis=1,
    )
    table = table.loc[table.max(axis=1).sort_values(ascending=False, kind="stable").index]
    table = table.round(1).rename_axis("number")
    table.insert(0, "value", pd.Series({name: value for name, (value, _) in numbers().items()}))
    table.to_csv(sys.stdout, lineterminator="\n")


if __name__ == "__main__":
    main()
