"""Builds the kernel's arrays from model types: the network of a run before it starts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from include.model.topology import Topology
from include.testbeds.simulated import kernel, rings
from include.testbeds.simulated.kernel import BLOCK, NEVER
from include.testbeds.simulated.network import I64, TURN, QueueingNetwork
from include.testbeds.simulated.publications import Publications, RandomPublications
from include.testbeds.virtual.calibration import VirtualCalibration
from include.testbeds.virtual.draws import Draws
from include.testbeds.virtual.jit import start_numba
from include.workloads.pattern import Levels

FIRST_ITEMS, FIRST_SLOTS, FIRST_RECORDS, FIRST_ORPHANS, FIRST_STALLS = 256, 8, 4096, 8, 4
FIRST_PLACES = 16


def build_network(
    topology: Topology,
    calibration: VirtualCalibration,
    levels_of: Mapping[str, Levels],
    duration_s: float,
    seed: int,
) -> QueueingNetwork:
    """An empty network; its sources publish until ``duration_s``."""
    start_numba()
    names, draws = topology.flow_order, Draws(seed)
    origins = [*names, *(source.name for source in topology.sources)]
    place = {name: i for i, name in enumerate(origins)}
    edges = sorted(topology.edges, key=lambda e: (place[e.target], place[e.origin]))
    targets = np.array([place[e.target] for e in edges])
    origin = np.array([place[e.origin] for e in edges])
    publications = [
        _publications(
            levels_of[source.name],
            source.items_per_level / topology.emission_period_s,
            duration_s,
            calibration.arrival_cv,
            draws.generator("arrivals", source.name),
        )
        for source in topology.sources
    ]
    in_first = np.searchsorted(targets, np.arange(len(names) + 1)).astype(np.int64)
    places = calibration.prefetch * int(np.diff(in_first).max())  # so many items of every edge
    places = FIRST_PLACES if calibration.buffer_items else places
    state = kernel.NetworkState(
        in_first=in_first,
        out_first=np.searchsorted(np.sort(origin), np.arange(len(origins) + 1)).astype(np.int64),
        out_edge=np.argsort(origin, kind="stable").astype(np.int64),
        chained=_chained(topology, names),
        prefetch=np.array([calibration.prefetch], dtype=np.int64),
        held=_zeros(len(names), FIRST_SLOTS, places, kernel.HELD_COLUMNS),
        holding=_zeros(len(names), FIRST_SLOTS, 2),
        ratio=np.array([(e.items_out, e.items_in) for e in edges], dtype=np.int64),
        items=_zeros(len(edges) * FIRST_ITEMS, 3),
        edges=rings.stretches(np.full(len(edges), FIRST_ITEMS)),
        servers=_zeros(len(names), FIRST_SLOTS, kernel.SERVER_COLUMNS),
        free_us=_zeros(len(names), FIRST_SLOTS),
        nodes=_zeros(len(origins), kernel.NODE_COLUMNS),
        orphans=_zeros(len(names), FIRST_ORPHANS),
        service_us=_zeros(len(names), BLOCK),
        latency_us=_zeros(len(origins), BLOCK),
        stalls_us=np.full((len(names), FIRST_STALLS, 2), NEVER, dtype=np.int64),
        published_us=_zeros(len(topology.sources), BLOCK),
        records=_zeros(FIRST_RECORDS, kernel.RECORD_COLUMNS),
        recorded=_zeros(1),
        reached=_zeros(1),
        room=_zeros(len(names)),
        turn=np.full((len(names), FIRST_SLOTS), TURN, dtype=np.int64),
        restored=_zeros(len(names), FIRST_SLOTS),
        clock=_zeros(1),
    )
    end_us = round(duration_s * 1e6)
    return QueueingNetwork(topology, calibration, draws, names, publications, end_us, state)


def _publications(
    levels: Levels, per_level_s: float, duration_s: float, cv: float, generator: np.random.Generator
) -> Publications | RandomPublications:
    if not cv:
        return Publications.from_levels(levels, per_level_s, duration_s)
    return RandomPublications.from_levels(levels, per_level_s, duration_s, cv, generator)


def _chained(topology: Topology, names: tuple[str, ...]) -> I64:
    """Row of the operator that runs in each operator, or -1."""
    chained = {op.runs_in: op.name for op in topology.operators if op.runs_in}
    place = {name: i for i, name in enumerate(names)}
    return np.array(
        [place[chained[name]] if name in chained else -1 for name in names], dtype=np.int64
    )


def _zeros(*shape: int) -> I64:
    return np.zeros(shape, dtype=np.int64)
