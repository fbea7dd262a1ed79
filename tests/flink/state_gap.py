"""For how long nothing comes out of a job on a real Flink that is rescaled, by its keyed state.

`python -m tests.flink.state_gap [MB ...]`: by default 1 and 100, which takes five minutes. Items
are counted by key, a hundred a second, by two instances and three in turn: six rescales a size.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from include.model.decision import StartInstance, StopInstance
from include.model.topology import Edge, Keyed, Source, Topology
from tests.flink.flink_run import FlinkRun, an_operator, configured, flink_run

KEYS = 512
RATE = 100.0
FILLED_AFTER_S = 30.0
"""By then all but 0.3 % of the keys have come."""
BETWEEN_S = 10.0
"""Two checkpoints, and the gap of a rescale is known."""
RESCALES = 6


def counting(state_mb: int) -> Topology:
    """A source, an operator with so much state in all of its keys, and an output."""
    keyed = Keyed(keys=KEYS, state_kb=state_mb * 1024 / KEYS)
    return Topology(
        name="counting",
        level_unit="items",
        emission_period_s=1.0,
        operators=(
            replace(an_operator("count", 2), stateful=True, keyed=keyed),
            an_operator("end", 1),
        ),
        sources=(Source(name="S", label="S", items_per_level=1, size_bytes=100),),
        edges=(Edge(origin="S", target="count"), Edge(origin="count", target="end")),
    )


def rescales(state_mb: int) -> list[dict[str, Any]]:
    """Rows of the measured table."""
    config = configured(
        topology=counting(state_mb), rate=RATE, emits_s=900, duration_s=900, checkpoint_every_s=5
    )
    with flink_run(config, (("count", "end"), ("count",))) as run:
        run.testbed.advance_to(FILLED_AFTER_S)
        for turn in range(RESCALES):
            run.apply(StopInstance(_newest(run)) if turn % 2 else StartInstance("count", "host-2"))
            run.settle()
            run.testbed.advance_to(run.state.now_s() + BETWEEN_S)
        return run.rescales()


def _newest(run: FlinkRun) -> str:
    return max(run.testbed.fleet.instances.values(), key=lambda one: one.number).name


def line_of(state_mb: int, rows: Sequence[dict[str, Any]]) -> str:
    """Medians over the rescales, in seconds, and the longest gap."""
    gaps = [row["gap_s"] for row in rows]
    up = median(row["up_s"] - row["asked_s"] for row in rows)
    took = median(row["checkpoint_s"] for row in rows)
    stored_mb = median(row["checkpoint_bytes"] for row in rows) / 2**20
    return (
        f"{state_mb:5d} MB: {len(rows)} rescales, nothing came out for {median(gaps):.1f} s "
        f"(at most {max(gaps):.1f}), up {up:.1f} s after the order, checkpoint of "
        f"{stored_mb:.1f} MB in {took:.1f} s"
    )


def main(arguments: Sequence[str]) -> int:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(prog="python -m tests.flink.state_gap", description=__doc__)
    parser.add_argument("mb", type=int, nargs="*", default=[1, 100])
    for state_mb in parser.parse_args(arguments).mb:
        print(line_of(state_mb, rescales(state_mb)), flush=True)
    print(f"machine: {os.cpu_count()} cores, load {os.getloadavg()[1]:.1f} in the last 5 minutes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
