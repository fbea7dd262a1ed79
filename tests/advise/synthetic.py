"""Recordings of jobs that are known: what made the readings is what a model has to find again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from include.advise.case import Case, keep_case
from include.advise.job import JobModel
from include.advise.replay import Replayed
from include.advise.request import AdviceRequest
from include.advise.restarts import Restart
from include.advise.times import FittedValue
from include.experiment.matrix import runs_in_file
from include.experiment.run import resolve
from include.runs.session import Session
from include.workloads.recordings import Recording
from include.workloads.recordings.recording import FloatArray

STEP_S = 15.0
STEPS_PER_HOUR = 240
QUIET_LATENCY_S = 1.0
QUIET_LAG_S = 0.05
CPU_EXCESS = (-0.1, -0.1, 0.3, 0.2, 0.1, 0.05)
LAG_S = (5.0, 20.0, 15.0, 8.0, 3.0, 1.0)
LATENCY_EXCESS_S = (0.0, 0.0, 12.0, 8.0, 4.0, 2.0)
PROCESSED = (0.0, 0.2, 1.6, 1.6, 1.4, 1.2)
"""Shares of the load: what waited is made up for, and their mean is 1."""
RESTARTS = (400, 900, 1300, 1700, 2200, 2600)
"""Steps of twelve hours at which a job restarts by itself."""


@dataclass(frozen=True, kw_only=True)
class Truth:
    """A job: CPU of an instance is ``overhead`` and ``demand_ms`` for each of its records."""

    overhead: float = 0.08
    demand_ms: float = 0.1
    noise: float = 0.01
    restarts: tuple[int, ...] = ()
    seed: int = 0


def daily(hours: float = 12, mean: float = 50_000, swing: float = 0.5) -> FloatArray:
    """A load (records per second, by step) that goes up and down once in six hours."""
    steps = np.arange(round(hours * STEPS_PER_HOUR))
    load: FloatArray = mean * (1 + swing * np.sin(2 * np.pi * steps / (6 * STEPS_PER_HOUR)))
    return load


def recording(
    truth: Truth, load: FloatArray, instances: FloatArray | float = 20.0, name: str = "known.csv"
) -> Recording:
    """What a monitor would have kept of the job under the load."""
    draw = np.random.default_rng(truth.seed)
    count = np.broadcast_to(np.asarray(instances, dtype=np.float64), load.shape).copy()
    cpu = truth.overhead + truth.demand_ms / 1000 * load / count
    cpu += draw.normal(0, truth.noise, load.size)
    rate = load * (1 + draw.normal(0, 0.005, load.size))
    lag, latency = QUIET_LAG_S * load, np.full(load.size, QUIET_LATENCY_S)
    for start in truth.restarts:
        during = slice(start, start + len(LAG_S))
        cpu[during] += CPU_EXCESS
        rate[during] *= PROCESSED
        lag[during] = load[during] * LAG_S
        latency[during] += LATENCY_EXCESS_S
    readings = {
        "rate_per_s": rate,
        "lag_items": lag,
        "latency_s": latency,
        "cpu_share": np.clip(cpu, 0, 1),
        "instances": count,
    }
    return of_readings(readings, name)


def of_readings(readings: dict[str, FloatArray], name: str = "known.csv") -> Recording:
    """A recording with a reading every 15 s."""
    steps = len(next(iter(readings.values())))
    times_s = np.arange(steps) * STEP_S
    return Recording(name=name, times_s=times_s, readings=readings, began_at=None, notes=())


def without(given: Recording, *signals: str) -> Recording:
    """The recording as it were if nobody had recorded these."""
    kept = {name: of for name, of in given.readings.items() if name not in signals}
    return of_readings(kept, given.name)


def as_recording(run: Replayed, load: FloatArray, name: str = "replayed.csv") -> Recording:
    """What a monitor would have kept of a replay, with the load as arrivals."""
    return of_readings(
        {
            "arrivals_per_s": load,
            "lag_items": run.lag_items,
            "latency_s": run.latency_s,
            "cpu_share": run.cpu_share,
            "instances": run.instances,
        },
        name,
    )


def csv(given: Recording) -> str:
    """The recording as a file whose columns say what they are."""
    names = {"rate_per_s": "throughput_per_s", "lag_items": "lag", "instances": "task_managers"}
    heads = ["time_s", *(names.get(name, name) for name in given.readings)]
    rows = np.column_stack([given.times_s, *given.readings.values()])
    lines = [",".join("" if np.isnan(one) else repr(float(one)) for one in row) for row in rows]
    return "\n".join([",".join(heads), *lines, ""])


def write_small_recording(path: Path, hours: int = 2) -> None:
    """A file: four instances, overhead 0.1, 1 ms of CPU a record, a restart every hour."""
    draw = np.random.default_rng(1)
    lines = ["time_s,rate_per_s,lag_items,latency_ms,cpu_share,instances"]
    for step in range(hours * STEPS_PER_HOUR):
        rate = 1000 + 600 * math.sin(step / 200)
        since = step % STEPS_PER_HOUR - 120
        late, extra = (9000, 0.3) if since == 2 else (3000, 0.1) if since == 3 else (100, 0)
        cpu = 0.1 + 0.001 * rate / 4 + extra + draw.normal(0, 0.005)
        lines.append(f"{15 * step},{rate:.2f},{rate / 10:.1f},{late},{cpu:.5f},4")
    path.write_text("\n".join(lines) + "\n")


def small_request(folder: Path, **changes: Any) -> AdviceRequest:
    """What to ask about the small recording, which this writes."""
    write_small_recording(folder / "job.csv")
    asked: dict[str, Any] = {"objective": "90 % within 1 s"} | changes
    return AdviceRequest(recording=str(folder / "job.csv"), **asked)


def case_of(request: AdviceRequest) -> Case:
    """What is asked, in a folder that is gone."""
    with TemporaryDirectory() as folder:
        return keep_case(request, Path(folder))


def job(
    restart: Restart = Restart(),  # noqa: B008  frozen
    noise: float = 0.0,
    incidents_s: Sequence[float] = (),
    most_per_s: float = 10_000.0,
    latency_s: float = QUIET_LATENCY_S,
) -> JobModel:
    """A model without overhead: an instance that is full does 10,000 records per second."""
    return JobModel(
        name="known",
        step_s=STEP_S,
        rates_per_s=(0.0, 10_000.0),
        cpu_at=(0.0, 1.0),
        overhead=FittedValue(value=0.0, low=0.0, high=0.0),
        demand_ms=FittedValue(value=0.1, low=0.1, high=0.1),
        most_per_s=most_per_s,
        known_to_per_s=10_000.0,
        quiet_lag_s=0.0,
        quiet_latency_s=latency_s,
        cpu_noise=noise,
        cpu_at_most=1.0,
        restart=restart,
        incidents_s=tuple(incidents_s),
        notes=(),
    )


TOPOLOGY = """\
name: known
emission_period_s: 1.0
sources: {load: {label: Load, items_per_level: 1}}
operators:
  parse: {label: Parse, slo_ms: 1000, cpu_shares: 1024, memory_mb: 9, service_ms: 4, instances: 2}
  enrich: {label: Enrich, slo_ms: 1000, cpu_shares: 1024, memory_mb: 9, service_ms: 9, instances: 2}
  store: {label: Store, slo_ms: 1000, cpu_shares: 1024, memory_mb: 9, service_ms: 3, instances: 1}
edges:
  - {from: load, to: parse}
  - {from: parse, to: enrich, out: 1/2}
  - {from: enrich, to: store, out: 2}
"""
SPEC = """\
name: known
testbed: flow
topology: topology.yaml
calibration: calibration.yaml
flavor: kvm-1cpu
max_hosts: 12
patterns: {name: trace, path: load.csv}
controllers: [{name: fixed, instances_each: 2}]
btus_min: 60
duration_min: 120
monitor_every_s: 15
"""
OVERHEAD = 0.05
BUSY_MS = {name: ms / (1 - OVERHEAD) for name, ms in (("parse", 4), ("enrich", 9), ("store", 3))}
"""What a record keeps an instance busy for: overhead leaves so much of its core."""
SELECTIVITY = {"parse": 0.5, "enrich": 2.0}
EDGES = "parse>enrich>store"


def write_operators(folder: Path) -> Path:
    """What a monitor would have kept of two hours of three operators on the fluid testbed, every
    60 s; beside it the experiment, ``spec.yaml``."""
    (folder / "topology.yaml").write_text(TOPOLOGY)
    (folder / "calibration.yaml").write_text(f"overhead_cores: {OVERHEAD}\n")
    rows = (f"{at},{110 + 50 * math.sin(at / 600)}" for at in range(0, 7200, 15))
    (folder / "load.csv").write_text("\n".join(["time_s,rate_items_per_s", *rows, ""]))
    (folder / "spec.yaml").write_text(SPEC)
    session = Session.open(resolve(runs_in_file(folder / "spec.yaml")[0]))
    session.deploy()
    testbed, before = session.loop.testbed, dict[str, int]()
    lines = ["time_s,operator,in_per_s,out_per_s,busy_share,instances"]
    for at_s in range(60, 7200, 60):
        testbed.advance_to(at_s)
        seen = testbed.observe()
        for name, one in seen.operators.items():
            in_all = one.completed_in_all or 0
            done = in_all - before.get(name, 0)
            before[name] = in_all
            out = done * SELECTIVITY.get(name, 0) / 60
            row = (at_s, name, done / 60, out, one.busy_share, len(seen.serving(name)))
            lines.append(",".join(map(str, row)))
    session.close()
    (folder / "recording.csv").write_text("\n".join(lines) + "\n")
    return folder / "recording.csv"
