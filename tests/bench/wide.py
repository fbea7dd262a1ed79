"""How time and memory grow with the operators of a topology: a hundred times as many of them.

`python -m tests.bench.wide --minutes 30 --repeats 3 --gate` ends with 1 when an execution costs too
much on the widest. Instances and hosts grow alike: 20,000 on 2,000 for 1,000 operators. Each run is
in a process of its own, in memory, at a constant level under `fixed`; the narrower one is the
longer, so that all have about as many executions. Seconds are of the CPU; the gate looks at ratios.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from include.experiment.run import resolve
from include.experiment.spec import RunSpec
from include.runs.session import Session
from include.testbeds.simulated import kernel
from tests.bench.gates import exit_code
from tests.bench.growth import memory_mb

SIZES = (10, 100, 1000)
COST_AT_MOST = 2.0
"""Of an execution with the most operators, relative to the fewest."""
MINUTES_OF_A_WINDOW = 5.0


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one run: how large it was, CPU seconds, and the peak of the process in MB."""

    instances: int
    hosts: int
    executions: int
    deployed_s: float
    ran_s: float
    kernel_s: float
    peak_mb: float

    @property
    def run_ns(self) -> float:
        """Of an execution: queueing, control, monitoring and recording."""
        return self.ran_s / self.executions * 1e9

    @property
    def kernel_ns(self) -> float:
        """Of an execution: queueing alone."""
        return self.kernel_s / self.executions * 1e9


def a_run(operators: int, minutes: float) -> RunSpec:
    """Everything as the topology says, its level at all times."""
    return RunSpec(
        experiment="wide",
        controller="fixed",
        pattern="constant",
        pattern_options={"level": 8},
        btu_min=MINUTES_OF_A_WINDOW,
        seed=1,
        duration_min=max(1, round(minutes / MINUTES_OF_A_WINDOW)) * MINUTES_OF_A_WINDOW,
        topology=f"layered_{operators}",
        max_hosts=4 * operators,
    )


def cost_here(operators: int, minutes: float) -> Cost:
    """Of a run in this process, which has run a small one to compile everything."""
    _measured(a_run(min(SIZES), MINUTES_OF_A_WINDOW))
    return _measured(a_run(operators, minutes))


def _measured(spec: RunSpec) -> Cost:
    in_kernel_s, advance = [0.0], kernel.advance
    begun_s = time.process_time()
    session = Session.open(resolve(spec))
    session.deploy()
    deployed_s = time.process_time()
    kernel.advance = _timed(advance, in_kernel_s)
    executions = 0
    try:
        for window in range(spec.windows):
            session.run(window * spec.window_s, (window + 1) * spec.window_s)
            queue = session.loop.testbed.take_measurements()["queue"]
            executions += int(queue["completed_items"].sum())
    finally:
        kernel.advance = advance
    ran_s = time.process_time()
    observation = session.loop.testbed.look()
    return Cost(
        instances=len(observation.instances),
        hosts=len(observation.hosts),
        executions=executions,
        deployed_s=deployed_s - begun_s,
        ran_s=ran_s - deployed_s,
        kernel_s=in_kernel_s[0],
        peak_mb=memory_mb("VmHWM"),
    )


def _timed(call: Callable[..., Any], took_s: list[float]) -> Callable[..., Any]:
    def timed(*arguments: Any) -> Any:
        begun_s = time.process_time()
        value = call(*arguments)
        took_s[0] += time.process_time() - begun_s
        return value

    return timed


def cost(operators: int, minutes: float) -> Cost:
    """Of a run in a process of its own."""
    call = [sys.executable, "-m", "tests.bench.wide", "--here", str(operators)]
    done = subprocess.run(
        [*call, "--minutes", str(minutes)], check=True, capture_output=True, text=True
    )
    return Cost(*json.loads(done.stdout))


def middle(costs: Sequence[Cost]) -> Cost:
    """The medians of several runs."""
    return Cost(*(statistics.median(values) for values in zip(*map(astuple, costs), strict=True)))


def show(operators: int, costs: Sequence[Cost]) -> None:
    """Print one line of several runs."""
    cost, runs_ns = middle(costs), [each.run_ns for each in costs]
    print(
        f"{operators:6,} operators {cost.instances:7,} instances {cost.hosts:6,} hosts  "
        f"{cost.executions / 1e6:6.1f} M executions  deployed in {cost.deployed_s:5.2f} s  "
        f"{cost.run_ns:5.0f} ns each [{min(runs_ns):.0f}, {max(runs_ns):.0f}]  "
        f"kernel {cost.kernel_ns:5.0f} ns  {cost.peak_mb:6.0f} MB at its peak",
        flush=True,
    )


def main(arguments: Sequence[str]) -> int:
    """Every size, one line each, and the ratios of the last to the first."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.wide", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30, help="of the widest run")
    parser.add_argument("--repeats", type=int, default=3, help="of each")
    parser.add_argument("--most", type=int, default=max(SIZES), help="operators of the widest")
    parser.add_argument("--gate", action="store_true", help="end with 1 when it costs too much")
    parser.add_argument("--here", type=int, help="one run of so many operators, as JSON")
    options = parser.parse_args(arguments)
    if options.here:
        print(json.dumps(astuple(cost_here(options.here, options.minutes))))
        return 0
    sizes = [size for size in SIZES if size <= options.most]
    costs: dict[int, list[Cost]] = {size: [] for size in sizes}
    for _ in range(options.repeats):  # in turns: a machine is faster at times
        for size in sizes:
            costs[size].append(cost(size, options.minutes * sizes[-1] / size))
    for size in sizes:
        show(size, costs[size])
    first, last = (middle(costs[size]) for size in (sizes[0], sizes[-1]))
    ratios = last.run_ns / first.run_ns, last.kernel_ns / first.kernel_ns
    print(f"{'ratio':<16} {ratios[0]:8.2f} of an execution {ratios[1]:8.2f} of its kernel part")
    names = "an execution on the widest", "the kernel's part of it"
    bounds = [(name, ratio, COST_AT_MOST) for name, ratio in zip(names, ratios, strict=True)]
    return exit_code(bounds, gate=options.gate)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
