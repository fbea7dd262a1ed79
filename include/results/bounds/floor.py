"""The floor: the least cost of hosts that do all work by the end, however long items wait.

A mixed-integer program over steps: leases begin at steps and last whole BTUs, a host that comes up
gives nothing while it boots, at least one instance of every operator runs at all times, instances
may be fractions, items wait as long as they like, and an operator gets what those before it have
done. Every run that processes all that arrives pays at least the floor, up to the randomness of
service times. It says nothing of compliance: compare the cover.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array, csr_array, eye_array, hstack, kron, vstack

from include.model.host import HostFlavor, PriceBook
from include.results.bounds.demand import Demand, room_of


@dataclass(frozen=True, slots=True)
class Floor:
    """A lower bound of the cost, and the cost of the best leases found (None where none were).

    They are equal once the solver has finished.
    """

    low: float
    high: float | None


def floor_of(
    demand: Demand, flavor: HostFlavor, book: PriceBook, boot_s: float, within_s: float
) -> Floor:
    """The floor under a price book whose BTU is whole steps; ``boot_s`` pass before a host gives
    anything, and the solver stops after ``within_s`` seconds.

    Variables, each by step: BTUs that begin, hosts that come up, executions by node until then,
    and instances by operator.
    """
    steps, nodes, operators = demand.steps, len(demand.inside), len(demand.operators)
    per_btu = round(book.btu_s / demand.step_s)
    each = eye_array(steps, format="csr")
    before = eye_array(steps, k=-1, format="csr")
    up = csr_array(sum(eye_array(steps, k=-back) for back in range(min(per_btu, steps))))
    waits = min(1.0, boot_s / demand.step_s)
    offered, needs = room_of(flavor, demand)
    sizes = (steps, steps, nodes * steps, operators * steps)

    def rows(*blocks: tuple[int, csr_array]) -> csr_array:
        """Constraints that are made of these blocks of variables; the others are 0."""
        count = blocks[0][1].shape[0]
        by_variable = dict(blocks)
        return csr_array(
            hstack([by_variable.get(i, coo_array((count, size))) for i, size in enumerate(sizes)])
        )

    # Hosts that come up: at least as many as there are more; those of the first step are ready.
    first = np.zeros(steps)
    first[0] = np.inf
    rises = LinearConstraint(rows((0, up - before @ up), (1, -each)), ub=first)
    room = LinearConstraint(
        vstack(
            [
                rows((0, -up * has), (1, each * (waits * has)), (3, kron(need[None, :], each)))
                for has, need in zip(offered, needs, strict=True)
            ]
        ),
        ub=0,
    )
    change = each - before
    busy = kron(csr_array(demand.work_s / demand.step_s), change)
    served = LinearConstraint(
        rows((2, csr_array(busy)), (3, -eye_array(operators * steps, format="csr"))), ub=0
    )
    grows = LinearConstraint(rows((2, csr_array(kron(eye_array(nodes), -change)))), ub=0)
    arrives = LinearConstraint(
        rows((2, csr_array(kron(csr_array(np.eye(nodes) - demand.inside), each)))),
        ub=np.cumsum(demand.outside, axis=1).ravel(),
    )
    done = np.zeros((nodes, steps))
    done[:, -1] = demand.arriving.sum(axis=1) * (1 - 1e-9)
    constraints = [rises, room, served, grows, arrives]
    if flavor.cpu_shared:  # instances are promised more than there is, and work shares it
        per_execution = (demand.busy_cores @ demand.work_s)[None, :]
        cores = kron(csr_array(per_execution / demand.step_s), change)
        blocks = (0, -up * flavor.vcpus), (1, each * (waits * flavor.vcpus)), (2, csr_array(cores))
        constraints.append(LinearConstraint(rows(*blocks), ub=0))
    solution = milp(
        np.concatenate([np.ones(steps), np.zeros(sum(sizes[1:]))]),
        constraints=constraints,
        integrality=np.concatenate([np.ones(steps), np.zeros(sum(sizes[1:]))]),
        bounds=Bounds(
            np.concatenate([np.zeros(2 * steps), done.ravel(), np.ones(operators * steps)]), np.inf
        ),
        options={"time_limit": within_s},
    )
    low = 0.0 if solution.mip_dual_bound is None else float(np.ceil(solution.mip_dual_bound - 1e-6))
    high = None if solution.x is None else round(solution.fun) * book.price_per_btu
    return Floor(low * book.price_per_btu, high)
