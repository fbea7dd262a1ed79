"""Random clusters for hypothesis: what a monitor might report, and rarely what it should not."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from include.model.observation import HostSample, Observation, OperatorSample
from include.testing.builders import (
    a_host,
    a_sample,
    a_setting,
    a_topology,
    an_instance,
    an_observation,
    an_operator,
    idle,
    late,
)

TOPOLOGY = a_topology(
    an_operator("O1", cpu_cores=1.5, memory_mb=900.0),
    an_operator("O2", cpu_cores=0.25, memory_mb=1100.0),
    an_operator("O3", cpu_cores=0.5, memory_mb=700.0),
    an_operator("O4", cpu_cores=0.1, memory_mb=2000.0),
)
SETTING = a_setting(TOPOLOGY, instances_at_peak={"O1": 3, "O2": 2, "O3": 2})
NAMES = TOPOLOGY.operator_names
HOSTS = tuple(f"h{number}" for number in range(1, 6))
ANYWHERE = (*HOSTS, "h9")  # h9 is a host that the monitor never reads


def mostly(usual: Any, *rare: Any) -> st.SearchStrategy[Any]:
    """The usual value in three of four draws or more."""
    return st.sampled_from([usual] * 3 * len(rare) + list(rare))


def samples(name: str) -> st.SearchStrategy[OperatorSample | None]:
    """Absent, idle, late with a short or long queue, or anything."""
    anything = st.builds(
        a_sample,
        st.just(name),
        st.integers(0, 3000),
        st.lists(st.floats(0.0, 20_000.0), max_size=5),
    )
    usual = [idle(name), a_sample(name), late(name), late(name, 300), late(name, 5), None]
    return st.one_of(st.sampled_from(usual), anything)


def hosts(name: str) -> st.SearchStrategy[HostSample]:
    """Up and paid for long, or about to end; some boot, leave or were ordered just now."""
    return st.builds(
        a_host,
        st.just(name),
        ordered_s=mostly(0.0, 3500.0),
        paid_until_s=st.sampled_from([3590.0, 3610.0, 3650.0, 3660.0, 4000.0, 4100.0]),
        up=mostly(True, False),
        releasing=mostly(False, True),
        images=st.frozensets(st.sampled_from(NAMES)),
        cpu_share=st.sampled_from([None, 0.1, 0.25, 0.5, 0.7, 0.85, 0.95]),
    )


running = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.sampled_from(ANYWHERE),
        st.sampled_from([0.0, 60.0, 3500.0]),
        mostly(True, False),
        mostly(False, True),
        st.sampled_from([None, 0.0, 0.2, 0.4, 0.9]),
    ),
    min_size=4,
    max_size=20,
)


@st.composite
def observations(draw: st.DrawFn) -> Observation:
    """What a monitor might report: gaps, overfull and lost hosts, orphaned instances."""
    names = draw(st.lists(st.sampled_from(HOSTS), unique=True, min_size=1))
    sampled = [draw(samples(name)) for name in NAMES]
    return an_observation(
        operators=[sample for sample in sampled if sample is not None],
        hosts=[draw(hosts(name)) for name in names],
        running=[
            an_instance(
                f"i{n}", op, host, started_s=since, ready=ready, stopping=stops, cpu_share=cpu
            )
            for n, (op, host, since, ready, stops, cpu) in enumerate(draw(running), start=1)
        ],
    )
