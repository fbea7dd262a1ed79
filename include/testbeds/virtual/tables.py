"""Measured columns from what a virtual monitor has kept; one tuple per reading."""

from __future__ import annotations

from typing import Any

import numpy as np

from include.testbeds.columns import Coded, coded

Taken = list[tuple[Any, ...]]
ARRIVAL = ("time_s", "source", "level", "published_items")
QUEUE = ("waiting_items", "arrived_items", "completed_items", "instances", "ready_instances")


def durations_table(taken: Taken, names: tuple[str, ...], homes: tuple[str, ...]) -> dict[str, Any]:
    """Sampled items as arrays of (operators, durations, instances, times, waits, ages).

    An instance is named after its own operator (``homes``), whichever one's items it works on.
    """
    columns = map(np.concatenate, zip(*taken, strict=True))
    operator, duration_ms, instance, done_s, wait_ms, age_ms = columns
    return {
        "time_s": done_s,
        "operator": Coded(operator, names),
        "instance": instance_names(operator, instance, homes),
        "duration_ms": duration_ms,
        "wait_ms": wait_ms,
        "age_ms": age_ms,
    }


def queue_table(taken: Taken, names: tuple[str, ...]) -> dict[str, Any]:
    """Readings of (time in us, an array over all operators for each of ``QUEUE``)."""
    times_us, *columns = zip(*taken, strict=True)
    return {
        "time_s": np.repeat(np.array(times_us), len(names)) / 1e6,
        "operator": Coded(np.tile(np.arange(len(names)), len(taken)), names),
        **dict(zip(QUEUE, map(np.concatenate, columns), strict=True)),
    }


def instances_table(taken: Taken, names: tuple[str, ...]) -> dict[str, Any]:
    """Readings of (time in us, numbers, operators, hosts, CPU shares)."""
    time_s, (instance, operator, host, cpu) = _stacked(taken)
    return {
        "time_s": time_s,
        "instance": instance_names(operator, instance, names),
        "operator": Coded(operator, names),
        "host": coded(host, "host-{}"),
        "cpu_share": cpu,
    }


def hosts_table(taken: Taken) -> dict[str, Any]:
    """Readings of (time in us, numbers, CPU shares, memory shares, counts of instances)."""
    time_s, (host, cpu, memory, instances) = _stacked(taken)
    return {
        "time_s": time_s,
        "host": coded(host, "host-{}"),
        "cpu_share": cpu,
        "memory_share": memory,
        "instances": instances,
    }


def instance_names(operator: np.ndarray, instance: np.ndarray, names: tuple[str, ...]) -> Coded:
    """O1-7 and so on, for rows of an operator's row and an instance's number."""
    numbers, first, codes = np.unique(instance, return_index=True, return_inverse=True)
    operators = [names[o] for o in operator[first]]
    texts = (f"{name}-{number}" for name, number in zip(operators, numbers, strict=True))
    return Coded(codes, tuple(texts))


def _stacked(taken: Taken) -> tuple[np.ndarray, list[np.ndarray]]:
    """Rows of (time, array, array, ...) as one time column and one array per column."""
    times_us, *columns = zip(*taken, strict=True)
    lengths = [len(column) for column in columns[0]]
    return np.repeat(np.array(times_us), lengths) / 1e6, [np.concatenate(one) for one in columns]
