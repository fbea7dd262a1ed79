"""Schema of a topology file: a topology, or the tenants of a shared cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from include.model.topology import Edge

MOST = 10**9
MISSPELLED = "misspelled"
"""The kind of error of an unknown field; its context has the ``closest`` known one."""
LEAST_SHARES = 1e-6
"""Of CPU: far fewer are rounded to none at all."""


def spelled(pattern: str, how: str) -> AfterValidator:
    """Validate that text matches a whole pattern; the error message begins with ``how``."""

    def checked(text: str) -> str:
        if re.fullmatch(pattern, text) is None:
            raise ValueError(f"{how}, got {text!r}")
        return text

    return AfterValidator(checked)


Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Name = Annotated[str, spelled("[a-z0-9_]+", "use small letters, digits and _")]


class Plain(BaseModel):
    """Refuses ``yes`` for a number, and numbers that are not finite. Where an unknown field is
    refused, the known one that is closest to it is named."""

    model_config = ConfigDict(allow_inf_nan=False)

    @model_validator(mode="wrap")
    @classmethod
    def _closest_field(cls, value: Any, check: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return check(value)
        except ValidationError as error:
            items = [cls._with_closest(item) for item in error.errors(include_url=False)]
            raise ValidationError.from_exception_data(error.title, items) from None

    @classmethod
    def _with_closest(cls, item: ErrorDetails) -> InitErrorDetails:
        """The same error; that of an unknown field of this model names the closest one."""
        kind: str | PydanticCustomError = item["type"]
        if kind == MISSPELLED:
            kind = PydanticCustomError(MISSPELLED, "{closest}", item["ctx"])
        elif kind == "extra_forbidden" and len(item["loc"]) == 1:
            names = [field.alias or name for name, field in cls.model_fields.items()]
            if close := get_close_matches(str(item["loc"][0]), names, n=1):
                kind = PydanticCustomError(MISSPELLED, "{closest}", {"closest": close[0]})
        details = InitErrorDetails(type=kind, loc=item["loc"], input=item["input"])
        if "ctx" in item and isinstance(kind, str):
            details["ctx"] = item["ctx"]
        return details

    @field_validator("*", mode="before")
    @classmethod
    def _no_yes_for_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        wanted = cls.model_fields[info.field_name or ""].annotation
        values = value if isinstance(value, list) else [value]
        if wanted is not bool and any(isinstance(item, bool) for item in values):
            raise ValueError(f"write a number or a text, got {value!r}")
        return value


class Strict(Plain):
    """Refuses unknown fields, too."""

    model_config = ConfigDict(extra="forbid")


class Bounded(Plain):
    """Refuses numbers above MOST, too."""

    @field_validator("*")
    @classmethod
    def _none_too_large(cls, value: Any) -> Any:
        if (largest := max(_numbers(value), default=0)) > MOST:
            why = "times are counted in whole microseconds"
            raise ValueError(f"must be at most {MOST} ({why}), got {largest!r:.30}")
        return value


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, int | float):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        each = value.values() if isinstance(value, Mapping) else value
        yield from (number for one in each for number in _numbers(one))


class SourceFile(Bounded, Strict):
    """A source; units as in :class:`~include.model.topology.Source`."""

    label: str
    items_per_level: Positive
    size_bytes: int = Field(default=0, ge=0)


class KeyedFile(Bounded, Strict):
    """How items are spread over keys; see the model."""

    keys: int
    exponent: float = 0.0
    state_kb: float = 0.0


class OperatorFile(Bounded, Strict):
    """An operator. A core has 1024 ``cpu_shares``."""

    label: str
    slo_ms: Positive
    cpu_shares: Annotated[float, Field(ge=LEAST_SHARES)]
    memory_mb: Positive
    storage_mb: NotNegative = 0.0
    stateful: bool = False
    state_mb: NotNegative = 0.0
    instances: int = Field(default=1, ge=1)
    service_ms: Positive | None = None
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
        spelled(
            r"[0-9]{1,9}(/[0-9]{1,9})?",
            "write how many items come out per item, such as 2 or 1/3, with 9 digits at most",
        ),
    ] = "1"

    def edge(self) -> Edge:
        items_out, _, items_in = self.out.partition("/")
        return Edge(
            origin=self.origin,
            target=self.target,
            items_out=int(items_out),
            items_in=int(items_in or 1),
        )


class RunWith(Strict):
    """Defaults for fields of specs of this topology."""

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


class TopologyFile(Bounded, Strict):
    """A topology and the defaults of its runs."""

    name: Name
    level_unit: str = "level"
    emission_period_s: Positive
    sources: dict[str, SourceFile]
    operators: dict[str, OperatorFile]
    edges: list[EdgeFile]
    run_with: RunWith = RunWith()


class IntentFile(Bounded, Strict):
    """A tenant's intent; fields as in :class:`~include.model.tenant.Intent`."""

    max_utility: float = 1.0
    latency_ms: float | None = None
    juice: float | None = None
    tail: bool = False
    points: tuple[tuple[float, float], ...] = ()


class TenantFile(Bounded, Strict):
    """A tenant, or ``count`` tenants named ``<name>-1`` and so on."""

    name: Name
    topology: str
    count: int = Field(default=1, ge=1)
    intent: IntentFile | None = None
    arrivals: dict[str, Any] = {}
    joins_s: NotNegative = 0.0
    rate: Positive = 1.0
    """Factor on the items of the topology's sources."""
    instances: int | dict[str, int] = {}
    """Instances at the start, for all operators or by operator."""
    service_scale: Positive = 1.0
    operators: dict[str, dict[str, Any]] = {}
    """Fields of single operators that override the topology's."""


class TenantsFile(Strict):
    """Tenants of a cluster and the defaults of its runs."""

    name: Name
    level_unit: str = "level"
    tenants: list[TenantFile] = Field(min_length=1)
    run_with: RunWith = RunWith()
