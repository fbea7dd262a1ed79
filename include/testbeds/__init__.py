"""The testbeds. To add one: write its package, add the line, run `make test`.

What a testbed needs is imported only when it is built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from include.testbeds.base import Scene, Testbed


def simulated(scene: Scene) -> Testbed:
    """The embedded default: needs no server."""
    from include.testbeds.simulated.testbed import SimulatedTestbed

    return SimulatedTestbed(scene)


TESTBEDS: Mapping[str, Callable[[Scene], Testbed]] = {"simulated": simulated}
