"""What is left on hosts is remembered: whatever was done before, `best` is that of new ones."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from include.controllers.host_selection import CACHE_FACTOR
from include.controllers.placement import FreeCapacities, FreeCapacity, HostChoice
from include.model.host import Capacity
from include.model.topology import Operator
from include.testing.builders import an_operator
from tests.builders import free_capacities

HOST = Capacity(4.0, 8000.0)
OPERATORS = [
    an_operator(name="small", cpu_cores=0.5, memory_mb=500.0),
    an_operator(name="same_size", cpu_cores=0.5, memory_mb=500.0),
    an_operator(name="large", cpu_cores=2.0, memory_mb=1500.0),
]

operators = st.sampled_from(OPERATORS)
steps = st.lists(
    st.tuples(
        st.sampled_from(["add", "place", "remove", "leave", "copy", "ask"]),
        operators,
        st.integers(0, 20),
    ),
    max_size=40,
)


def suitability(room: FreeCapacity, op: Operator) -> float:
    """Algorithm 2 as it is printed, but for what fits nowhere."""
    after, total = room.left.less(op), room.total
    difference = abs(after.cpu_cores / total.cpu_cores - after.memory_mb / total.memory_mb)
    value = difference / room.left.instances_of(op)
    return value * CACHE_FACTOR if op.name in room.images else value


def as_defined(
    rooms: FreeCapacities, op: Operator, *, only_up: bool = False, leaving: str | None = None
) -> HostChoice | None:
    """Algorithm 2 room by room."""
    fitting = {
        room.host: suitability(room, op)
        for room in rooms.values()
        if (room.up or not only_up) and room.host != leaving and room.left.fits(op)
    }
    if not fitting:
        return None
    host = min(fitting, key=fitting.__getitem__)
    return HostChoice(host, fitting[host])


def change(rooms: FreeCapacities, step: str, op: Operator, number: int) -> None:
    hosts = list(rooms)
    if step == "add":
        name = f"host-{len(rooms.place)}"
        images = frozenset({op.name} if number % 3 == 0 else ())
        rooms[name] = FreeCapacity(name, HOST, HOST, images, up=number % 2 == 0)
    elif hosts and step == "place":
        host = hosts[number % len(hosts)]
        room = rooms[host]
        expected = replace(room, left=room.left.less(op), images=room.images | {op.name})
        if number % 2:
            rooms.reserve(host, op)
        else:
            rooms[host] = expected
        assert rooms[host] == expected
    elif hosts and step == "remove":
        host = hosts[number % len(hosts)]
        rooms[host] = rooms[host].without_one(op)
    elif hosts and step == "leave":
        del rooms[hosts[number % len(hosts)]]


@settings(deadline=None)
@given(steps)
def test_the_best_room_is_that_of_the_definition_after_any_changes(
    changes: list[tuple[str, Operator, int]],
) -> None:
    rooms = free_capacities(
        FreeCapacity(f"host-{i}", HOST, HOST, frozenset({"large"} if i else ()), up=i != 1)
        for i in range(3)
    )
    kept: list[FreeCapacities] = []
    for step, op, number in changes:
        change(rooms, step, op, number)
        if step == "copy":
            kept.append(rooms)
            rooms = rooms.copy()
        for each in (rooms, *kept):
            assert each.best(op, CACHE_FACTOR) == as_defined(each, op)
            leaving = f"host-{number % 4}"
            best = each.best(op, CACHE_FACTOR, leaving=leaving)
            assert best == as_defined(each, op, leaving=leaving)
            best = each.best(op, CACHE_FACTOR, only_up=True, leaving=leaving)
            assert best == as_defined(each, op, only_up=True, leaving=leaving)


@settings(deadline=None)
@given(steps, st.lists(operators, max_size=40), st.booleans())
def test_many_instances_get_the_places_that_asking_for_each_gives(
    changes: list[tuple[str, Operator, int]], wanted: list[Operator], only_up: bool
) -> None:
    """Of hosts in any state; and what is left afterwards is the same, too."""
    together = free_capacities(
        FreeCapacity(f"host-{i}", HOST, HOST, frozenset({"large"} if i else ()), up=i != 1)
        for i in range(3)
    )
    for step, op, number in changes:
        change(together, step, op, number)
    each, untouched = together.copy(), together.copy()
    hosts = []
    for op in wanted:
        best = each.best(op, only_up=only_up)
        hosts.append(best.host if best else None)
        if best:
            each.reserve(best.host, op)
    before = dict(together)
    assert together.reserve_best(wanted, only_up=only_up) == hosts
    assert dict(together) == dict(each)
    assert dict(untouched) == before
    for op in OPERATORS:
        assert together.best(op) == each.best(op) == as_defined(together, op)
