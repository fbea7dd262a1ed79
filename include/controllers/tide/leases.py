"""How many instances are worth a place over a billing time unit, and how many hosts hold them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from include.controllers.tide.estimates import Array
from include.controllers.tide.loss import EVERY, Loss
from include.model.host import HostFlavor
from include.model.topology import Operator

FEWER = 3
"""So many hosts fewer than hold what is wanted are thought of: one for what does not fill its host,
more because what is wanted is only nearly the best."""


def share_of_now(btu_s: float, holds_s: float) -> float:
    """How much of a BTU is expected to be like now, where a load holds for ``holds_s`` on average.

    The rest of it is expected to be like the past.
    """
    return holds_s / btu_s * -float(np.expm1(-btu_s / holds_s))


class Expected:
    """Late items per second to expect over a BTU, of which a share is like now and the rest like
    the past, executions per second of shape (times, operators)."""

    def __init__(self, loss: Loss, past: Array, now: float) -> None:
        """``loss`` is that of the load as it is, ``now`` the share of the BTU that is like it."""
        load, times = loss.load, len(past)
        rates = np.concatenate([load.rate_per_s[None, :], past])
        waiting = np.zeros_like(rates)
        waiting[0] = load.waiting
        self._scenes = replace(loss, load=replace(load, rate_per_s=rates, waiting=waiting))
        self._shares = np.array([now if times else 1.0, *[(1 - now) / max(times, 1)] * times])

    def late_per_s(self, instances: Array, rows: slice = EVERY) -> Array:
        """As that of one loss."""
        late = self._scenes.late_per_s(instances[..., None, :], rows)
        # Not by a product of matrices, whose last bits depend on the machine.
        expected: Array = (self._shares[:, None] * late).sum(axis=-2)
        return expected

    def wanted(self, place_per_s: float) -> Array:
        """Instances of every operator that are worth a place; at least one each.

        With them least late items per second are lost, ``place_per_s`` for every place included.
        """
        scenes = self._scenes
        tried = np.sort(candidates(scenes, self._shares[:, None], place_per_s), axis=0)
        # Among equals the fewest: argmin takes the first.
        best = (self.late_per_s(tried) + place_per_s * tried).argmin(axis=0)
        found: Array = np.take_along_axis(tried, best[None, :], axis=0)[0]
        return found


def places_of(flavor: HostFlavor, operators: Sequence[Operator]) -> float:
    """Instances of medium memory that a host holds."""
    mean_mb = sum(op.memory_mb for op in operators) / len(operators)
    return max(1.0, flavor.capacity.memory_mb // mean_mb)


def hosts_worth(
    expected: Expected, place_per_s: float, operators: Sequence[Operator], flavor: HostFlavor
) -> int:
    """Hosts that save more late items per second than they cost, ``place_per_s`` for each place.

    Those that hold what is wanted; and without the last ones, as long as the instances that would
    have to go for one save less than it costs.
    """
    instances = expected.wanted(place_per_s)
    hosts = hosts_for(instances, operators, flavor)
    late = expected.late_per_s(instances)
    price_per_s = place_per_s * places_of(flavor, operators)
    needs_mb = np.array([op.memory_mb for op in operators])

    def fit_on_fewer() -> bool:
        fewer_mb = (hosts - 1) * flavor.capacity.memory_mb
        return (instances * needs_mb).sum() <= fewer_mb and hosts_for(
            instances, operators, flavor
        ) < hosts

    for _ in range(min(FEWER, hosts - 1)):
        cost, lost = _cost_of_one(expected, instances, late), 0.0
        while lost < price_per_s and not fit_on_fewer():
            row = int(cost.argmin())
            lost += cost[row]
            instances[row] -= 1
            one = slice(row, row + 1)
            late[one] = expected.late_per_s(instances[one], one)
            cost[one] = _cost_of_one(expected, instances[one], late[one], one)
        if lost >= price_per_s:
            break
        hosts -= 1
    return hosts


def _cost_of_one(expected: Expected, instances: Array, late: Array, rows: slice = EVERY) -> Array:
    """Late items per second that one instance fewer costs; nobody gives its last one."""
    fewer = expected.late_per_s(np.maximum(instances - 1, 1.0), rows)
    return np.where(instances > 1, fewer - late, np.inf)


def candidates(loss: Loss, share: Array, place_per_s: float) -> Array:
    """What may be best at each time: one, just enough, and where one more saves just its price.

    That is so many if every time were like this one, and fewer if only its ``share`` is.
    """
    load = loss.load
    spare = np.sqrt(loss.weight * load.rate_per_s * loss.disturbed * loss.busy / place_per_s)
    tried = [
        np.ones_like(loss.busy[:1]),
        np.floor(loss.busy) + 1,
        np.ceil(loss.busy + spare),
        np.ceil(loss.busy + spare * np.sqrt(share)),
    ]
    found: Array = np.maximum(1.0, np.concatenate(tried))
    return found


def hosts_for(instances: Array, operators: Sequence[Operator], flavor: HostFlavor) -> int:
    """Hosts that first fit decreasing by memory packs them on."""
    room = flavor.capacity
    left_mb, left_cores = np.zeros(0), np.zeros(0)
    alike: Counter[tuple[float, float]] = Counter()
    for op, wanted in zip(operators, instances.tolist(), strict=True):
        alike[op.memory_mb, 0.0 if flavor.cpu_shared else op.cpu_cores] += int(wanted)
    for (need_mb, need_cores), count in sorted(alike.items(), reverse=True):
        fit = _times(left_mb, left_cores, need_mb, need_cores)
        taken = np.diff(np.minimum(np.cumsum(fit), count), prepend=0)
        left_mb, left_cores = left_mb - taken * need_mb, left_cores - taken * need_cores
        rest = count - int(taken.sum())
        if not rest:
            continue
        full = np.array([room.memory_mb]), np.array([room.cpu_cores])
        each = max(1, int(_times(*full, need_mb, need_cores)[0]))
        more = np.full(-(-rest // each), each)
        more[-1] = rest - each * (len(more) - 1)
        left_mb = np.append(left_mb, room.memory_mb - more * need_mb)
        left_cores = np.append(left_cores, room.cpu_cores - more * need_cores)
    return len(left_mb)


def _times(left_mb: Array, left_cores: Array, need_mb: float, need_cores: float) -> Array:
    """How often an instance fits into what is left."""
    by_memory = np.maximum(0.0, left_mb // need_mb)
    if not need_cores:
        return by_memory
    # A host of four cores holds eight instances of half a core, whatever was subtracted before.
    return np.maximum(0.0, np.minimum(by_memory, (left_cores + 1e-9) // need_cores))
