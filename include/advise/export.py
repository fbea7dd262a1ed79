"""The model as files that an experiment takes: topology, calibration, load and a first spec."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from include.advise.cluster import OPERATOR
from include.advise.job import JobModel
from include.advise.names import recorded_name
from include.advise.readings import Readings
from include.advise.replay import ReplayConditions
from include.files.whole import csv_text, write_bytes

FLAVOR = "kvm-1cpu"


def write_experiment(
    job: JobModel, read: Readings, conditions: ReplayConditions, folder: Path
) -> Path:
    """Write ``job_*.yaml`` and ``job_load.csv`` for the fluid testbed. Returns the spec's path.

    An instance has a core of its own, the overhead and the time per record of the model. A scaling
    pauses the job for as long as latency rose in a planned restart. What else a restart does to
    CPU is not there, nor restarts by themselves. Experiment and topology are named after the
    recording and what was read off it, so that results of two recordings are never taken for one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    restart_s = job.planned_share * max(job.restart.latency_excess_s, default=0.0)
    rows = zip(read.times_s.tolist(), read.load_per_s.round(3).tolist(), strict=True)
    load = csv_text(("time_s", "rate_items_per_s"), ([repr(t), repr(rate)] for t, rate in rows))
    topology = _topology(job)
    calibration = {
        "overhead_cores": round(max(0.0, job.overhead.value), 4),
        "rescale_pause_s": round(restart_s, 2),
        "host_boot_s": [0.0, 0.0],
        "image_pull_s": [0.0, 0.0],
        "instance_start_s": [conditions.takes_s, conditions.takes_s],
        "sample_every_items": max(1, round(float(read.load_per_s.mean()) * read.step_s)),
    }
    name = recorded_name(job.name, json.dumps([topology, calibration, load]))
    documents = {
        "job_topology.yaml": {"name": name, **topology},
        "job_calibration.yaml": calibration,
        "job_experiment.yaml": _spec(name, read, conditions),
    }
    head = f"# Read off {job.name}; docs/advise.md says how.\n"
    for file, content in documents.items():
        text = head + yaml.safe_dump(content, sort_keys=False)
        write_bytes(folder / file, text.encode())
    write_bytes(folder / "job_load.csv", load.encode())
    return folder / "job_experiment.yaml"


def _topology(job: JobModel) -> dict[str, Any]:
    operator = {
        "label": "The whole job",
        "slo_ms": max(1, round(1000 * job.quiet_latency_s)),
        "cpu_shares": 1024,
        "memory_mb": 1000,
        "service_ms": round(job.demand_ms.value, 6),
    }
    return {
        "level_unit": "records a second",
        "emission_period_s": 1.0,
        "sources": {"load": {"label": "The load", "items_per_level": 1}},
        "operators": {OPERATOR: operator},
        "edges": [{"from": "load", "to": OPERATOR}],
    }


def _spec(name: str, read: Readings, conditions: ReplayConditions) -> dict[str, Any]:
    whole_min = int(read.load_per_s.size * read.step_s // 3600) * 60
    return {
        "name": name,
        "testbed": "flow",
        "topology": "job_topology.yaml",
        "calibration": "job_calibration.yaml",
        "flavor": FLAVOR,
        "max_hosts": conditions.max_instances,
        "patterns": {"name": "trace", "path": "job_load.csv"},
        "controllers": [
            {"name": "hpa", "target_cpu": 0.5, "max_instances": conditions.max_instances},
            {"name": "target-tracking", "max_instances": conditions.max_instances},
        ],
        "btus_min": 60,
        "duration_min": max(60, whole_min),
        "monitor_every_s": read.step_s,
    }
