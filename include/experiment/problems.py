"""Everything wrong with a spec point, at once and before anything is provisioned."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import PurePath
from typing import Any

from pydantic import ValidationError

from include.controllers import CONTROLLERS
from include.controllers.base import Controller
from include.controllers.building import build_checked
from include.controllers.registry import ENTRY_POINTS, imported
from include.experiment.controller_setting import setting_of
from include.experiment.levels import pattern_problems, seed_problems, source_problems
from include.experiment.options import SETTING, checked_options, missing_options
from include.experiment.prices import price_book
from include.experiment.spec import Choice, RunSpec
from include.model.errors import Problem, SpecError, unknown_name
from include.model.host import PriceBook
from include.model.topology import Topology
from include.testbeds import TESTBEDS
from include.testbeds.base import Calibrated
from include.testbeds.calibrations import Parameters
from include.testbeds.flavors import FLAVORS
from include.workloads.topologies import load_topology, validation_problems

LEAST_READINGS = 2
"""How often the monitor must read in a run. What it reads holds until it reads again, so after
one reading, at the very end, there is nothing yet to be said of supply and demand."""
MOST_MINUTES = 60 * 24 * 14
MOST_BTU_MINUTES = 60 * 24 * 366
"""A leap year. Beyond, minutes and readings are no longer numbers that can be counted."""
LEAST_MONITOR_S = 0.001
MOST_READINGS = MOST_MINUTES * 60
"""And decisions: one a second for two weeks, which take some twenty minutes."""
MOST_WINDOWS = MOST_MINUTES
"""One a minute for two weeks. Each has files of its own."""
MOST_INSTANCES = 100_000
"""Before the first item. They take a minute to place."""
MOST_HOSTS = 10_000
"""Before the first item."""


def problems_of(spec: RunSpec) -> list[str]:
    """One sentence per problem, each with what to do; empty when the point can run."""
    return [problem.text for problem in problems_by_field(spec)]


def problems_by_field(spec: RunSpec) -> Iterator[Problem]:
    """Every problem of a point, in the order of the fields of a spec."""
    for field, check in _CHECKS:
        yield from (Problem(field, text) for text in check(spec))


def notes_of(spec: RunSpec) -> Iterator[str]:
    """What the testbed of a run ignores of its topology and its calibration, in sentences."""
    topology = load_topology(spec.topology)
    yield from _keyed_notes(spec, topology)
    calibration = read_calibration(spec, topology)
    model: Any = type(calibration)
    ignored = [
        name
        for name in getattr(calibration, "IGNORED", ())
        if getattr(calibration, name)
        != model.model_fields[name].get_default(call_default_factory=True)
    ]
    if ignored:
        yield f"{spec.testbed} has no {', '.join(ignored)}: what the calibration says is ignored"
    if spec.calibration.endswith((".yaml", ".yml")):
        of_tenants = {name.partition(".")[2] for name in topology.operator}
        loaded: Any = _parameters(spec).load_calibration(spec.calibration)
        for name in getattr(loaded, "service_ms", ()):
            if name not in topology.operator and name not in of_tenants:
                problem = unknown_name("operator", name, topology.operator)
                yield f"{PurePath(spec.calibration).name}, service_ms: {problem}"


def _keyed_notes(spec: RunSpec, topology: Topology) -> tuple[str, ...]:
    """The keyed operators whose keys the testbed ignores."""
    operators = [op.name for op in topology.operators if op.keyed]
    testbed = TESTBEDS[spec.testbed]
    if not operators or testbed.serves_by_key is True:
        return ()
    calibration = read_calibration(spec, topology)
    bound = getattr(calibration, testbed.serves_by_key) if testbed.serves_by_key else ()
    if not (ignored := ", ".join(name for name in operators if name not in bound)):
        return ()
    return (f"{spec.testbed} ignores keys, their skew and state: {ignored}",)


def least_duration_min(monitor_every_s: float) -> float:
    """The shortest run whose tables can pass their checks."""
    return LEAST_READINGS * monitor_every_s / 60


def _topology(spec: RunSpec) -> Iterator[str]:
    try:
        topology = load_topology(spec.topology)
    except SpecError as error:
        yield from error.problems
    else:
        yield from source_problems(topology)


def _read_topology(spec: RunSpec) -> Topology | None:
    try:
        return load_topology(spec.topology)
    except SpecError:
        return None  # the topology's own check says why


def _calibration(spec: RunSpec) -> Iterator[str]:
    topology = _read_topology(spec)
    try:
        if topology is not None:
            read_calibration(spec, topology)
        elif spec.calibration:  # whether there is such a one needs no topology
            _parameters(spec).load_calibration(spec.calibration)
    except SpecError as error:
        own = f"{error.source}: " if error.source.endswith((".yaml", ".yml")) else ""
        yield from (own + problem for problem in error.problems)


def read_calibration(spec: RunSpec, topology: Topology) -> Calibrated:
    """The calibration of a run, complete for its topology. Raises SpecError."""
    parameters = _parameters(spec)
    name = spec.calibration or parameters.calibration_for(spec.topology)
    calibration: Calibrated = parameters.load_calibration(name)
    return calibration.complete(topology)


def _weighed_topology(spec: RunSpec) -> Topology | None:
    """The topology with the memory that its instances take on the testbed, if both are known."""
    topology = _read_topology(spec)
    if topology is None or spec.flavor not in FLAVORS:
        return None
    try:
        return topology.with_memory_factor(read_calibration(spec, topology).memory_factor)
    except SpecError:
        return topology


def _faults(spec: RunSpec) -> Iterator[str]:
    try:
        _parameters(spec).faults.model_validate(spec.faults)
    except ValidationError as error:
        yield from (f"faults.{problem}" for problem in validation_problems(error))


def _parameters(spec: RunSpec) -> Parameters[Any]:
    """Parameters of the spec's testbed, or of ``simulated`` where that is unknown."""
    return TESTBEDS.get(spec.testbed, TESTBEDS["simulated"]).parameters()


def _testbed(spec: RunSpec) -> Iterator[str]:
    if spec.testbed not in TESTBEDS:
        yield unknown_name("testbed", spec.testbed, TESTBEDS)


def _flavor(spec: RunSpec) -> Iterator[str]:
    if spec.flavor not in FLAVORS:
        yield unknown_name("flavor", spec.flavor, FLAVORS)


def _price_books(spec: RunSpec) -> Iterator[str]:
    books, problems = _read_books(spec)
    yield from problems
    names = [book.name for book in books]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"two price books are called {name}; each needs a name of its own"


def _read_books(spec: RunSpec) -> tuple[list[PriceBook], list[str]]:
    """The price books that can be read, and what is wrong with the others."""
    books, problems = list[PriceBook](), list[str]()
    for name in spec.price_books:
        try:
            books.append(price_book(name))
        except SpecError as error:
            problems += error.problems
    return books, problems


def _pattern(spec: RunSpec) -> Iterator[str]:
    yield from pattern_problems(f"pattern {spec.pattern}", spec.pattern, spec.pattern_options)


def _btu(spec: RunSpec) -> Iterator[str]:
    minutes = spec.btu_min
    yield from _minutes("btu_min", minutes, spec.monitor_every_s, least_readings=1)
    if not minutes <= MOST_BTU_MINUTES:  # nor is NaN
        yield f"btu_min must be at most {MOST_BTU_MINUTES}, a year, got {minutes:g}"
    yield from _too_often("btu_min", spec.window_s, spec, MOST_WINDOWS, "windows")


def _duration(spec: RunSpec) -> Iterator[str]:
    minutes = spec.duration_min
    yield from _minutes("duration_min", minutes, spec.monitor_every_s, LEAST_READINGS)
    if not minutes <= MOST_MINUTES:  # nor is NaN
        yield f"duration_min must be at most {MOST_MINUTES}, two weeks, got {minutes:g}"


def _minutes(name: str, minutes: float, period_s: float, least_readings: int) -> Iterator[str]:
    if not _can_be_read_every(period_s):  # a problem of its own
        if minutes <= 0:
            yield f"{name} must be above 0, got {minutes:g}"
        return
    readings = minutes * 60 / period_s
    if not math.isfinite(readings) and not minutes < 0:
        return  # so are more minutes than there may be
    if readings < least_readings - 1e-9 or abs(readings - round(readings)) > 1e-9:
        yield (
            f"{name} must be a multiple of {period_s / 60:g} and at least "
            f"{least_readings * period_s / 60:g} (the monitor reads every {period_s:g} s), "
            f"got {minutes:g}"
        )


def _monitor(spec: RunSpec) -> Iterator[str]:
    if spec.monitor_every_s <= 0:
        yield f"monitor_every_s must be above 0, got {spec.monitor_every_s:g}"
    elif not _can_be_read_every(spec.monitor_every_s):
        least = f"monitor_every_s must be a number of at least {LEAST_MONITOR_S:g}"
        yield f"{least}, got {spec.monitor_every_s:g}"
    else:
        every_s = spec.monitor_every_s
        yield from _too_often("monitor_every_s", every_s, spec, MOST_READINGS, "readings")


def _too_often(name: str, every_s: float, spec: RunSpec, most: int, what: str) -> Iterator[str]:
    least_s = spec.duration_s / most
    if 0 < every_s < least_s - 1e-9 and spec.duration_min <= MOST_MINUTES:
        many = f"{spec.duration_s / every_s:.3g} {what} in a run of {spec.duration_min:g} min"
        yield f"{name} makes {many}, and there may be {most}; take at least {least_s:g} s"


def _can_be_read_every(period_s: float) -> bool:
    return LEAST_MONITOR_S <= period_s < math.inf


def _hosts(spec: RunSpec) -> Iterator[str]:
    if spec.hosts < 0:
        yield f"hosts must not be negative, got {spec.hosts}"
    elif spec.hosts > spec.max_hosts > 0:
        yield f"hosts ({spec.hosts}) must not be above max_hosts ({spec.max_hosts})"
    elif spec.hosts > MOST_HOSTS:
        yield f"hosts must be at most {MOST_HOSTS}, which are leased at once, got {spec.hosts}"


def _max_hosts(spec: RunSpec) -> Iterator[str]:
    if spec.max_hosts < 1:
        yield f"max_hosts must be at least 1, got {spec.max_hosts}"


def _seed(spec: RunSpec) -> Iterator[str]:
    if spec.seed < 0:
        yield f"seed must not be negative, got {spec.seed}"


Check = Callable[[RunSpec], Iterator[str]]
OfOne = Callable[[RunSpec, str, Choice], Iterator[str]]


def _of_controller(check: OfOne) -> Check:
    return lambda spec: check(spec, "controller", spec.all_controllers[0])


def _of_advisors(check: OfOne) -> Check:
    return lambda spec: chain.from_iterable(
        check(spec, "advisor", advisor) for advisor in spec.advisors
    )


def registration_problems(kind: str, name: str) -> list[str]:
    """Why no controller of that name can be used. Where forms are filled in by others
    (TIDEBENCH_INPUTS), a path of a module is refused before it is imported."""
    path = CONTROLLERS.path_of(name)
    if path == name and os.environ.get("TIDEBENCH_INPUTS"):
        where = "where TIDEBENCH_INPUTS is set, an installed package must announce a class"
        return [f"{kind} {name}: {where} (entry point group {ENTRY_POINTS})"]
    if not path:
        return [] if name in CONTROLLERS else [unknown_name(kind, name, CONTROLLERS)]
    try:
        imported(path)
    except SpecError as error:
        return list(error.problems)
    return []


def _option_problems(_: RunSpec, kind: str, one: Choice) -> Iterator[str]:
    if problems := registration_problems(kind, one.name):
        yield from problems
        return
    build = CONTROLLERS[one.name].build
    yield from checked_options(f"{kind} {one.name}", build, one.options)[1]
    missing = missing_options(build, [*one.options, SETTING])
    yield from (f"{kind} {one.name} needs the option {option}" for option in missing)


def _setting_problems(spec: RunSpec, kind: str, one: Choice) -> Iterator[str]:
    """Problems that the controller itself reports of options of the right types."""
    topology = _weighed_topology(spec)
    if topology is None or registration_problems(kind, one.name):
        return
    if not (0 < spec.btu_min <= MOST_BTU_MINUTES and _can_be_read_every(spec.monitor_every_s)):
        return
    factory = CONTROLLERS[one.name].build
    values, problems = checked_options("", factory, one.options)
    if not problems and not missing_options(factory, [*one.options, SETTING]):
        setting = setting_of(spec, topology, FLAVORS[spec.flavor], _read_books(spec)[0])
        try:
            own = list(_too_many(spec, build_checked(one.name, factory, setting, values)))
        except SpecError as error:
            own = list(error.problems)
        yield from (f"{kind} {one.name}: {problem}" for problem in own)


def _too_many(spec: RunSpec, controller: Controller) -> Iterator[str]:
    """Decisions or first instances beyond what a run can have."""
    yield from _too_often("interval_s", controller.interval_s, spec, MOST_READINGS, "decisions")
    if (instances := sum(controller.initial_instances().values())) > MOST_INSTANCES:
        most = f"more than {MOST_INSTANCES}, which take a minute to place; start fewer"
        yield f"{instances} instances before the first item are {most}"


def _sizes(spec: RunSpec) -> Iterator[str]:
    topology = _weighed_topology(spec)
    if topology is None:
        return
    flavor = FLAVORS[spec.flavor]
    room = flavor.capacity
    for op in topology.operators:
        if not room.fits(op):
            yield (
                f"operator {op.name} fits no host: an instance reserves {op.cpu_cores:.2f} cores "
                f"and {op.memory_mb:.0f} MB, flavor {flavor.name} offers {room.cpu_cores:g} cores "
                f"and {room.memory_mb:.0f} MB; choose a larger flavor or lower the need"
            )


_CHECKS: tuple[tuple[str, Check], ...] = (
    ("topology", _topology),
    ("topology", _sizes),
    ("controllers", _of_controller(_option_problems)),
    ("controllers", _of_controller(_setting_problems)),
    ("patterns", _pattern),
    ("btus_min", _btu),
    ("seeds", _seed),
    ("seeds", seed_problems),
    ("duration_min", _duration),
    ("testbed", _testbed),
    ("flavor", _flavor),
    ("calibration", _calibration),
    ("price_books", _price_books),
    ("monitor_every_s", _monitor),
    ("hosts", _hosts),
    ("max_hosts", _max_hosts),
    ("faults", _faults),
    ("advisors", _of_advisors(_option_problems)),
    ("advisors", _of_advisors(_setting_problems)),
)
"""Fields of a spec in order, each with a check of it."""
