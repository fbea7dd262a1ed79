"""How long one decision takes on a large cluster, and how that grows from one ten times smaller.

`python -m tests.bench.decisions` prints a row per controller: medians of several decisions on
1,000 operators, 2,000 hosts and 20,000 instances. Every observation is fresh, so nothing that
a controller looks up in it is remembered from the decision before. Names of controllers choose
rows; `--operators 100 --repeats 1` is a cluster of a tenth of that, and one decision. `--mixed`
makes every tenth operator need five times the memory of the others, on hosts that are full. With
`--gate` it ends with 1 when a decision grows faster than the cluster does, beyond what caches take.

Nobody carries these decisions out, so a controller decides the same again. Seconds are of the CPU.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from include.controllers import CONTROLLERS
from include.controllers.base import Setting
from include.model.host import HostFlavor
from include.model.observation import Observation, TenantSample
from include.model.tenant import Intent, Tenant
from include.model.topology import Edge, Source, Topology
from include.testing.builders import a_host, a_sample, an_instance, an_observation, an_operator
from tests.bench.gates import exit_code

HOSTS, INSTANCES = 2, 20
"""Of a cluster, per operator."""
FLAVOR = HostFlavor(name="large", vcpus=16, memory_mb=65536)
CHAIN = 10
"""Operators of one tenant."""
LARGE_MB = 5_000.0
"""What an instance of a large operator needs."""
FULL_MB = 14_336
"""Memory of hosts that have no room for another."""
GROWS_AT_MOST = 40
"""A decision on ten times the cluster. Sorting and the caches make it 5 to 28; what looks at every
instance once for each host or operator, 60 and more."""


def a_topology(operators: int, *, mixed: bool = False) -> Topology:
    """Chains of ten operators, each behind a source of its own and a tenant of its own.

    Where they are ``mixed`` the last of each is large.
    """
    names = [(f"t{i // CHAIN}", f"t{i // CHAIN}.o{i % CHAIN}") for i in range(operators)]
    tenants = dict.fromkeys(tenant for tenant, _ in names)
    edges = [
        Edge(origin=f"{tenant}.source" if name.endswith(".o0") else before, target=name)
        for (tenant, name), (_, before) in zip(names, [("", ""), *names], strict=False)
    ]
    return Topology(
        name="large",
        level_unit="level",
        emission_period_s=1.0,
        operators=tuple(
            an_operator(
                name,
                storage_mb=10.0,
                tenant=tenant,
                service_ms=10.0,
                **({"memory_mb": LARGE_MB} if mixed and name.endswith(f".o{CHAIN - 1}") else {}),
            )
            for tenant, name in names
        ),
        sources=tuple(
            Source(
                name=f"{tenant}.source", label="", items_per_level=1, size_bytes=0, tenant=tenant
            )
            for tenant in tenants
        ),
        edges=tuple(edges),
        tenants=tuple(
            Tenant(name=tenant, intent=Intent(latency_ms=100, max_utility=1 + i % 9))
            for i, tenant in enumerate(tenants)
        ),
    )


def at_some_time(topology: Topology, hosts: int, instances: int, now_s: float) -> Observation:
    """A cluster at work: some operators late, some idle, hosts loaded unevenly, leases ending."""
    draw = random.Random(7)
    names = topology.operator_names
    samples = []
    for name in names:
        late = draw.random() < 0.05
        sample = a_sample(
            name,
            waiting_items=draw.choice((300, 2000)) if late else draw.choice((0, 5, 20)),
            durations_ms=[draw.uniform(1200, 1900) if late else 300.0 for _ in range(5)],
        )
        counts = {"arrived_items": 1000, "completed_items": 990}
        samples.append(structs.replace(sample, **counts, capacity=draw.uniform(0.05, 0.9)))
    seen = an_observation(
        now_s=now_s,
        operators=samples,
        hosts=[
            a_host(
                f"host-{i}",
                flavor=FLAVOR.name,
                paid_until_s=now_s + draw.uniform(1, 600),
                images=frozenset(draw.sample(names, min(20, len(names)))),
                cpu_share=draw.uniform(0.1, 0.95),
                memory_share=0.3,
                runnable=draw.uniform(1, 20),
            )
            for i in range(hosts)
        ],
        running=[
            an_instance(
                f"{names[i % len(names)]}-{i}",
                names[i % len(names)],
                f"host-{(i * 7) % hosts}",
                started_s=float(i % 100),
                cpu_share=draw.uniform(0.1, 0.95),
                memory_share=0.5,
            )
            for i in range(instances)
        ],
    )
    tenants = {
        tenant.name: TenantSample(
            tenant=tenant.name,
            latency_ms=draw.uniform(50, 150),
            tail_latency_ms=draw.uniform(100, 300),
            juice=draw.uniform(0.8, 1.0),
        )
        for tenant in topology.tenants
    }
    return replace(seen, tenants=tenants)


def decision_s(
    name: str, operators: int, repeats: int, *, mixed: bool = False
) -> tuple[float, int]:
    """The median CPU time of one decision, and the most steps that one had."""
    topology = a_topology(operators, mixed=mixed)
    hosts, instances = HOSTS * operators, INSTANCES * operators
    flavor = replace(FLAVOR, memory_mb=FULL_MB) if mixed else FLAVOR
    setting = Setting(topology=topology, flavor=flavor, btu_s=600.0, seed=1, max_hosts=10 * hosts)
    controller = CONTROLLERS[name].build(setting=setting)
    memory = controller.initial_memory()
    took_s, steps = [], 0
    for turn in range(repeats):
        now_s = 3600.0 + turn * controller.interval_s
        observation = at_some_time(topology, hosts, instances, now_s)
        start_s = time.process_time()
        memory, decided = controller.decide(memory, observation)
        took_s.append(time.process_time() - start_s)
        steps = max(steps, len(decided.steps))
    return statistics.median(took_s), steps


def main(arguments: Sequence[str]) -> int:
    """One row per controller: time at full size, growth from a tenth of it, steps decided."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.decisions", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="CONTROLLER", help="all when none is named")
    parser.add_argument("--operators", type=int, default=1000, help="100 or more, in hundreds")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument(
        "--mixed", action="store_true", help="every tenth operator is large, hosts are full"
    )
    parser.add_argument("--gate", action="store_true", help="end with 1 when growth is too fast")
    options = parser.parse_args(arguments)
    names = options.names or list(CONTROLLERS)
    size, tenth = options.operators, options.operators // 10
    print(f"{'one decision, medians of ' + str(options.repeats):<30} "
          f"{size * INSTANCES:8,} instances {tenth * INSTANCES:10,} "
          f"{'growth':>8} {'most steps':>11}")  # fmt: skip
    growth = []
    for name in names:
        large_s, steps = decision_s(name, size, options.repeats, mixed=options.mixed)
        small_s, _ = decision_s(name, tenth, options.repeats, mixed=options.mixed)
        factor = large_s / small_s
        growth.append((f"{name}, ten times the cluster", factor, GROWS_AT_MOST))
        print(f"{name:<30} {large_s * 1e3:15.1f} ms {small_s * 1e3:7.1f} ms "
              f"{factor:7.1f}x {steps:11d}", flush=True)  # fmt: skip
    return exit_code(growth, gate=options.gate)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
