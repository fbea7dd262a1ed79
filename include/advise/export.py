"""The model as files that an experiment takes: topology, calibration, load and a first spec."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from include.advise.cluster import OPERATOR
from include.advise.job import JobModel
from include.advise.operators import JobGraph, graph_calibration, graph_topology
from include.advise.readings import Readings, median_of
from include.advise.replay import ReplayConditions
from include.files.whole import csv_text, write_bytes
from include.workloads.recordings.recording import FloatArray

FLAVOR = "kvm-1cpu"
RATES = {"level_unit": "records a second", "emission_period_s": 1.0}
"""What a level is in the topology of every recording."""


def write_experiment(
    job: JobModel, read: Readings, conditions: ReplayConditions, folder: Path
) -> Path:
    """Write ``job_*.yaml`` and ``job_load.csv`` for the fluid testbed. Returns the spec's path.

    An instance does at most what one was seen to do, and shows the overhead and the CPU per record
    of the model, as means of the same window as in a replay. A scaling takes the job down, and so
    do the recorded restarts that no scaling explains, at their times. CPU beyond that of the work
    is not there after a restart: `flow` makes up for what waited, which needs some by itself.
    Experiment and topology are named after the recording and what was read off it, so that
    results of two recordings are never taken for one.
    """
    topology = _topology(job)
    at_rest = max(0.0, job.overhead.value)
    when_busy = min(1.0, at_rest + job.demand_ms.value / 1000 * job.most_per_s)
    lag_s = 0.0 if math.isnan(job.quiet_lag_s) else job.quiet_lag_s
    each_per_s = float(read.load_per_s.mean()) / max(1.0, median_of(read.instances))
    down_s = restart_down_s(job, each_per_s, job.restart.planned_share)
    calibration = {
        "cpu_at_rest": round(at_rest, 4),
        "cpu_when_busy": round(when_busy, 4),
        "cpu_window_s": conditions.metrics_every_s,
        "cpu_noise": 0,
        "cpu_residuals": list(job.cpu_residuals),
        "latency_ms": 0,
        "rest_s": {OPERATOR: round(lag_s, 4)},
        "pass_s": {OPERATOR: round(max(0.0, job.quiet_latency_s - lag_s), 4)},
        "restart": {"down_s": [down_s, down_s]},
        "drain_s": 0,
        "host_boot_s": [0.0, 0.0],
        "image_pull_s": [0.0, 0.0],
        "instance_start_s": [conditions.takes_s, conditions.takes_s],
        "sample_every_items": max(1, round(float(read.load_per_s.mean()) * read.step_s)),
    }
    incident_s = restart_down_s(job, each_per_s, 1.0)
    documents = topology, calibration, _spec(job, read, conditions, incident_s)
    load = load_csv(read.times_s, read.load_per_s)
    return write_files(job.name, documents, load, folder)


def write_graph(graph: JobGraph, folder: Path) -> Path:
    """Topology, calibration, load and a spec that ``run`` takes. Returns the spec's path.

    The experiment is as long as the recording. Experiment and topology are named as by
    `write_experiment`.
    """
    step_s = max(1.0, float(np.median(np.diff(graph.times_s))))
    readings = max(1, round(float(graph.times_s[-1]) / step_s) + 1)
    spec = {
        "max_hosts": max(2, 4 * sum(operator.instances for operator in graph.operators)),
        "patterns": {"name": "trace", "path": "job_load.csv"},
        "controllers": ["hpa", "ds2"],
        "btus_min": 60,
        "duration_min": readings * step_s / 60,
        "monitor_every_s": step_s,
    }
    documents = graph_topology(graph), graph_calibration(graph), spec
    return write_files(graph.name, documents, load_csv(graph.times_s, graph.load_per_s), folder)


def load_csv(times_s: FloatArray, load_per_s: FloatArray) -> str:
    """The load as the pattern ``trace`` takes it."""
    rows = zip(times_s.tolist(), load_per_s.round(3).tolist(), strict=True)
    return csv_text(("time_s", "rate_items_per_s"), ([repr(t), repr(rate)] for t, rate in rows))


def write_files(
    recording: str, documents: Sequence[dict[str, Any]], load: str, folder: Path
) -> Path:
    """Write topology, calibration and spec, named after what they say, and the load.

    What is the same for every recording is added. Returns the path of the spec.
    """
    topology, calibration, spec = documents
    topology = {**RATES, **topology}
    name = recorded_name(recording, json.dumps([topology, calibration, load]))
    where = {
        "testbed": "flow",
        "topology": "job_topology.yaml",
        "calibration": "job_calibration.yaml",
        "flavor": FLAVOR,
    }
    contents = {
        where["topology"]: {"name": name, **topology},
        where["calibration"]: calibration,
        "job_experiment.yaml": {"name": name, **where, **spec},
    }
    for file, content in contents.items():
        text = f"# Read off {recording}; docs/advise.md says how.\n"
        text += yaml.safe_dump(content, sort_keys=False, default_flow_style=None)
        write_bytes(folder / file, text.encode())
    write_bytes(folder / "job_load.csv", load.encode())
    return folder / "job_experiment.yaml"


def restart_down_s(job: JobModel, each_per_s: float, share: float) -> float:
    """How long a restart takes the job down that does ``share`` of what one does by itself, at
    ``each_per_s`` records per second of an instance.

    What waits goes at capacity, so latency is on top by d at first and falls in a line until
    d b / (1 - b) later, where instances are busy for b of their time. The records that come
    meanwhile, d / (1 - b) of time, are late by d / 2 on average: as late in all as recorded.
    """
    asked_s = job.times.asked_restart_s
    if asked_s is not None and share == job.restart.planned_share:
        return round(asked_s, 2)
    busy = min(0.9, each_per_s / job.most_per_s)
    late_s2 = share * job.step_s * sum(job.restart.latency_excess_s)
    return round(math.sqrt(2 * late_s2 * (1 - busy)), 2)


def _topology(job: JobModel) -> dict[str, Any]:
    operator = {
        "label": "The whole job",
        "slo_ms": max(1, round(1000 * job.quiet_latency_s)),
        "cpu_shares": 1024,
        "memory_mb": 1000,
        "service_ms": round(1000 / job.most_per_s, 6),
    }
    return {
        "sources": {"load": {"label": "The load", "items_per_level": 1}},
        "operators": {OPERATOR: operator},
        "edges": [{"from": "load", "to": OPERATOR}],
    }


def _spec(
    job: JobModel, read: Readings, conditions: ReplayConditions, down_s: float
) -> dict[str, Any]:
    whole_min = int(read.load_per_s.size * read.step_s // 3600) * 60
    return {
        "max_hosts": conditions.max_instances,
        "faults": {"restarts": [[at_s, down_s] for at_s in job.incidents_s]},
        "patterns": {"name": "trace", "path": "job_load.csv"},
        "controllers": [
            {"name": "hpa", "target_cpu": 0.5, "max_instances": conditions.max_instances},
            {"name": "target-tracking", "max_instances": conditions.max_instances},
        ],
        "btus_min": 60,
        "duration_min": max(60, whole_min),
        "monitor_every_s": read.step_s,
    }


MOST_LETTERS = 40


def recorded_name(recording: str, content: str) -> str:
    """A name for experiment and topology: that of the recording, and a digest of what was made of
    it. Other content is another name, so nobody takes two jobs for one and averages over them.
    """
    stem = re.sub(r"\.(csv|parquet|pq|json|prom|om|openmetrics)$", "", recording.lower())
    plain = re.sub(r"[^a-z0-9]+", "_", stem).strip("_")[:MOST_LETTERS].strip("_")
    return f"recorded_{plain or 'job'}_{sha256(content.encode()).hexdigest()[:8]}"
