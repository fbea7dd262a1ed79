"""How large an experiment is, estimated before anything starts: executions, time, memory, files.

Measured with manufacturing at constant levels of 6 to 600 under ``fixed`` and ``btu``, on one core
of a machine with two: 2.8 to 5.4 million executions a second on ``simulated`` and 5 to 11 on
``flow``, 30 to 190 bytes of memory per execution of a window (many where items wait), 1.6 to 26
bytes of files, with one execution in ten stored. The low end of the speeds is taken and what is
usual of the others. Controllers take their time as well: runs of two hours of stepwise and random
walk 1 under thirteen of them took 0.7 (``fixed``) to 2.9 times (``tide``) as long as computed,
twenty-eight side by side 1.4 times.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from include.experiment.levels import levels_of_sources
from include.experiment.problems import read_calibration
from include.experiment.spec import RunSpec
from include.testbeds import TESTBEDS
from include.workloads.topologies import load_topology

EXECUTIONS_PER_S: Mapping[str, float] = {"simulated": 3e6, "flow": 5e6}
LEAST_PER_S = 3e6
"""Of a testbed in virtual time that nobody has measured."""
RUN_S_PER_HOUR = 0.2
"""Seconds that an hour of a run takes however little arrives."""
QUICKEST, SLOWEST = 0.5, 4.0
"""How many times as long as computed the runs take."""
REPORT_S, REPORT_RUN_S = 30.0, 0.15
"""Of tables, checks and page: 28 s for one run of two hours, 48 s for 100, 54 s for 240."""
MEMORY_BYTES = 100.0
"""Per execution of a window. ``flow`` keeps no items: ten times as much per one that is stored."""
IDLE_BYTES = 200e6
FILE_BYTES = 30.0
"""Per execution that is stored; a fifth where only summaries are."""
MOST_S = 24 * 3600.0
MOST_FILE_BYTES = 100e9
TELL_S, TELL_FILE_BYTES = 600.0, 5e9
"""What takes longer or has more is said before it begins."""


@dataclass(frozen=True, slots=True)
class ExperimentSize:
    """Executions of all runs, seconds on all cores, bytes of files, of memory at once.

    Runs in real time are counted apart; ``real_time_s`` is what they take one after another.
    """

    runs: int
    executions: float
    time_s: float
    file_bytes: float
    memory_bytes: float
    real_time_runs: int = 0
    real_time_s: float = 0.0

    def __str__(self) -> str:
        parts = [self._by_the_clock()] if self.real_time_runs else []
        return "; ".join([*parts, self._in_virtual_time()] if self.runs else parts)

    def _by_the_clock(self) -> str:
        runs = f"{self.real_time_runs} run{'s' * (self.real_time_runs != 1)} in real time"
        each = " one after another" if self.real_time_runs > 1 else ""
        return f"{runs}: {_time(self.real_time_s)}{each}, boots aside"

    def _in_virtual_time(self) -> str:
        runs = f"{self.runs} run{'s' * (self.runs != 1)}, {_amount(self.executions)} executions"
        least, most = (_time(times * self.time_s) for times in (QUICKEST, SLOWEST))
        report = _time(REPORT_S + REPORT_RUN_S * self.runs)
        return (
            f"{runs}: {least} to {most} to measure on this machine when idle, then about {report} "
            f"for the report; {_bytes(self.file_bytes)} of files and up to "
            f"{_bytes(self.memory_bytes)} of memory"
        )

    @property
    def is_large(self) -> bool:
        """Whether to say so before it begins."""
        return self.time_s + self.real_time_s > TELL_S or self.file_bytes > TELL_FILE_BYTES

    def problems(self, memory_bytes: float) -> Iterator[str]:
        """Why it cannot run on a machine with so much memory."""
        less = "lower the level, shorten the runs, or take values out"
        if self.time_s > MOST_S:
            yield f"this takes more than a day ({self}); {less}"
        elif self.memory_bytes > memory_bytes:
            yield (
                f"this needs more memory than the {_bytes(memory_bytes)} that there are ({self}); "
                "lower the level or take shorter BTUs"
            )
        elif self.file_bytes > MOST_FILE_BYTES:
            yield f"this writes more than {_bytes(MOST_FILE_BYTES)} ({self}); {less}"


def size_of(points: Sequence[RunSpec]) -> ExperimentSize:
    """The size of the runs; those that differ only in their seed count alike.

    The points have no problems.
    """
    cores = min(len(points), os.cpu_count() or 1)
    by_the_clock = [point for point in points if TESTBEDS[point.testbed].real_time]
    alike = Counter(
        replace(point, seed=points[0].seed).to_json()
        for point in points
        if not TESTBEDS[point.testbed].real_time
    )
    runs = 0
    executions = time_s = largest_s = memory_bytes = file_bytes = 0.0
    for text, count in alike.items():
        spec = RunSpec.from_json(text)
        total, busiest = executions_of(spec)
        per_s = EXECUTIONS_PER_S.get(spec.testbed, LEAST_PER_S)
        run_s = total / per_s + spec.duration_s / 3600 * RUN_S_PER_HOUR
        runs, executions = runs + count, executions + count * total
        time_s, largest_s = time_s + count * run_s, max(largest_s, run_s)
        every = _calibration(spec)["sample_every_items"]
        file_bytes += count * total / every * FILE_BYTES * (0.2 if spec.summaries_only else 1)
        kept = busiest * 10 / every if spec.testbed == "flow" else busiest
        memory_bytes = max(memory_bytes, IDLE_BYTES + kept * MEMORY_BYTES)
    return ExperimentSize(
        runs=runs,
        executions=executions,
        time_s=max(largest_s, time_s / cores),
        file_bytes=file_bytes,
        memory_bytes=memory_bytes * cores,
        real_time_runs=len(by_the_clock),
        real_time_s=sum(
            spec.duration_s / _calibration(spec).get("time_scale", 1.0) for spec in by_the_clock
        ),
    )


def _calibration(spec: RunSpec) -> dict[str, Any]:
    return read_calibration(spec, load_topology(spec.topology)).model_dump(mode="json")


def executions_of(spec: RunSpec) -> tuple[float, float]:
    """Executions of all operators in a run, and at most in one of its windows."""
    topology = load_topology(spec.topology)
    levels_of = levels_of_sources(spec, topology)
    mean, peak = {}, {}
    for source, levels in levels_of.items():
        pieces = list(levels.pieces(spec.duration_s))
        lasting = sum(level * (end_s - start_s) for start_s, end_s, level in pieces)
        mean[source] = lasting / spec.duration_s
        peak[source] = levels.peak(spec.duration_s)
    window_s = min(spec.window_s, spec.duration_s)
    total = sum(topology.items_per_period(mean).values()) * spec.duration_s
    busiest = sum(topology.items_per_period(peak).values()) * window_s
    return total / topology.emission_period_s, busiest / topology.emission_period_s


def size_problems(points: Sequence[RunSpec]) -> list[str]:
    """Why the experiment is too large for this machine, or some runs have nothing to do."""
    if not points:
        return []
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return [*_idle_problems(points), *size_of(points).problems(memory)]


def _idle_problems(points: Sequence[RunSpec]) -> Iterator[str]:
    """Whether nothing arrives in some runs; what several have in common is looked at once."""
    arrives: dict[str, bool] = {}
    idle = []
    for point in points:
        pattern = [point.pattern, dict(point.pattern_options), point.seed]
        load = json.dumps([point.topology, point.duration_min, *pattern], sort_keys=True)
        if load not in arrives:
            arrives[load] = executions_of(point)[0] > 0
        if not arrives[load]:
            idle.append(point.run_id)
    if idle:
        which = f"{len(idle)} of {len(points)} runs, such as {idle[0]}"
        how = "raise the level, let tenants join earlier, or make the runs longer"
        yield f"nothing would ever arrive in {which}; {how}"


def _amount(count: float) -> str:
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if count >= size:
            return f"{count / size:.3g} {word}"
    return f"{count:,.0f}"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value < 1e9 else f"{value:.3g}"


def _time(seconds: float) -> str:
    for size, word in ((86_400 * 365, "years"), (86_400, "days"), (3600, "hours"), (60, "min")):
        if seconds >= 2 * size:
            return f"{_figure(seconds / size)} {word}"
    return f"{max(1.0, seconds):.0f} s"


def _bytes(count: float) -> str:
    for size, word in ((1e12, "TB"), (1e9, "GB")):
        if count >= size:
            return (
                f"{count / size:,.1f} {word}"
                if count < 100 * size
                else f"{_figure(count / size)} {word}"
            )
    return f"{count / 1e6:,.0f} MB"
