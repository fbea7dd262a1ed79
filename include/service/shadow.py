"""Controllers beside a job that runs: each decides from the same readings, and nobody obeys.

Each sees the job as it is, with hosts of its own on paper. What it would have cost to do as it says
is for `verdict.py`, which replays the recording that is kept here.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, field, fields, replace
from functools import partial
from itertools import groupby
from math import ceil
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from include.advise.candidates import CAPPED
from include.controllers import CONTROLLERS
from include.controllers.base import Controller, Setting
from include.controllers.building import build_checked, memory_adapter
from include.experiment.options import checked_options, option_types
from include.experiment.problems import registration_problems
from include.files.appended import AppendedRows, whole_lines
from include.files.whole import json_bytes, read_json, write_synced
from include.model.errors import SpecError, StoreError, all_checked
from include.model.observation import Observation
from include.runs.advice import Advice, ask, reasons_of
from include.runs.guard import planned
from include.service.fleet import PaperFleet
from include.service.observe import (
    ServiceGraph,
    Terms,
    graph_of,
    now_s,
    observation_of,
    setting_of,
)
from include.service.rates import JobRates, Totals, added, comparable, rates_between
from include.service.reading import JobReading

STATE, DECISIONS, RECORDING = "state.json", "decisions.csv", "recording"
READS_IN_S = 30.0
"""A job runs so long before anybody decides: records have to pass, or nothing is known of edges."""
MEASURES_EVERY_S = 600.0
"""What goes over an edge, and what a record costs, is taken from the counters so often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advised:
    """What one controller would do with one operator, the readings it is from, and until when."""

    time_s: float
    controller: str
    operator: str
    instances: int
    wanted: int
    reason: str
    because: str
    holds_until_s: float
    in_per_s: float | None
    busy_share: float | None
    waiting_records: int | None
    takes_ms: float | None
    hosts_wanted: int
    failed: bool

    @property
    def changes(self) -> bool:
        return self.wanted != self.instances


COLUMNS = tuple(column.name for column in fields(Advised))


def decisions_in(
    path: Path, last_bytes: int | None = None
) -> Iterator[tuple[float, str, list[dict[str, str]]]]:
    """Time, controller and rows of the decisions in a file, as `whole_lines` has them."""
    rows = csv.DictReader(whole_lines(path, last_bytes))
    for (at_s, name), decision in groupby(rows, key=itemgetter("time_s", "controller")):
        yield float(at_s), name, list(decision)


@dataclass(slots=True)
class Shadowed:
    """One controller between two turns. Its memory is as plain values."""

    options: dict[str, Any] = field(default_factory=dict)
    memory: Any = None
    fleet: PaperFleet = field(default_factory=PaperFleet)
    mark: Totals = field(default_factory=Totals)
    looked_s: float = -1.0
    advised: list[Advised] = field(default_factory=list)
    valid_until_s: float = 0.0
    """Until when that holds by the clock of the machine, for other processes; ``holds_until_s`` is
    by the service's own, which goes on when the former is set."""


@dataclass(slots=True)
class ShadowState:
    """All that the service has to know when it goes on; `save` writes it whole."""

    job: str
    objective: str = ""
    """This and the price book as the shadow was told last."""
    prices: str = ""
    began_s: float = 0.0
    version: Literal[1] = 1
    totals: Totals = field(default_factory=Totals)
    last: JobReading | None = None
    """Up to which reading the totals go: a service that goes on counts from there."""
    graph: ServiceGraph | None = None
    measured_s: float = 0.0
    controllers: dict[str, Shadowed] = field(default_factory=dict)

    def save(self, folder: Path) -> None:
        """Returns when it is on disk. Raises SetupError when it is not; where it cannot be written
        the file before stays."""
        write_synced(folder / STATE, json_bytes(_STATE.dump_python(self, mode="json")))


_STATE = TypeAdapter(ShadowState)


def opened(
    folder: Path,
    job: str,
    controllers: Mapping[str, Mapping[str, Any]],
    say: Callable[[str], None] = lambda _: None,
) -> ShadowState:
    """The state in ``folder`` for these controllers with their options, or a new one.

    A controller that is new, or has other options, begins anew; ``say`` gets a sentence about those
    that are asked no more. Raises SpecError when the folder is
    of another job, StoreError when it cannot be read.
    """
    path = folder / STATE
    state = ShadowState(job)
    if path.is_file():
        try:
            state = _STATE.validate_python(read_json(path))
        except ValidationError as error:
            problem = f"{path} is of another version or damaged; name another folder"
            raise StoreError(problem) from error
        if state.job != job:
            raise SpecError("--state", [f"{folder} is of {state.job!r}; name another folder"])
    before = state.controllers
    if dropped := sorted(before.keys() - controllers.keys()):
        say(f"{folder} asked {', '.join(dropped)} before, and forgets what they remembered")
    state.controllers = {}
    for name, options in controllers.items():
        old = before.get(name)
        if old is None or old.options != to_jsonable_python(dict(options)):
            old = Shadowed(mark=state.totals)  # what was done before is not since it looked last
        state.controllers[name] = replace(old, options=dict(options))  # of the file they are plain
    return state


def asked_controllers(
    names: Iterable[str], options: Mapping[str, Any], asked_by: str = "--controllers"
) -> dict[str, dict[str, Any]]:
    """Controllers with their options; ``options`` are by ``NAME.OPTION``.

    Raises SpecError with everything that is wrong with them, about the option ``asked_by``.
    """
    options_of: dict[str, dict[str, Any]] = {name: {} for name in names}
    problems = [] if options_of else ["name at least one, for example tide,ds2,hpa"]
    for key, value in options.items():
        name, dot, option = key.rpartition(".")
        if not dot or name not in options_of:
            problems.append(f"--set {key}: write CONTROLLER.OPTION=VALUE, of one that is named")
            continue
        options_of[name][option] = value
    for name, own in options_of.items():
        if why_not := registration_problems("controller", name):
            problems += why_not
            continue
        if CONTROLLERS[name].needs_peak:
            problems.append(f"{name} has to know the peak, and nobody does")
        options_of[name], wrong = checked_options(name, CONTROLLERS[name].build, own)
        problems += wrong
    if problems:
        raise SpecError(asked_by, problems)
    return options_of


class Shadow:
    """Decides at every turn that a controller is due. There may be ``most_slots`` at most, or
    twice as many as there are at first if it is 0."""

    def __init__(
        self, folder: Path, state: ShadowState, terms: Terms, *, every_s: float, most_slots: int
    ) -> None:
        self.folder, self.state = folder, state
        self._terms, self._every_s, self._most_slots = terms, every_s, most_slots
        self._rows = AppendedRows(folder / DECISIONS, COLUMNS)
        self._built: tuple[tuple[str, ...], Setting, dict[str, Controller]] | None = None
        self._left_out = False
        """Whether the last reading was, as not all of it was counted."""

    def turn(self, now: JobReading, rates: JobRates | None) -> dict[str, list[Advised]]:
        """What controllers that are due advise; nothing while the job does not run, no reading is
        new, or it has gaps. The state is written then."""
        state = self.state
        if not now.running:
            return {}
        left_out, self._left_out = self._left_out, not now.counted
        if not now.counted:
            return {}  # the next one that is counted tells what was done until then
        if rates is None or left_out:  # or as after a kill
            rates = rates_between(state.last, now) if state.last else None
        if rates is not None or state.last is None or not comparable(state.last, now):
            state.last = replace(now, task_managers=(), missing=())
        if rates is None:
            return {}
        state.began_s = state.began_s or now.at_s
        state.totals = added(state.totals, now, rates)
        if now.ran_s < READS_IN_S or any(line.startswith("TaskManagers:") for line in now.missing):
            return {}
        self._most_slots = self._most_slots or slots_of(now)
        setting, controllers = self._controllers(now)
        advised = {
            name: rows
            for name, controller in controllers.items()
            if (rows := self._ask(name, controller, setting, now, rates))
        }
        self._rows.append(astuple(row) for rows in advised.values() for row in rows)
        state.save(self.folder)
        return advised

    def close(self) -> None:
        self._rows.close()

    def _controllers(self, now: JobReading) -> tuple[Setting, dict[str, Controller]]:
        """Built anew when the job has another graph, others of its operators may be scaled, or its
        edges are measured again."""
        state = self.state
        graph = state.graph
        if graph is None or graph.edges != now.edges or set(graph.work_ms) != set(now.instances):
            if graph is not None:  # another job by the same name: what was learned is of no use
                state.totals = Totals()
                state.controllers = {
                    name: Shadowed(options=old.options) for name, old in state.controllers.items()
                }
            state.graph = None
        if state.graph is None or now.at_s - state.measured_s > MEASURES_EVERY_S:
            state.graph, state.measured_s, self._built = graph_of(now), now.at_s, None
        if self._built is None or self._built[0] != now.scaled:
            beside = controllers_beside(
                now, state.graph, self._terms, state.controllers,
                every_s=self._every_s, most_slots=self._most_slots,
            )  # fmt: skip
            self._built = (now.scaled, *beside)
        return self._built[1:]

    def _ask(
        self,
        name: str,
        controller: Controller,
        setting: Setting,
        now: JobReading,
        rates: JobRates,
    ) -> list[Advised]:
        state, shadowed = self.state, self.state.controllers[name]
        time_s = now_s(now, state.began_s, self._every_s)
        looked_s = shadowed.looked_s
        if looked_s >= 0 and time_s - looked_s < controller.interval_s - self._every_s / 2:
            return []
        counts = {operator: now.instances[operator] for operator in now.scaled}
        shadowed.fleet.follow(counts, setting, time_s)
        seen = observation_of(
            now, rates, state.totals, shadowed.mark, shadowed.fleet, setting,
            began_s=state.began_s, since_s=time_s - looked_s if looked_s >= 0 else 0.0,
        )  # fmt: skip
        advice = self._advice(name, controller, seen, setting)
        shadowed.mark, shadowed.looked_s = state.totals, time_s
        shadowed.advised = _advised(advice, seen, now, rates, controller)
        shadowed.valid_until_s = time.time() + controller.interval_s
        if advice.decided is not None:
            cluster = planned(seen, setting)
            for action in advice.decided.actions:
                cluster.apply(action)
            shadowed.fleet.adopt(cluster)
        return shadowed.advised

    def _advice(
        self, name: str, controller: Controller, seen: Observation, setting: Setting
    ) -> Advice:
        """What it advises; its memory is read before and stored afterwards. Raises StoreError."""
        shadowed = self.state.controllers[name]
        before = controller.initial_memory()
        adapter = memory_adapter(before.__class__)
        try:
            memory = before if shadowed.memory is None else adapter.validate_python(shadowed.memory)
        except ValidationError as error:
            problem = f"{self.folder / STATE} has the memory of another version of {name}"
            raise StoreError(f"{problem}; name another folder") from error
        advice = ask(name, controller, memory, seen, setting)
        shadowed.memory = adapter.dump_python(advice.memory, mode="json")
        return advice


def slots_of(now: JobReading) -> int:
    """How many slots there may be where nobody says it."""
    return 2 * max(sum(manager.slots for manager in now.task_managers), now.slots)


def controllers_beside(
    now: JobReading,
    graph: ServiceGraph,
    terms: Terms,
    asked: Mapping[str, Shadowed],
    *,
    every_s: float,
    most_slots: int,
) -> tuple[Setting, dict[str, Controller]]:
    """The controllers that are ``asked``, in the setting of the job.

    Raises SpecError with what speaks against any of them there.
    """
    each = max((manager.slots for manager in now.task_managers), default=1)
    most_hosts = max(len(now.task_managers), -(-most_slots // each))
    setting = setting_of(now, graph, terms, every_s=every_s, max_hosts=most_hosts)
    controllers = all_checked(
        "the controllers",
        *(partial(built, name, own.options, setting, most_slots) for name, own in asked.items()),
    )
    return setting, dict(zip(asked, controllers, strict=True))


def built(name: str, options: Mapping[str, Any], setting: Setting, most_slots: int) -> Controller:
    """The controller with its options; one that may cap the instances of an operator does so.

    Raises SpecError with what speaks against it in this setting.
    """
    factory = CONTROLLERS[name].build
    values = dict(options)
    if CAPPED in option_types(factory):
        values.setdefault(CAPPED, most_slots)
    return build_checked(name, factory, setting, values)


def _advised(
    advice: Advice, seen: Observation, now: JobReading, rates: JobRates, controller: Controller
) -> list[Advised]:
    """A row per operator that may be scaled.

    Hosts are as many as the controller wants, and as the slots of what it wants take: on paper an
    instance takes only its share of a slot.
    """
    most = {op.operator: op.max_parallelism for op in now.operators}
    serving = {operator: len(seen.serving(operator)) for operator in now.scaled}
    wanted = {
        operator: min(max(1, count + advice.would.instances[operator]), most[operator])
        for operator, count in serving.items()
    }
    slots, setting = now.slots_with(now.instances | wanted), controller.setting
    hosts = len(seen.hosts) + advice.would.leases - advice.would.releases
    hosts = max(hosts, min(setting.max_hosts, ceil(slots / setting.flavor.vcpus)))
    why = reasons_of(advice)
    rows = []
    for operator in now.scaled:
        sample = seen.operators.get(operator)
        reason, because = why.get(operator, why.get("", ("", "")))
        rows.append(
            Advised(
                time_s=round(now.at_s, 3),
                controller=advice.advisor,
                operator=operator,
                instances=serving[operator],
                wanted=wanted[operator],
                reason=reason,
                because=because,
                holds_until_s=round(now.at_s + controller.interval_s, 3),
                in_per_s=rates.operators[operator].in_per_s,
                busy_share=sample.busy_share if sample else None,
                waiting_records=sample.waiting_items if sample else None,
                takes_ms=sample.duration_ms if sample else None,
                hosts_wanted=hosts,
                failed=advice.decided is None,
            )
        )
    return rows
