"""What the autoscalers in use today look at, in a line per operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import structs

from include.model.observation import InstanceSample, Observation, OperatorSample
from include.testing.builders import a_host, a_sample, an_instance, an_observation

Look = tuple[OperatorSample, list[InstanceSample]]


def look(
    name: str = "O1",
    count: int = 1,
    *,
    unready: int = 0,
    cpu: Sequence[float | None] = (),
    waiting: int = 0,
    durations_ms: Sequence[float] = (),
    **sample: Any,
) -> Look:
    """An operator with so many ready and unready instances; ``sample`` are fields of its sample."""
    shares = [*cpu, *([None] * (count - len(cpu)))]
    instances = [
        an_instance(f"{name}-{n}", name, cpu_share=share) for n, share in enumerate(shares)
    ]
    instances += [an_instance(f"{name}-u{n}", name, ready=False) for n in range(unready)]
    return structs.replace(a_sample(name, waiting, durations_ms), **sample), instances


def flowing(
    name: str, rows: Sequence[tuple[int, int, float | None]], count: int = 1, **sample: Any
) -> list[Look]:
    """An operator before anything came, and then by row: items that arrived and were completed
    since the look before, and the share of its time that it worked."""
    arrived = done = 0
    looks = []
    for more, completed, busy in [(0, 0, None), *rows]:
        arrived, done = arrived + more, done + completed
        counts = {"arrived_in_all": arrived, "completed_in_all": done, "waiting": arrived - done}
        shares = {"cpu": [busy] * count, "busy_share": busy, "busiest_share": busy}
        looks.append(look(name, count, **counts, **shares, **sample))
    return looks


def looked(now_s: float, *looks: Look) -> Observation:
    """These operators at this time, all on one host that nobody minds being full."""
    return an_observation(
        now_s=now_s,
        operators=[sample for sample, _ in looks],
        hosts=[a_host("h1")],
        running=[one for _, instances in looks for one in instances],
    )


def numbers(targets: Mapping[str, Any]) -> dict[str, int]:
    """The instances that a rule asks for."""
    return {name: target.instances for name, target in targets.items()}


def asked_for(scaler: Any, *observations: Observation) -> list[dict[str, int]]:
    """The instances that a rule that begins asks for after each of these observations."""
    memory, asked = scaler.initial_memory(), []
    for observation in observations:
        memory, targets = scaler.targets(memory, observation)
        asked.append(numbers(targets))
    return asked


def instances_under(
    load: Callable[[int], int], scaler: Any, minutes: int, *, each: int = 1200, lag: int = 0
) -> list[int]:
    """Those of O1 after each minute of so many items, of which an instance does ``each``;
    ``lag`` items wait beside those that could not be done."""
    memory, arrived, done, waiting = scaler.initial_memory(), 0, 0, 0
    instances, counts = 1, []
    for minute in range(minutes):
        more = load(minute)
        less = min(waiting + more, each * instances)
        arrived, done, waiting = arrived + more, done + less, waiting + more - less
        share = less / (each * instances)
        o1 = look(
            "O1", instances, waiting=waiting + lag, arrived_in_all=arrived, completed_in_all=done,
            busy_share=share, busiest_share=share,
        )  # fmt: skip
        memory, targets = scaler.targets(memory, looked(60.0 * minute, o1))
        instances = numbers(targets).get("O1", instances)
        counts.append(instances)
    return counts
