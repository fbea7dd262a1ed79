"""Operators in series of Prometheus: by label, over subtasks."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from include.model.errors import SpecError
from include.workloads.recordings.operators import read_operators

FLINK = "flink_taskmanager_job_task_"
TIMES = [1_700_000_000 + 15 * step for step in range(120)]
Series = tuple[dict[str, str], list[tuple[float, object]]]


def response(tmp_path: Path, *series: Series) -> str:
    """What /api/v1/query_range answers."""
    result = [
        {"metric": labels, "values": [[at, str(value)] for at, value in values]}
        for labels, values in series
    ]
    file = tmp_path / "range.json"
    data = {"resultType": "matrix", "result": result}
    file.write_text(json.dumps({"status": "success", "data": data}))
    return str(file)


def subtask(metric: str, task: str, index: int, of: list[tuple[float, object]]) -> Series:
    return {"__name__": FLINK + metric, "task_name": task, "subtask_index": f"{index}"}, of


def rates(factor: float) -> list[tuple[float, object]]:
    return [(at, factor * (100 + 50 * math.sin(at / 300))) for at in TIMES]


JOB = [
    *(subtask("numRecordsInPerSecond", "map", k, rates(0.5)) for k in range(2)),
    *(subtask("busyTimeMsPerSecond", "map", k, rates(1.0 + k)) for k in range(2)),
    subtask("numRecordsInPerSecond", "sink", 0, rates(2.0)),
    subtask("busyTimeMsPerSecond", "sink", 0, rates(3.0)),
]


def test_metrics_of_flink_need_no_mapping(tmp_path: Path) -> None:
    read = read_operators(response(tmp_path, *JOB), {})
    assert read.times_s.tolist() == [15.0 * step for step in range(120)]
    load = np.array([value for _, value in rates(1.0)])
    np.testing.assert_allclose(read.readings["map"]["in"], load)
    np.testing.assert_allclose(read.readings["map"]["busy"], 1.5 * load / 1000)
    assert set(read.readings["map"]["instances"].tolist()) == {2}
    assert set(read.readings["sink"]["instances"].tolist()) == {1}


def test_openmetrics_is_read_alike(tmp_path: Path) -> None:
    text, metrics = "", dict[str, str]()
    for labels, values in JOB:
        inside = ",".join(f'{k}="{v}"' for k, v in labels.items() if k != "__name__")
        lines = "".join(f"{labels['__name__']}{{{inside}}} {value} {at}\n" for at, value in values)
        metrics[labels["__name__"]] = metrics.get(labels["__name__"], "") + lines
    for name, lines in metrics.items():
        text += f"# TYPE {name} gauge\n{lines}"
    file = tmp_path / "job.om"
    file.write_text(text + "# EOF\n")
    one, other = read_operators(str(file), {}), read_operators(response(tmp_path, *JOB), {})
    for operator, kinds in one.readings.items():
        for kind, found in kinds.items():
            np.testing.assert_allclose(found, other.readings[operator][kind])


def test_a_label_and_metrics_of_ones_own_are_mapped(tmp_path: Path) -> None:
    mine = [
        ({"__name__": name, "bolt": "split"}, rates(factor))
        for name, factor in (("executed", 60.0), ("load", 0.1), ("workers", 0.0))
    ]
    asked = {"operator": "bolt", "in": "executed@per_min", "busy": "load@percent",
             "instances": "workers"}  # fmt: skip
    read = read_operators(response(tmp_path, *mine), asked)
    load = np.array([value for _, value in rates(1.0)])
    np.testing.assert_allclose(read.readings["split"]["in"], load)
    np.testing.assert_allclose(read.readings["split"]["busy"], load / 1000)
    assert set(read.readings["split"]["instances"].tolist()) == {0}


def test_a_subtask_that_is_missing_for_a_moment_makes_the_sum_unknown_not_small(
    tmp_path: Path,
) -> None:
    gap = [(at, v) for at, v in rates(0.5) if not TIMES[40] <= at < TIMES[43]]
    undefined = [(at, "NaN" if at == TIMES[60] else v) for at, v in rates(0.5)]
    later = [(at, v) for at, v in rates(0.5) if at >= TIMES[80]]
    job = [subtask("numRecordsInPerSecond", "map", k, of) for k, of in
           enumerate((gap, undefined, later))]  # fmt: skip
    read = read_operators(response(tmp_path, *job), {})
    taken = read.readings["map"]["in"]
    load = np.array([value for _, value in rates(1.0)])
    assert np.flatnonzero(np.isnan(taken)).tolist() == [40, 41, 42, 60]
    np.testing.assert_allclose(taken[61:80], load[61:80])
    np.testing.assert_allclose(taken[80:], 1.5 * load[80:])


NAMELESS: Series = ({"__name__": FLINK + "numRecordsInPerSecond", "job": "x"}, rates(1.0))
UNKNOWN: Series = ({"__name__": "up", "task_name": "x"}, rates(1.0))


@pytest.mark.parametrize(
    ("series", "mapping", "said"),
    [
        (JOB, {"operator": "bolt"}, "no series has a label 'bolt'; write operator=LABEL with one"),
        (JOB, {"busyy": "x"}, "unknown signal 'busyy'. Did you mean 'busy'?"),
        (JOB, {"in": f"{FLINK}numRecordsInPerSecnd"}, "unknown metric"),
        (JOB, {"busy": f"{FLINK}busyTimeMsPerSecond@ns"}, "busy: unknown unit ns; it can be in @s"),
        (JOB, {"busy": f"{FLINK}busyTimeMsPerSecond"}, "is above 1"),
        ([*JOB, NAMELESS], {}, "has no label task_name"),
        ([NAMELESS], {}, "no label names an operator"),
        ([UNKNOWN], {}, "no metric is known"),
    ],
)
def test_series_that_cannot_be_read_are_told(
    tmp_path: Path, series: list[Series], mapping: dict[str, str], said: str
) -> None:
    with pytest.raises(SpecError, match=re.escape(said)):
        read_operators(response(tmp_path, *series), mapping)
