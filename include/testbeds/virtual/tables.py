"""Measured columns from the kept rows of a virtual monitor, a tuple per reading."""

from __future__ import annotations

from typing import Any

import numpy as np

from include.testbeds.columns import Coded, coded, numbered

Taken = list[tuple[Any, ...]]
ARRIVAL = ("time_s", "source", "level", "published_items")
QUEUE = ("waiting_items", "arrived_items", "completed_items", "instances", "ready_instances")


def durations_table(taken: Taken, names: tuple[str, ...], homes: tuple[str, ...]) -> dict[str, Any]:
    """Sampled items as arrays of (operators, durations, instances, times, waits, ages).

    ``homes``: by row, the operator whose name the instance has.
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
    time_s, columns = _stacked(taken)
    return {
        "time_s": time_s,
        "operator": Coded(np.tile(np.arange(len(names)), len(time_s) // len(names)), names),
        **dict(zip(QUEUE, columns, strict=True)),
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
    """Names such as O1-7, from operator rows and instance numbers."""
    numbers, codes = numbered(instance)
    operators = np.zeros(len(numbers), dtype=np.int64)
    operators[codes] = operator
    pairs = zip(operators.tolist(), numbers.tolist(), strict=True)
    texts = (f"{names[o]}-{number}" for o, number in pairs)
    return Coded(codes, tuple(texts))


def _stacked(taken: Taken) -> tuple[np.ndarray, list[np.ndarray]]:
    """Rows of (time, array, array, ...) as one time column and one array per column.

    A time is a number for all rows of its arrays, or an array.
    """
    times_us, *columns = zip(*taken, strict=True)
    pairs = zip(times_us, columns[0], strict=True)
    each_us = [np.broadcast_to(time_us, len(column)) for time_us, column in pairs]
    return np.concatenate(each_us) / 1e6, [np.concatenate(column) for column in columns]
