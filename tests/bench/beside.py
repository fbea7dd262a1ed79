"""`python -m tests.bench.beside`: what recording a job and four controllers beside it cost.

A server that answers as Flink does, three operators, a poll of 15 s; the time of the job is
virtual, so a day takes a minute. CPU is that of the thread that polls, without the server's, and
the memory that of the whole process. The alternative is recording alone: `--hours 24` has both.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from include.experiment.prices import price_book
from include.service.observe import Terms
from include.service.record import Recorder
from include.service.rest import FlinkRest
from include.service.shadow import Shadow, asked_controllers, opened
from tests.bench.growth import memory_mb
from tests.service.fake_flink import a_flink
from tests.service.flink_world import World

EVERY_S = 15.0
CONTROLLERS = ("tide", "ds2", "flink-autoscaler", "hpa")


def polls(hours: float, names: Sequence[str], folder: Path) -> tuple[list[float], list[float]]:
    """CPU seconds of every poll with all that follows from it, and MB after every hour."""
    world = World(load=lambda t: 300 + 200 * math.sin(t * 2 * math.pi / 5400))
    world.counts["map"] = world.most["map"] = 4
    took_s, resident = [], []
    with a_flink(world) as flink:
        client = FlinkRest(flink.url, now_s=lambda: world.now_s, settles_s=0.0)
        recorder = Recorder(folder / "recording", "orders", flink.url, EVERY_S)
        recorder.begin(world.now_s)
        state = opened(folder, "orders", asked_controllers(names, {}) if names else {})
        terms = Terms(price_book("btu60"), 2.0)
        shadow = Shadow(folder, state, terms, every_s=EVERY_S, most_slots=12)
        for number in range(1, round(hours * 3600 / EVERY_S) + 1):
            world.advance(EVERY_S)
            start_s = time.thread_time()
            reading = client.reading("orders")
            rates = recorder.keep(reading)
            if names:
                shadow.turn(reading, rates)
            took_s.append(time.thread_time() - start_s)
            if number * EVERY_S % 3600 == 0 or not resident:
                resident.append(memory_mb("VmRSS"))
            flink.asked.clear()
        shadow.close()
        recorder.end(world.now_s, len(took_s))
        client.close()
    return took_s, resident


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for recording alone, one with controllers, and their ratio."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--hours", type=float, default=24.0)
    hours = parser.parse_args(arguments).hours
    medians_ms = []
    for names in ((), CONTROLLERS):
        with tempfile.TemporaryDirectory() as folder:
            took_s, resident = polls(hours, names, Path(folder))
        medians_ms.append(1000 * statistics.median(took_s))
        print(
            f"{'recorded, ' + str(len(names)) + ' controllers':<26} {len(took_s):6} polls  "
            f"{medians_ms[-1]:6.1f} ms of CPU each [{1000 * min(took_s):.1f}, "
            f"{1000 * max(took_s):.1f}]  {100 * sum(took_s) / len(took_s) / EVERY_S:.2f} % of a "
            f"core  {resident[0]:.0f} MB at first, {resident[-1]:.0f} at the end"
        )
    print(f"{'ratio':<26} {medians_ms[1] / medians_ms[0]:6.1f} x")
    return 0


if __name__ == "__main__":
    sys.exit(main())
