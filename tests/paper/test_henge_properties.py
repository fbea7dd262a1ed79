"""What must hold of Henge whatever its jobs feel: on random stories, round by round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from pydantic import TypeAdapter

from include.controllers.henge.controller import Henge
from include.controllers.henge.memory import HengeMemory
from include.model.decision import Reason, StartInstance, StopInstance
from include.model.host import HostFlavor
from include.testing.builders import (
    a_host,
    a_sample,
    a_setting,
    a_topology,
    an_instance,
    an_observation,
    an_operator,
)
from tests.henge_world import World

JOBS = {"A": 10.0, "B": 20.0, "C": 20.0}
latencies = st.sampled_from([50.0, 100.0, 150.0, 400.0])
capacities = st.sampled_from([0.05, 0.2, 0.31, 0.6, 1.0])
configs = st.fixed_dictionaries(
    {
        "latency_ms": st.fixed_dictionaries(dict.fromkeys(JOBS, latencies)),
        "capacity": st.fixed_dictionaries(
            {f"{job}.{name}": capacities for job in JOBS for name in ("first", "second")}
        ),
        "load": st.sampled_from([1.0, 9.0, 9.0]),
        "unread": st.sampled_from([set(), set(), set(), set(), {"B"}, set(JOBS)]),
        "rounds": st.sampled_from([1, 7, 8]),
    }
)
SIGNS = ("misses its SLO", "meets its SLO", "back to the", "converged", "no statistics")
QUIET = {f"{job}.{name}": 0.1 for job in JOBS for name in ("first", "second")}
HARMFUL = [  # A reconfiguration of A that harms B on a congested cluster.
    {
        "latency_ms": {"A": 200.0, "B": b_ms, "C": 100.0},
        "capacity": {**QUIET, "A.first": 0.6},
        "load": 9.0,
        "unread": set(),
        "rounds": 7,
    }
    for b_ms in (100.0, 300.0)
]
anything = st.lists(configs, min_size=2, max_size=6)
stories = anything | anything.map(lambda story: [*HARMFUL, *story])
some = settings(max_examples=25, derandomize=True, deadline=None)


def replayed(story: list[dict[str, object]]) -> Iterator[World]:
    """The world after each round of a story."""
    world = World(JOBS, start_s=0, fresh_data_s=60)
    for config in story:
        for name in ("latency_ms", "capacity", "load", "unread"):
            setattr(world, name, config[name])
        for _ in range(int(str(config["rounds"]))):
            world.changed = world.round()
            yield world


@some
@given(stories)
def test_it_never_acts_blind_and_takes_only_by_reduction_or_reversion(
    story: list[dict[str, object]],
) -> None:
    for world in replayed(story):
        assert not (world.unread and world.changed), "it acted without statistics"
        for step in world.decision.steps:
            assert any(char.isdigit() for char in step.because)
            if isinstance(step.action, StopInstance):
                assert step.reason in (Reason.SLO_MET, Reason.BEST_CONFIGURATION)
        assert all(world.number(name) >= 1 for name in world.topology.operator_names)


def test_the_stories_reach_every_move() -> None:
    """Guards the test above: an invariant that is never tried proves nothing."""
    reached = set()

    @settings(max_examples=100, derandomize=True, deadline=None, database=None)
    @given(stories)
    def search(story: list[dict[str, object]]) -> None:
        for world in replayed(story):
            texts = [world.decision.because, *(step.because for step in world.decision.steps)]
            reached.update(sign for sign in SIGNS if any(sign in text for text in texts))

    search()
    assert reached == set(SIGNS)


@some
@given(stories)
def test_memory_survives_a_window_border_at_any_round(story: list[dict[str, object]]) -> None:
    stored = TypeAdapter(HengeMemory)
    for world in replayed(story):
        assert stored.validate_json(stored.dump_json(world.memory)) == world.memory


@settings(some, max_examples=15)
@given(configs)
def test_under_constant_conditions_it_comes_to_rest(config: dict[str, object]) -> None:
    world = World(JOBS, start_s=0)
    world.latency_ms = config["latency_ms"]  # type: ignore[assignment]
    world.capacity = config["capacity"]  # type: ignore[assignment]
    world.until(1500)
    assert world.memory.converged
    assert world.until(5400) == []


def test_a_topology_without_tenants_is_one_job_with_the_slos_of_its_operators() -> None:
    """HENGE-ADAPTER: the operator that is latest against its o_slo speaks for the job."""
    flavor = HostFlavor(name="small", vcpus=4, memory_mb=64_000, cpu_shared=True)
    topology = a_topology(an_operator("O1"), an_operator("O2"))
    henge = Henge(setting=a_setting(topology, flavor=flavor, hosts_at_start=1), start_s=0)
    observation = an_observation(
        operators=[a_sample("O1"), a_sample("O2", durations_ms=(2000.0,) * 5)],
        hosts=[a_host("h1")],
        running=[an_instance("i1", "O1", cpu_share=0.2), an_instance("i2", "O2", cpu_share=0.6)],
    )
    memory, decision = henge.decide(henge.initial_memory(), observation)
    assert memory.utilities == {"chain": 0.5}
    assert decision.actions == (StartInstance("O2", "h1"),) * 10
    unknown = [
        structs.replace(instance, cpu_share=None) for instance in observation.instances.values()
    ]
    blind = replace(observation, instances={instance.instance: instance for instance in unknown})
    assert henge.decide(henge.initial_memory(), blind)[1].actions == ()
