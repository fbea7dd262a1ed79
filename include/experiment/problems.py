"""Everything wrong with a spec point, at once and before anything is provisioned."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any

from pydantic import ValidationError

from include.controllers import CONTROLLERS
from include.experiment.levels import pattern_problems, source_problems
from include.experiment.options import checked_options, option_types
from include.experiment.prices import PRICE_BOOKS
from include.experiment.setting import setting_of
from include.experiment.spec import RunSpec
from include.model.errors import SpecError, unknown_name
from include.model.host import HostFlavor
from include.model.topology import Topology
from include.testbeds import TESTBEDS
from include.testbeds.base import Calibrated, Parameters
from include.testbeds.flavors import FLAVORS
from include.topologies.load import load_topology, validation_problems


def problems_of(spec: RunSpec) -> list[str]:
    """One sentence per problem, each with what to do; empty when the point can run."""
    problems = list(_name_problems(spec))
    problems += _time_problems(spec)
    topology = _collected(partial(load_topology, spec.topology), problems)
    calibration = None
    if topology is not None:
        calibration = _collected(partial(_calibration, spec, topology), problems)
    problems += pattern_problems(f"pattern {spec.pattern}", spec.pattern, spec.pattern_options)
    if topology is not None:
        problems += source_problems(topology)
    if topology is not None and spec.flavor in FLAVORS:
        factor = 1.0 if calibration is None else calibration.memory_factor
        flavor = FLAVORS[spec.flavor]
        topology = topology.with_memory_factor(factor)
        problems += _controller_problems(spec, topology, flavor)
        problems += _size_problems(topology, flavor)
    problems += _fault_problems(spec)
    return problems


def _collected(load: Callable[[], Any], problems: list[str]) -> Any:
    try:
        return load()
    except SpecError as error:
        problems += error.problems
        return None


def _calibration(spec: RunSpec, topology: Topology) -> Calibrated:
    parameters = _parameters(spec)
    name = spec.calibration or parameters.calibration_for(spec.topology)
    return parameters.load_calibration(name).complete(topology)


def _fault_problems(spec: RunSpec) -> Iterator[str]:
    try:
        _parameters(spec).Faults.model_validate(spec.faults)
    except ValidationError as error:
        yield from (f"faults.{problem}" for problem in validation_problems(error))


def _parameters(spec: RunSpec) -> Parameters:
    """Those of the spec's testbed; of the default where there is none of that name."""
    return TESTBEDS.get(spec.testbed, TESTBEDS["simulated"]).parameters()


def _name_problems(spec: RunSpec) -> Iterator[str]:
    registries: tuple[tuple[str, str, Collection[str]], ...] = (
        ("controller", spec.controller, CONTROLLERS),
        ("testbed", spec.testbed, TESTBEDS),
        ("flavor", spec.flavor, FLAVORS),
        *(("price book", name, PRICE_BOOKS) for name in spec.price_books),
    )
    for kind, name, known in registries:
        if name not in known:
            yield unknown_name(kind, name, known)


def _time_problems(spec: RunSpec) -> Iterator[str]:
    period_s = spec.monitor_every_s
    for name, minutes in (("btu_min", spec.btu_min), ("duration_min", spec.duration_min)):
        if minutes <= 0:
            yield f"{name} must be above 0, got {minutes:g}"
        elif abs(minutes * 60 / period_s - round(minutes * 60 / period_s)) > 1e-9:
            yield (
                f"{name} must be a multiple of {period_s / 60:g} (monitoring is every "
                f"{period_s:g} s), got {minutes:g}"
            )
    if spec.hosts > spec.max_hosts:
        yield f"hosts ({spec.hosts}) must not be above max_hosts ({spec.max_hosts})"
    if spec.duration_min > 60 * 24 * 14:
        yield f"duration_min is {spec.duration_min:g}; the longest run is two weeks (20160)"
    if spec.seed < 0:
        yield f"seed must not be negative, got {spec.seed}"


def _controller_problems(spec: RunSpec, topology: Topology, flavor: HostFlavor) -> Iterator[str]:
    if spec.controller not in CONTROLLERS or spec.btu_min <= 0:
        return
    factory = CONTROLLERS[spec.controller].build
    where = f"controller {spec.controller}"
    types: Mapping[str, Any] = option_types(factory, hidden=("setting",))
    values, problems = checked_options(where, types, spec.controller_options)
    yield from problems
    if not problems:
        setting = setting_of(spec, topology, flavor)
        yield from (f"{where}: {one}" for one in factory(setting=setting, **values).problems())


def _size_problems(topology: Topology, flavor: HostFlavor) -> Iterator[str]:
    room = flavor.capacity
    for op in topology.operators:
        if not room.fits(op):
            yield (
                f"operator {op.name} fits no host: an instance reserves {op.cpu_cores:.2f} cores "
                f"and {op.memory_mb:.0f} MB, flavor {flavor.name} offers {room.cpu_cores:g} cores "
                f"and {room.memory_mb:.0f} MB; choose a larger flavor or lower the need"
            )
