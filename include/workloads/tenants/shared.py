"""Many tenants on one cluster: each is a copy of a topology under its own name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from include.model.errors import SpecError, unknown_name
from include.model.tenant import Intent, Tenant
from include.model.topology import Topology
from include.workloads.layered import MOST_OPERATORS
from include.workloads.topology_file import TenantFile, TenantsFile


def shared(parsed: TenantsFile, load: Callable[[TenantFile], Topology]) -> Topology:
    """One topology of all tenants; their operators and sources carry the tenant's name."""
    parts, operators = [], 0
    for tenant in parsed.tenants:
        base = load(tenant)
        operators += tenant.count * len(base.operators)
        if operators > MOST_OPERATORS:
            problem = f"the tenants up to {tenant.name} have {operators} operators"
            raise SpecError(
                "topology", [f"{problem}, and there may be {MOST_OPERATORS}; take fewer tenants"]
            )
        names = (
            [tenant.name]
            if tenant.count == 1
            else [f"{tenant.name}-{i + 1}" for i in range(tenant.count)]
        )
        parts += [_of_tenant(base, tenant, name) for name in names]
    first = parts[0]
    return Topology(
        name=parsed.name,
        level_unit=parsed.level_unit,
        emission_period_s=first.emission_period_s,
        operators=tuple(op for part in parts for op in part.operators),
        sources=tuple(source for part in parts for source in part.sources),
        edges=tuple(edge for part in parts for edge in part.edges),
        tenants=tuple(tenant for part in parts for tenant in part.tenants),
    )


def _of_tenant(base: Topology, tenant: TenantFile, name: str) -> Topology:
    per_operator = {} if isinstance(tenant.instances, int) else tenant.instances
    if unknown := sorted(set(per_operator) - set(base.operator)):
        raise SpecError("topology", [unknown_name("operator", unknown[0], base.operator)])
    for_all = tenant.instances if isinstance(tenant.instances, int) else None
    return Topology(
        name=base.name,
        level_unit=base.level_unit,
        # Periods of tenants may differ, so items_per_level is per second.
        emission_period_s=1.0,
        operators=tuple(
            replace(
                op,
                name=f"{name}.{op.name}",
                tenant=name,
                runs_in=op.runs_in and f"{name}.{op.runs_in}",
                instances_at_start=per_operator.get(
                    op.name, op.instances_at_start if for_all is None else for_all
                ),
                service_ms=op.service_ms and op.service_ms * tenant.service_scale,
            )
            for op in base.operators
        ),
        sources=tuple(
            replace(
                source,
                name=f"{name}.{source.name}",
                tenant=name,
                items_per_level=source.items_per_level * tenant.rate / base.emission_period_s,
                arrivals=tenant.arrivals,
            )
            for source in base.sources
        ),
        edges=tuple(
            replace(edge, origin=f"{name}.{edge.origin}", target=f"{name}.{edge.target}")
            for edge in base.edges
        ),
        tenants=(
            Tenant(
                name=name,
                intent=Intent(**tenant.intent.model_dump()) if tenant.intent else None,
                joins_s=tenant.joins_s,
            ),
        ),
    )
