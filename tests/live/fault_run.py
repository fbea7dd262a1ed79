"""A run on the live testbed while everything fails that can, and what has become of its items.

`python -m tests.live.fault_run [items] [items per second]`; services and images have to be there
(make live-images). Ends with 1 when an item was lost.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from include.experiment.spec import RunSpec, parse_spec
from include.model.errors import TidebenchError
from include.runs import stages
from include.testbeds.live.operators.ledger import repeated_key, sent_key
from include.testbeds.live.services import Services
from include.testbeds.live.shared_state import SharedState
from tests.live.faults import FAULTS, Inflicted, Victim, inflict_while
from tests.live.unprocessed import unprocessed, unprocessed_of_source
from tests.live.world import REPOSITORY, crowding, wait_until

CALM_AT_THE_END_S = 75.0
READINGS_S = 5
TOPOLOGY = REPOSITORY / "tests" / "live" / "relay.yaml"
PATHS = {"front": "S1", "back": "S1>front"}


@dataclass
class Survived:
    """What was done to a run and what came of it. ``done`` counts distinct items by operator."""

    planned_items: int
    faults: list[Inflicted] = field(default_factory=list)
    sent_items: int = 0
    done: dict[str, int] = field(default_factory=dict)
    repeated: dict[str, int] = field(default_factory=dict)
    lost: list[Any] = field(default_factory=list)
    problem: str = ""
    """What was not noticed, or not recovered from."""
    events: Counter[str] = field(default_factory=Counter)

    def lines(self) -> list[str]:
        faults = [
            f"{fault.name:<46} noticed after {fault.noticed_s:5.1f} s, "
            f"calm after {fault.calm_s:5.1f} s"
            for fault in self.faults
        ]
        done = ", ".join(f"{name} {count:,}" for name, count in self.done.items())
        again = ", ".join(f"{name} {count:,}" for name, count in self.repeated.items()) or "none"
        return [
            *faults,
            f"items planned {self.planned_items:,}, sent {self.sent_items:,}, processed: {done}",
            f"came again and counted once: {again}",
            f"lost: {len(self.lost)}",
            *([f"PROBLEM: {self.problem}"] if self.problem else []),
            "events in the table: " + ", ".join(f"{n} {e}" for e, n in sorted(self.events.items())),
            f"machine: {os.cpu_count()} cores, load {os.getloadavg()[1]:.1f} in the last 5 minutes",
        ]


def spec_of(items: int, rate: float, experiment: str) -> RunSpec:
    """Two operators in a row under the threshold controller, for as long as the items take."""
    controller = {
        "name": "threshold",
        "interval_s": 5,
        "scale_up_above_items": 60 * rate,
        "scale_up_twice_above_items": 300 * rate,
        "scale_down_below_items": 20,
    }
    raw = {
        "name": experiment,
        "topology": str(TOPOLOGY),
        "calibration": str(TOPOLOGY.with_name("relay_calibration.yaml")),
        "controllers": [controller],
        "patterns": [{"name": "constant", "level": rate}],
        "duration_min": math.ceil(items / rate / READINGS_S) * READINGS_S / 60,
    }
    (spec,) = parse_spec(raw, source=experiment).points()
    return spec


def survive(items: int, rate: float, root: Path, experiment: str) -> Survived:
    """Run it, inflict every fault, and count; what is leased is given back in any case."""
    spec = spec_of(items, rate, experiment)
    stages.forget(spec, root)
    stages.provision(spec, root)
    try:
        stages.deploy(spec, root)
        stages.replay_arrivals(spec, root)
        survived = _under_faults(spec, root)
        _count(spec.run_id, survived)
    finally:
        stages.release(spec, root)
    store = stages.store_of(spec, root)
    assert store.manifest.is_file(), "the run is complete"
    (part,) = store.part("event", 0).parent.glob("*.parquet")
    survived.events = Counter(pq.read_table(part)["event"].to_pylist())
    return survived


def _under_faults(spec: RunSpec, root: Path) -> Survived:
    """All windows, while another thread does harm; it stops early enough for the last recovery."""
    survived = Survived(round(spec.duration_s * spec.pattern_options["level"]))
    victim = Victim(spec.run_id)
    ends = threading.Event()
    early = threading.Timer(spec.duration_s - CALM_AT_THE_END_S, ends.set)

    def harm() -> None:
        try:
            for fault in inflict_while(victim, lambda: not ends.is_set()):
                survived.faults.append(fault)
                print(f"{fault.name}: calm after {fault.calm_s:.1f} s", flush=True)
        except Exception as error:
            survived.problem = f"{type(error).__name__}: {error}"

    thread = threading.Thread(target=harm, daemon=True)
    thread.start()
    early.start()
    stages.control_windows(spec, root, 0, spec.windows - 1)
    early.cancel()
    if thread.is_alive() or {fault.name for fault in survived.faults} != FAULTS.keys():
        survived.problem = survived.problem or "the run was too short for every fault"
    return survived


def _count(run: str, survived: Survived) -> None:
    """Every item that was ever sent has to come out at the back; nobody has given back anything."""
    shared = SharedState(Services.find(), run).redis

    def lost() -> list[Any]:
        return unprocessed_of_source(shared, run, "S1", "front") + unprocessed(shared, run)

    try:
        wait_until(lambda: not lost(), "everything processed", 60 * crowding())
    except AssertionError:
        survived.lost = lost()
    survived.sent_items = int(shared.hget(sent_key(run, "S1"), "count"))
    for operator, path in PATHS.items():
        survived.done[operator] = int(shared.bitcount(f"{run}:done:{operator}:{path}"))
    again = shared.hgetall(repeated_key(run))
    survived.repeated = {name.decode(): int(count) for name, count in again.items()}


def main(arguments: Sequence[str]) -> int:
    """Returns 1 when something was lost or not recovered from."""
    parser = argparse.ArgumentParser(prog="python -m tests.live.fault_run", description=__doc__)
    parser.add_argument("items", type=int, nargs="?", default=100_000)
    parser.add_argument("rate", type=int, nargs="?", default=250, help="items per second")
    options = parser.parse_args(arguments)
    root = Path(os.environ.get("TIDEBENCH_DATA_ROOT") or REPOSITORY / "var")
    try:
        survived = survive(options.items, options.rate, root, "live_faults")
    except TidebenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print("\n".join(survived.lines()))
    short = {survived.sent_items, *survived.done.values()} != {survived.planned_items}
    return int(bool(survived.lost or survived.problem) or short)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
