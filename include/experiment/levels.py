"""The arrivals of a run, unfolded: the level of the run and that of every source."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial, reduce
from typing import Any

from include.experiment.options import checked_options, missing_options, option_types
from include.experiment.spec import RunSpec
from include.model.errors import unknown_name
from include.model.topology import Topology
from include.workloads import PATTERNS
from include.workloads.pattern import Levels, product
from include.workloads.trace import Trace


def levels_of_sources(spec: RunSpec, topology: Topology) -> dict[str, Levels]:
    """The level of every source: that of the run, times its own, from when its tenant joins."""
    levels = _run_levels(spec, topology)
    joins_s = {tenant.name: tenant.joins_s for tenant in topology.tenants}
    items_of_tenant: defaultdict[str, float] = defaultdict(float)
    for source in topology.sources:
        items_of_tenant[source.tenant] += source.items_per_level / topology.emission_period_s
    unfolded_by_pattern: dict[str, Levels] = {}
    levels_of = {}
    for source in topology.sources:
        joined_s = joins_s.get(source.tenant, 0.0)
        # Many tenants share one pattern: unfold it once.
        items_s = items_of_tenant[source.tenant]
        key = json.dumps([dict(source.arrivals), joined_s, items_s], sort_keys=True)
        if key not in unfolded_by_pattern:
            factors = [levels]
            if options := dict(source.arrivals):
                factors.append(_unfolded(options.pop("name"), options, spec, items_s))
            if joined_s:
                factors.append(Levels((joined_s,), (1.0,)))
            unfolded_by_pattern[key] = reduce(product, factors)
        levels_of[source.name] = unfolded_by_pattern[key]
    return levels_of


def pattern_problems(where: str, pattern: str, options: Mapping[str, Any]) -> Iterator[str]:
    """Everything wrong with a pattern and its options, each with what to do."""
    factory = PATTERNS.get(pattern)
    if factory is None:
        yield unknown_name("pattern", pattern, PATTERNS)
        return
    # What an entry of the registry fixes is not the user's to change.
    fixed = tuple(factory.keywords) if isinstance(factory, partial) else ()
    values, problems = checked_options(where, factory, options, fixed)
    yield from problems
    missing = missing_options(factory, options)
    yield from (f"{where} needs the option {option}" for option in missing)
    if not problems and not missing:
        yield from (f"{where}: {problem}" for problem in factory(**values).problems())


def seed_problems(spec: RunSpec) -> Iterator[str]:
    """Why the seed cannot be run, where a trace replays one day per seed."""
    for trace in _traces(spec):
        yield from (
            f"pattern {spec.pattern}: {problem}" for problem in trace.seed_problems(spec.seed)
        )


def trace_notes(spec: RunSpec) -> tuple[str, ...]:
    """How the file of a trace was read; empty for other patterns."""
    return tuple(note for trace in _traces(spec) for note in trace.notes())


def _traces(spec: RunSpec) -> Iterator[Trace]:
    """The pattern of a run where it is a trace whose options can be read."""
    if spec.pattern in PATTERNS:
        factory = PATTERNS[spec.pattern]
        values, problems = checked_options("", factory, spec.pattern_options)
        if not problems and not missing_options(factory, spec.pattern_options):
            pattern = factory(**values)
            yield from (pattern,) if isinstance(pattern, Trace) else ()


def source_problems(topology: Topology) -> Iterator[str]:
    """Everything wrong with the patterns that sources bring along, each problem once."""
    problems = set()
    for source in topology.sources:
        options = dict(source.arrivals)
        name = str(options.pop("name", ""))
        where = f"arrivals of {source.tenant or source.name}: pattern {name}"
        for problem in pattern_problems(where, name, options) if source.arrivals else ():
            if problem not in problems:
                problems.add(problem)
                yield problem


def _run_levels(spec: RunSpec, topology: Topology) -> Levels:
    """The level that all sources share."""
    per_source = (source.items_per_level for source in topology.sources)
    items_s = sum(per_source) / topology.emission_period_s
    return _unfolded(spec.pattern, spec.pattern_options, spec, items_s)


def _unfolded(pattern: str, options: Mapping[str, Any], spec: RunSpec, items_s: float) -> Levels:
    """The levels of a pattern whose sources publish ``items_s`` per second and level unit."""
    factory = PATTERNS[pattern]
    if "items_per_level_s" in option_types(factory):
        options = {"items_per_level_s": items_s, **options}
    values, _ = checked_options("", factory, options)
    return factory(**values).unfold(spec.duration_s, spec.seed)
