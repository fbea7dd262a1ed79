"""A model of every operator of a recorded job, and the topology and calibration that it makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from include.advise.edges import edges_of, in_whole_records, plain_name
from include.advise.times import FittedValue
from include.model.errors import SpecError, all_checked, unknown_name
from include.workloads.recordings.folder import EDGES, is_recorded
from include.workloads.recordings.operators import OperatorRecording, read_operators
from include.workloads.recordings.recording import FloatArray

LEAST_ROWS = 60
BLOCKS = 24
DRAWS = 400
FULL = 0.95
"""Readings of operators that are busier bend the line: they may be behind."""
IDLE = 0.1
"""Sources that are busier, at half of the readings, have work to do."""
LITTLE = 0.05
"""Operators that never are busier keep nobody waiting."""
FEWEST_UP = 1.2
SETTLED = 99.9
"""Percentile of the load of an instance up to which it counts as recorded."""
NEEDED = {"in": "records_in_per_s", "busy": "busy_share", "instances": "instances"}
"""What every operator has to have, by the columns to record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorModel:
    """Busy time per record (ms), busy share of an instance without records, records per second of
    an instance that is always busy, and records out per record in (None where not recorded).
    ``known_to_per_s`` is the load of an instance up to which there were readings."""

    name: str
    demand_ms: FittedValue
    overhead: FittedValue
    capacity_per_s: FittedValue
    selectivity: FittedValue | None
    known_to_per_s: float
    instances: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobGraph:
    """Operators with the edges between them, each with its records out per record in and the
    interval of that.

    As a part of its job ``per_record`` of its load come for each record of the job. That takes as
    many slots as its operators have instances and ``others`` more, or where they share slots as
    many as the operator with the most instances.
    """

    name: str
    operators: tuple[OperatorModel, ...]
    edges: tuple[tuple[str, str, FittedValue], ...]
    roots: Mapping[str, float]
    """Share of the load that each operator without a predecessor takes."""
    times_s: FloatArray
    load_per_s: FloatArray
    notes: tuple[str, ...] = ()
    """Sentences: of which sources readings are absent, and what stands there."""
    per_record: float = 1.0
    shares_slots: bool = False
    others: int = 0

    @property
    def ends(self) -> frozenset[str]:
        """Operators whose records go to no other."""
        return frozenset(self.recorded) - {of for of, _, _ in self.edges}

    @property
    def recorded(self) -> dict[str, int]:
        """Instances of each operator, most of the time."""
        return {one.name: one.instances for one in self.operators}

    def require_slots(self, most: int) -> None:
        """Raise SpecError where so many are fewer than one instance of each operator takes."""
        fewest = 1 if self.shares_slots else self.others + len(self.operators)
        if most < fewest:
            problem = f"the job takes {fewest} slots at least; allow as many"
            raise SpecError("max_instances", [problem])

    def slots(self, instances: Mapping[str, FloatArray]) -> FloatArray:
        """Slots that so many instances of each operator take, by step."""
        counts = np.array([*instances.values()])
        taken: FloatArray = counts.max(axis=0) if self.shares_slots else counts.sum(axis=0)
        return taken + self.others


def operators_of_job(graph: JobGraph, rate_per_s: FloatArray, slots: FloatArray) -> JobGraph:
    """The graph beside readings of the whole job: its load, and the slots that it takes.

    Raises SpecError if these are fewer than the instances of one operator: no slots.
    """
    counts = graph.recorded.values()
    taken = round(float(np.nanmedian(slots)))
    if taken < max(counts):
        problem = f"an operator has {max(counts)} instances, and the whole job {taken}"
        raise SpecError(graph.name, [f"{problem}; map the column that counts its slots"])
    shares = taken - max(counts) < abs(sum(counts) - taken)
    return replace(
        graph,
        per_record=float(np.nanmean(graph.load_per_s)) / max(1e-9, float(np.nanmean(rate_per_s))),
        shares_slots=shares,
        others=0 if shares else max(0, taken - sum(counts)),
    )


Edges = tuple[tuple[str, str], ...]


def read_graph(
    source: str, edges: str, mapping: Mapping[str, str], *, sort: bool = False
) -> tuple[OperatorRecording, Edges]:
    """The operators in a recording, and how records flow between them, as ``edges`` say or the
    folder of `tidebench record`. Raises SpecError."""
    if not edges and is_recorded(source):
        edges = str(Path(source) / EDGES)
    pairs = edges_of(edges)
    return read_operators(source, mapping, sort=sort), pairs


def fit_operators(recording: OperatorRecording, edges: Sequence[tuple[str, str]]) -> JobGraph:
    """The model of every operator. Raises SpecError with everything that is missing at once."""
    named = {plain_name(one): dict(of) for one, of in recording.readings.items()}
    problems = []
    if len(named) < len(recording.readings):
        problems.append("two operators have the same letters and digits; name them apart")
    listed = ", ".join(sorted(named))
    if not edges and len(named) > 1:
        problems.append(f"how records flow is not known; write --edges 'A>B>C' with {listed}")
    problems += _wrong_edges(edges, named)
    edges, notes = _without_idle_sources(named, edges)
    before = _predecessors(edges)
    for name, has in named.items():
        if name not in before and "out" in has and not np.any(has.get("in", 0.0) > 0):
            has["in"] = has["out"]  # a source that counts nothing: it takes in what it gives on
        lacks = [(one, column) for one, column in NEEDED.items() if one not in has]
        problems += [f"{name} has no {one}; record {column}[{name}]" for one, column in lacks]
    if problems:
        raise SpecError(recording.name, problems)
    fitted = all_checked(
        recording.name,
        *(partial(_fit, name, has) for name, has in named.items()),
        *(partial(_factor, recording.name, edge, before, named) for edge in edges),
    )
    roots = {name: _whole(name, named[name]["in"], notes) for name in named if name not in before}
    load: FloatArray = np.sum(list(roots.values()), axis=0)
    total = max(float(load.sum()), 1e-9)
    return JobGraph(
        name=recording.name,
        operators=tuple(fitted[: len(named)]),
        edges=tuple(fitted[len(named) :]),
        roots={name: float(values.sum()) / total for name, values in roots.items()},
        times_s=recording.times_s,
        load_per_s=load,
        notes=tuple(notes),
    )


def _predecessors(edges: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """By operator those whose records it takes in; a source is not among them."""
    before: dict[str, list[str]] = {}
    for origin, target in edges:
        before.setdefault(target, []).append(origin)
    return before


def _without_idle_sources(
    named: dict[str, dict[str, FloatArray]], edges: Sequence[tuple[str, str]]
) -> tuple[Sequence[tuple[str, str]], list[str]]:
    """Take out sources that do no work, and the edges from them: what they give on is the load of
    the operators that they alone feed."""
    before = _predecessors(edges)
    idle = {
        name
        for name, of in named.items()
        if name not in before
        and "busy" in of
        and (np.isnan(of["busy"]).all() or np.nanmedian(of["busy"]) < IDLE)
    }
    kept = {of for origins in before.values() if not idle.issuperset(origins) for of in origins}
    out = (idle - kept).intersection(of for of, _ in edges)
    for one in out:
        del named[one]
    notes = [f"{one}: a source that is hardly busy; it is the load of what it feeds" for one in out]
    return [pair for pair in edges if pair[0] not in out], sorted(notes)


def _wrong_edges(edges: Sequence[tuple[str, str]], named: Mapping[str, object]) -> list[str]:
    """Names that were not recorded, operators that no edge has, and edges in a circle."""
    ends = {one for pair in edges for one in pair}
    as_listed = "Write names as they are listed here, with small letters, digits and _."
    problems = [
        f"--edges: {unknown_name('operator', one, named)} {as_listed}"
        for one in sorted(ends - set(named))
    ]
    if edges:
        problem = "is in none of them; write where its records come from, or take its columns out"
        problems += [f"--edges: {one} {problem}" for one in sorted(set(named) - ends)]
    try:
        TopologicalSorter(_predecessors(edges)).prepare()
    except CycleError as error:
        circle = ">".join(error.args[1])
        problems.append(f"--edges: {circle} is a circle; leave out the edge that goes back")
    return problems


def _whole(name: str, values: FloatArray, notes: list[str]) -> FloatArray:
    """The load everywhere, bridged by a line where it was not read."""
    measured = np.flatnonzero(~np.isnan(values))
    if measured.size < values.size:
        absent = f"{values.size - measured.size} of {values.size} readings of records in are absent"
        notes.append(f"{name}: {absent}, and a line between their neighbours is the load there")
    whole: FloatArray = np.interp(np.arange(values.size), measured, values[measured])
    return whole


def _factor(
    source: str,
    edge: tuple[str, str],
    before: Mapping[str, Sequence[str]],
    of: Mapping[str, Mapping[str, FloatArray]],
) -> tuple[str, str, FittedValue]:
    """Records that go over an edge per record that its origin takes in, with the interval of
    resampled parts of the recording.

    Into an operator with one predecessor, what it took in counts; else what the origin gave out,
    which each of its targets is taken to get in full.
    """
    origin, target = edge
    alone = len(before[target]) == 1
    if not alone and "out" not in of[origin]:
        problem = f"{target} has several predecessors; record records_out_per_s[{origin}]"
        raise SpecError(source, [problem])
    goes = of[target]["in"] if alone else of[origin]["out"]
    both = ~(np.isnan(goes) | np.isnan(of[origin]["in"]))
    factor = _ratio(goes[both], of[origin]["in"][both])
    if not factor.value > 0:
        problem = "no reading has records that go over it; record for longer, or leave it out"
        raise SpecError(source, [f"{origin}>{target}: {problem}"])
    return origin, target, factor


def _ratio(goes: FloatArray, comes: FloatArray) -> FittedValue:
    """All that goes over all that comes."""

    def of(rows: Any) -> float:
        return float(goes[rows].sum() / max(float(comes[rows].sum()), 1e-9))

    low, high = np.percentile([of(rows) for rows in _drawn(comes.size)], [2.5, 97.5])
    return FittedValue(value=of(slice(None)), low=float(low), high=float(high))


def _drawn(size: int) -> list[NDArray[np.int64]]:
    """Rows of the recording, resampled in parts."""
    draw = np.random.default_rng(0)
    parts = np.array_split(np.arange(size), BLOCKS)
    return [
        np.concatenate([parts[i] for i in draw.integers(0, BLOCKS, BLOCKS)]) for _ in range(DRAWS)
    ]


def _fit(name: str, has: Mapping[str, FloatArray]) -> OperatorModel:
    counts, busy = has["instances"], has["busy"]
    usable = ~(np.isnan(has["in"]) | np.isnan(busy) | np.isnan(counts)) & (counts > 0)
    usable &= busy < FULL
    if usable.sum() < LEAST_ROWS:
        has_few = (
            f"has {usable.sum()} readings with records in, busy below {FULL:.0%} and instances"
        )
        raise SpecError(name, [f"{has_few}; {LEAST_ROWS} are needed, record for longer"])
    each, share = has["in"][usable] / counts[usable], busy[usable]
    line = _through_zero if share.max() < LITTLE else _line
    if line is _line and each.max() <= FEWEST_UP * each.min():
        raise SpecError(
            name, ["its load hardly changes; record its ups and downs to tell demand from overhead"]
        )
    out, taken = has.get("out", np.full(counts.size, np.nan))[usable], has["in"][usable]
    is_out_known = (~np.isnan(out)).sum() >= LEAST_ROWS
    drawn = [np.arange(each.size), *_drawn(each.size)]
    rows = np.array([_values(line, each[i], share[i], taken[i], out[i]) for i in drawn])
    if np.percentile(rows[:, 0], 2.5) <= 0:
        raise SpecError(name, ["its busy time does not rise with its records; map another column"])
    low, high = np.nanpercentile(rows[1:], [2.5, 97.5], axis=0)
    demand, overhead, capacity, selectivity = (
        FittedValue(value=float(v), low=float(a), high=float(b))
        for v, a, b in zip(rows[0], low, high, strict=True)
    )
    return OperatorModel(
        name=name,
        demand_ms=demand,
        overhead=overhead,
        capacity_per_s=capacity,
        selectivity=selectivity if is_out_known else None,
        known_to_per_s=float(np.percentile(each, SETTLED)),
        instances=max(1, round(float(np.median(counts[usable])))),
        rows=int(usable.sum()),
    )


Line = Callable[[FloatArray, FloatArray], tuple[float, float]]


def _line(each: FloatArray, share: FloatArray) -> tuple[float, float]:
    slope, offset = np.polyfit(each, share, 1)
    return float(slope), float(offset)


def _through_zero(each: FloatArray, share: FloatArray) -> tuple[float, float]:
    """Of an operator that is hardly busy overhead is not worth a guess."""
    return float(share.sum() / max(float(each.sum()), 1e-9)), 0.0


def _values(
    line: Line, each: FloatArray, share: FloatArray, taken: FloatArray, out: FloatArray
) -> tuple[float, float, float, float]:
    slope, offset = line(each, share)
    both = ~np.isnan(out)
    ratio = float(out[both].sum() / max(float(taken[both].sum()), 1e-9))
    return 1000 * float(slope), float(offset), float((1 - offset) / max(slope, 1e-12)), ratio


def graph_topology(graph: JobGraph) -> dict[str, Any]:
    """The graph as the file of a topology has it, without its name."""
    flows = []
    for origin, target, factor in graph.edges:
        out = in_whole_records(factor.value)
        flows.append({"from": origin, "to": target, "out": f"{out.numerator}/{out.denominator}"})
    operators = {
        one.name: {
            "label": one.name,
            "slo_ms": 1000,
            "cpu_shares": 1024,
            "memory_mb": 1000,
            "instances": one.instances,
            "service_ms": round(one.demand_ms.value, 6),
        }
        for one in graph.operators
    }
    sources = {name: _source_of(name, operators) for name in graph.roots}
    return {
        "sources": {
            sources[name]: {"label": f"Load of {name}", "items_per_level": round(share, 9)}
            for name, share in graph.roots.items()
        },
        "operators": operators,
        "edges": [*({"from": sources[name], "to": name} for name in graph.roots), *flows],
    }


def graph_calibration(graph: JobGraph) -> dict[str, Any]:
    """Busy time per record, and the overhead: the mean weighted by instances, because the fluid
    testbed has one for all operators."""
    count = sum(one.instances for one in graph.operators)
    overhead = sum(max(0.0, one.overhead.value) * one.instances for one in graph.operators) / count
    return {
        "service_ms": {one.name: round(one.demand_ms.value, 6) for one in graph.operators},
        "overhead_cores": round(overhead, 4),
    }


def _source_of(root: str, operators: Mapping[str, object]) -> str:
    """A name for the load of an operator that no operator has."""
    name = f"load_{root}"
    while name in operators:
        name = f"load_of_{name}"
    return name
