"""What a user asks `advise`, as it was typed: nothing is read yet. `require_values` checks it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from include.experiment.prices import PRICE_BOOKS
from include.model.errors import SpecError, unknown_name
from include.workloads.topologies import complaint

FIXED = "fixed"
SUITABLE: tuple[str, ...] = (
    "hpa", "keda", "target-tracking", "flink-autoscaler", "ds2", "drs", "dhalion", "daedalus",
    "btu", "btu-runtime", "threshold", "fugu-local", "fugu-global", "fugu-sarsa",
    "kalman-pure", "kalman-ekf", "henge", "tide", FIXED,
)  # fmt: skip
"""Controllers that are tried where none is asked for; no other one has margins. Left out are
readings of the same rule by other papers, and what needs instances by operator."""
BY_JOB = ("hpa", "keda", "target-tracking", FIXED)
"""What they are configured for scales a job as a whole, also where its operators were recorded."""
BY_BUSY_TIME = ("flink-autoscaler", "ds2")
"""They decide by the time that operators are busy. Backtests with CPU in its place are far off."""
BY_CPU = (
    "hpa", "target-tracking", "fugu-local", "fugu-global", "fugu-sarsa", "kalman-pure",
    "kalman-ekf",
)  # fmt: skip
"""They decide by CPU, in whose place a recording may have busy time."""
OBJECTIVE, PER_SECOND = "latency p95 < 2 s", "per_second"
"""Of an advice of which nobody says what latency is asked for, or what hosts cost."""
WHOLE_WAY, END_TO_END = "end_to_end", "end to end"
"""The option by which an item that is late counts at every operator after it, too, and what a
policy with it is called."""

PLATFORMS = ("kubernetes", "flink", "ecs")
"""What a configuration can be written for; ``flink`` is a job of the Flink Kubernetes operator."""
MOST_INSTANCES = 2000
MOST_SEEDS = 100
LONGEST_S = 3600.0
"""What anybody may say that a start or a restart takes."""
EMPTY: Mapping[str, Any] = {"type": ["string", "null"], "default": None}
"""Of a text that a form may leave empty: Airflow wants every other one to be filled in."""


def _tuning(title: str, **more: Any) -> Any:
    """A field that a form shows when it is asked for."""
    return Field(title=title, json_schema_extra={"section": "Fine tuning", **more})


def _told(what: str) -> WrapValidator:
    """Says what to write in place of a value that cannot be, in our words."""

    def checked(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
        try:
            return check(value)
        except ValidationError:
            raise ValueError(f"write {what}, got {value!r}") from None

    return WrapValidator(checked)


def _known_platform(name: str) -> str:
    if name and name not in PLATFORMS:
        raise ValueError(unknown_name("platform", name, PLATFORMS))
    return name


_Most = Annotated[
    StrictInt, Field(ge=0, le=MOST_INSTANCES), _told(f"a whole number from 0 to {MOST_INSTANCES}")
]
_Count = Annotated[
    StrictInt, Field(ge=1, le=MOST_INSTANCES), _told(f"a whole number from 1 to {MOST_INSTANCES}")
]
_Seeds = Annotated[
    StrictInt, Field(ge=1, le=MOST_SEEDS), _told(f"a whole number from 1 to {MOST_SEEDS}")
]
_Seconds = Annotated[
    StrictFloat,
    Field(ge=0, le=LONGEST_S, allow_inf_nan=False),
    _told(f"seconds from 0 to {LONGEST_S:g}, or leave it out"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceRequest:
    """What a user gives, as a form describes it. A text that was not given is empty."""

    __pydantic_config__ = ConfigDict(use_attribute_docstrings=True)

    recording: Annotated[
        str, Field(title="Recording", min_length=1), _told("the path of a recording")
    ] = ""
    """Path of a CSV, Parquet or OpenMetrics file, of the JSON of a range query, or a Prometheus
    server as prometheus+http://...; docs/recordings.md says what it needs."""
    objective: Annotated[str, Field(title="Objective")] = OBJECTIVE
    """A latency, or a share as in 95 % within 2 s."""
    prices: Annotated[
        str,
        Field(
            title="Prices",
            description=f"The path of a price book, or one of {', '.join(PRICE_BOOKS)}.",
        ),
    ] = PER_SECOND
    columns: Annotated[str, Field(title="Columns", json_schema_extra=EMPTY)] = ""
    """Which column is what, as in time=timestamp,rate=n@per_min; none is needed where names say
    it."""
    edges: Annotated[str, Field(title="Edges", json_schema_extra=EMPTY)] = ""
    """How records flow between the operators that the recording has, as in source>map>sink. None:
    as a folder of record says; else the job is taken as a whole."""
    controllers: Annotated[tuple[str, ...], _tuning("Controllers", examples=list(SUITABLE))] = ()
    """Those to try, also module:Class of your own; none means all of these."""
    max_instances: Annotated[_Most, _tuning("Most instances")] = 0
    """0: the most that were recorded."""
    per_host: Annotated[_Count | None, _tuning("Instances on a host")] = None
    """How many share the host that is paid. None: as recorded, else 1."""
    start_up_s: Annotated[_Seconds | None, _tuning("Start of an instance, s")] = None
    """None: what the recording tells, where it has desired instances."""
    restart_s: Annotated[_Seconds | None, _tuning("Restart by a scaling, s")] = None
    """None: what the recording tells, where it has five scalings and more."""
    seeds: Annotated[_Seeds, _tuning("Seeds")] = 3
    """How many replays each policy has."""
    sort: Annotated[StrictBool, _tuning("Sort rows"), _told("true or false")] = False
    """Sort the recording by time, repeated rows as one."""
    recorded: Annotated[str, _tuning("Recorded under", **EMPTY)] = ""
    """What scaled the job, as the ranking names it or with options: hpa, CPU 35 % or hpa
    target_cpu=0.4."""
    errors: Annotated[str, _tuning("Backtest errors", **EMPTY)] = ""
    """The path of a table that backtest-errors wrote. None: that of Tidebench."""
    platform: Annotated[str, _tuning("Platform", **EMPTY), AfterValidator(_known_platform)] = ""
    """What to paste is for: kubernetes, flink, ecs. None: by recording and prices."""
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Of controllers that are tried once, with these options in place of the settings that are
    tried by default."""


def require_values(request: AdviceRequest, source: str, called: Callable[[str], str] = str) -> None:
    """Raise SpecError with every value that cannot be, by what its field is ``called``."""
    try:
        TypeAdapter(AdviceRequest).validate_python(asdict(request))
    except ValidationError as error:
        wrong = [complaint(item, called(str(item["loc"][0]))) for item in error.errors()]
        raise SpecError(source, wrong) from None
