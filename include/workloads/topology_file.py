"""The form of a topology file: one topology, or the tenants of a shared cluster."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
)

from include.model.topology import Edge


def spelled(pattern: str, how: str) -> AfterValidator:
    """Text must match all of a pattern; who wrote something else is told how to, in words."""

    def checked(text: str) -> str:
        if re.fullmatch(pattern, text) is None:
            raise ValueError(f"{how}, got {text!r}")
        return text

    return AfterValidator(checked)


Name = Annotated[str, spelled("[a-z0-9_]+", "use small letters, digits and _")]


class Strict(BaseModel):
    """A field that nobody knows is a mistake of the file, and so is ``yes`` for a number."""

    model_config = ConfigDict(extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _no_yes_for_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        wanted = cls.model_fields[info.field_name or ""].annotation
        values = value if isinstance(value, list) else [value]
        if wanted is not bool and any(isinstance(one, bool) for one in values):
            raise ValueError(f"write a number or a text, got {value!r}")
        return value


class SourceFile(Strict):
    """A source; units as in the model."""

    label: str
    items_per_level: float
    size_bytes: int = 0


class KeyedFile(Strict):
    """How items are spread over keys; see the model."""

    keys: int
    exponent: float = 0.0
    state_kb: float = 0.0


class OperatorFile(Strict):
    """An operator; ``cpu_shares`` are those of a core, 1024 each."""

    label: str
    slo_ms: float
    cpu_shares: float
    memory_mb: float
    storage_mb: float = 0.0
    stateful: bool = False
    state_mb: float = Field(default=0.0, ge=0)
    instances: int = Field(default=1, ge=1)
    service_ms: float | None = Field(default=None, gt=0)
    runs_in: str = ""
    high_volume: bool = False
    keyed: KeyedFile | None = None


class EdgeFile(Strict):
    """From a source or operator to an operator; ``out`` items per item, or "out/in"."""

    origin: str = Field(alias="from")
    target: str = Field(alias="to")
    out: Annotated[
        str,
        Field(coerce_numbers_to_str=True),
        spelled(r"[0-9]+(/[0-9]+)?", "write how many items come out per item, such as 2 or 1/3"),
    ] = "1"

    def edge(self) -> Edge:
        """The edge of the model."""
        items_out, _, items_in = self.out.partition("/")
        return Edge(
            origin=self.origin,
            target=self.target,
            items_out=int(items_out),
            items_in=int(items_in or 1),
        )


class RunWith(Strict):
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


class TopologyFile(Strict):
    """One topology, and what its runs take."""

    name: Name
    level_unit: str = "level"
    emission_period_s: float
    sources: dict[str, SourceFile]
    operators: dict[str, OperatorFile]
    edges: list[EdgeFile]
    run_with: RunWith = RunWith()


class IntentFile(Strict):
    """What a tenant intends; see the model."""

    max_utility: float = 1.0
    latency_ms: float | None = None
    juice: float | None = None
    tail: bool = False
    points: tuple[tuple[float, float], ...] = ()


class TenantFile(Strict):
    """``count`` above 1 makes as many tenants, named ``<name>-1`` and so on."""

    name: Name
    topology: str
    count: int = Field(default=1, ge=1)
    intent: IntentFile | None = None
    arrivals: dict[str, Any] = {}
    joins_s: float = Field(default=0.0, ge=0)
    rate: float = Field(default=1.0, gt=0)
    """Times the items of the topology's sources."""
    instances: int | dict[str, int] = {}
    """At the start: one number for all operators, or by operator."""
    service_scale: float = Field(default=1.0, gt=0)
    operators: dict[str, dict[str, Any]] = {}
    """Fields of single operators that differ from those of the topology."""


class TenantsFile(Strict):
    """Many tenants on one cluster, and what its runs take."""

    name: Name
    level_unit: str = "level"
    tenants: list[TenantFile] = Field(min_length=1)
    run_with: RunWith = RunWith()
