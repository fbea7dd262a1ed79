"""YAML to Topology: the only place that parses a topology file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from include.model.errors import SpecError, unknown_name
from include.model.tenant import Intent, Tenant
from include.model.topology import Edge, Operator, Source, Topology

HERE = Path(__file__).parent
# The same language, read ten times as fast where libyaml is there.
LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
SHARES_PER_CORE = 1024


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Source(_Strict):
    label: str
    items_per_level: float
    size_bytes: int = 0


class _Operator(_Strict):
    label: str
    slo_ms: float
    cpu_shares: float
    memory_mb: float
    storage_mb: float = 0.0
    stateful: bool = False
    state_mb: float = Field(default=0.0, ge=0)
    instances: int = Field(default=1, ge=1)
    service_ms: float | None = Field(default=None, gt=0)


class _Edge(_Strict):
    origin: str = Field(alias="from")
    target: str = Field(alias="to")
    out: Annotated[str, Field(coerce_numbers_to_str=True, pattern=r"^\d+(/\d+)?$")] = "1"

    def edge(self) -> Edge:
        items_out, _, items_in = self.out.partition("/")
        return Edge(
            origin=self.origin,
            target=self.target,
            items_out=int(items_out),
            items_in=int(items_in or 1),
        )


class RunWith(_Strict):
    """What runs of a topology take unless their spec says otherwise; see the spec's fields."""

    testbed: str | None = None
    flavor: str | None = None
    calibration: str | None = None
    patterns: list[Any] | None = None
    btus_min: list[float] | None = None
    duration_min: float | None = None
    monitor_every_s: float | None = None
    hosts: int | None = None
    max_hosts: int | None = None
    price_books: list[str] | None = None


class _Topology(_Strict):
    name: str = Field(pattern=r"^[a-z0-9_]+$")
    level_unit: str = "level"
    emission_period_s: float
    sources: dict[str, _Source]
    operators: dict[str, _Operator]
    edges: list[_Edge]
    run_with: RunWith = RunWith()


class _Intent(_Strict):
    max_utility: float = 1.0
    latency_ms: float | None = None
    juice: float | None = None
    tail: bool = False
    points: tuple[tuple[float, float], ...] = ()


class _Tenant(_Strict):
    """``count`` above 1 makes as many tenants, named ``<name>-1`` and so on."""

    name: str = Field(pattern=r"^[a-z0-9_]+$")
    topology: str
    count: int = Field(default=1, ge=1)
    intent: _Intent | None = None
    arrivals: dict[str, Any] = {}
    joins_s: float = Field(default=0.0, ge=0)
    rate: float = Field(default=1.0, gt=0)
    """Times the items of the topology's sources."""
    instances: int | dict[str, int] = {}
    """At the start: one number for all operators, or by operator."""
    service_scale: float = Field(default=1.0, gt=0)


class _Tenants(_Strict):
    name: str = Field(pattern=r"^[a-z0-9_]+$")
    level_unit: str = "level"
    tenants: list[_Tenant] = Field(min_length=1)
    run_with: RunWith = RunWith()


def read_yaml(text: str) -> Any:
    """Plain values from YAML text. Raises yaml.YAMLError when it is none."""
    return yaml.load(text, Loader=LOADER)  # a safe loader either way


def _based_on(raw: Any, seen: tuple[str, ...] = ()) -> Any:
    """Fill in what a file takes over from the topology it names as ``based_on``.

    Fields of sources, operators and edges are overridden one by one; an edge is known by its
    two ends. Raises SpecError when the base is unknown or leads back to itself.
    """
    if not isinstance(raw, dict) or "based_on" not in raw:
        return raw
    base_name = str(raw["based_on"])
    if base_name not in topology_names() or base_name in seen:
        known = [name for name in topology_names() if name not in seen]
        raise SpecError("topology", [f"based_on: {unknown_name('topology', base_name, known)}"])
    text = (HERE / f"{base_name}.yaml").read_text(encoding="utf-8")
    merged = dict(_based_on(read_yaml(text), (*seen, base_name)))
    for key, value in raw.items():
        if key in ("sources", "operators") and isinstance(value, dict):
            base = merged[key]
            merged[key] = {
                **base,
                **{k: {**base.get(k, {}), **(v or {})} for k, v in value.items()},
            }
        elif key == "edges" and isinstance(value, list):
            edges = {(edge["from"], edge["to"]): edge for edge in merged[key]}
            edges |= {(edge.get("from"), edge.get("to")): edge for edge in value}
            merged[key] = list(edges.values())
        elif key != "based_on":
            merged[key] = value
    return merged


def topology_names() -> tuple[str, ...]:
    """Names of the topologies that come with the project."""
    return tuple(sorted(path.stem for path in HERE.glob("*.yaml")))


def load_topology(name_or_path: str) -> Topology:
    """A topology by name, or from a YAML file of the user's own.

    Raises SpecError with every problem of the file at once.
    """
    path = Path(name_or_path)
    if path.suffix not in (".yaml", ".yml"):
        path = HERE / f"{name_or_path}.yaml"
        if name_or_path not in topology_names():
            hint = "For a topology of your own give the path of its .yaml file."
            raise SpecError(
                "topology", [f"{unknown_name('topology', name_or_path, topology_names())} {hint}"]
            )
    if not path.is_file():
        raise SpecError("topology", [f"there is no file {path}; check the path"])
    return parse_topology(path.read_text(encoding="utf-8"), source=path.name)


def run_defaults(name_or_path: str) -> Mapping[str, Any]:
    """What the file says its runs take, as fields of a spec; empty when it cannot be read."""
    path = Path(name_or_path)
    if path.suffix not in (".yaml", ".yml"):
        path = HERE / f"{name_or_path}.yaml"
    try:
        raw = _based_on(read_yaml(path.read_text(encoding="utf-8")))
        parsed = RunWith.model_validate(raw.get("run_with", {}))
    except (OSError, SpecError, ValidationError, yaml.YAMLError, AttributeError):
        return {}  # loading the topology says what is wrong
    return parsed.model_dump(exclude_none=True)


def parse_topology(text: str, *, source: str) -> Topology:
    """A topology from YAML text. Raises SpecError with every problem at once."""
    try:
        raw = _based_on(read_yaml(text))
        if isinstance(raw, dict) and "tenants" in raw:
            topology = _shared(_Tenants.model_validate(raw))
        else:
            topology = _single(_Topology.model_validate(raw))
    except yaml.YAMLError as error:
        raise SpecError(source, [f"not readable as YAML: {error}"]) from error
    except ValidationError as error:
        raise SpecError(source, list(validation_problems(error))) from error
    if problems := list(topology.problems()):
        raise SpecError(source, problems)
    return topology


def _shared(parsed: _Tenants) -> Topology:
    """One topology of all tenants; their operators and sources carry the tenant's name."""
    parts = []
    for one in parsed.tenants:
        names = [one.name] if one.count == 1 else [f"{one.name}-{i + 1}" for i in range(one.count)]
        base = load_topology(one.topology)
        parts += [_of_tenant(base, one, name) for name in names]
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


def _of_tenant(base: Topology, one: _Tenant, name: str) -> Topology:
    per_operator = {} if isinstance(one.instances, int) else one.instances
    if unknown := sorted(set(per_operator) - set(base.operator)):
        raise SpecError("topology", [unknown_name("operator", unknown[0], base.operator)])
    for_all = one.instances if isinstance(one.instances, int) else None
    return Topology(
        name=base.name,
        level_unit=base.level_unit,
        # Periods of the tenants may differ; rates are what counts.
        emission_period_s=1.0,
        operators=tuple(
            replace(
                op,
                name=f"{name}.{op.name}",
                tenant=name,
                instances_at_start=per_operator.get(op.name, for_all or op.instances_at_start),
                service_ms=op.service_ms and op.service_ms * one.service_scale,
            )
            for op in base.operators
        ),
        sources=tuple(
            replace(
                source,
                name=f"{name}.{source.name}",
                tenant=name,
                items_per_level=source.items_per_level * one.rate / base.emission_period_s,
                arrivals=one.arrivals,
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
                intent=Intent(**one.intent.model_dump()) if one.intent else None,
                joins_s=one.joins_s,
            ),
        ),
    )


def _single(parsed: _Topology) -> Topology:
    return Topology(
        name=parsed.name,
        level_unit=parsed.level_unit,
        emission_period_s=parsed.emission_period_s,
        operators=tuple(
            Operator(
                name=name,
                label=op.label,
                slo_ms=op.slo_ms,
                cpu_cores=op.cpu_shares / SHARES_PER_CORE,
                memory_mb=op.memory_mb,
                storage_mb=op.storage_mb,
                stateful=op.stateful,
                state_mb=op.state_mb,
                instances_at_start=op.instances,
                service_ms=op.service_ms,
            )
            for name, op in parsed.operators.items()
        ),
        sources=tuple(
            Source(name=name, **source_.model_dump()) for name, source_ in parsed.sources.items()
        ),
        edges=tuple(edge.edge() for edge in parsed.edges),
    )


def validation_problems(error: ValidationError) -> list[str]:
    """Each pydantic complaint as one sentence: where, what, and what was given."""
    problems = []
    for item in error.errors(include_url=False):
        where = ".".join(str(part) for part in item["loc"]) or "the file"
        given = item.get("input")
        shown = "" if isinstance(given, dict | list) else f", got {given!r}"
        message = item["msg"][:1].lower() + item["msg"][1:]
        if item["type"] == "extra_forbidden":
            message, shown = "unknown field; remove it or correct its spelling", ""
        elif item["type"] == "missing":
            message, shown = "missing; add it", ""
        problems.append(f"{where}: {message}{shown}")
    return problems
