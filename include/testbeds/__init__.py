"""The testbeds. To add one: write its package, add the line, run `make test`.

What a testbed needs is imported only when it is built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from include.testbeds.base import Scene, Testbed


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """How a testbed is built, and how long a run on it takes.

    ``real_time``: two hours of arrivals take two hours, so a run is worth a DAG run of its own
    and what it measured is never thrown away unasked. The others are faster.
    """

    build: Callable[[Scene], Testbed]
    real_time: bool


def simulated(scene: Scene) -> Testbed:
    """The embedded default: needs no server."""
    from include.testbeds.simulated.testbed import SimulatedTestbed

    return SimulatedTestbed(scene)


TESTBEDS: Mapping[str, Registration] = {
    "simulated": Registration(build=simulated, real_time=False),
}
