"""What a controller may change of a job that others rely on: the file `limits.yaml`.

Nothing is changed without such a file, and no operator that it says nothing of.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from include.files.plain_yaml import input_yaml
from include.model.errors import SpecError
from include.workloads.topologies import validation_problems
from include.workloads.topology_file import Strict

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = get_args(Day)
DAY_MIN = 24 * 60


def _minute_of_day(value: Any) -> Any:
    """Minutes since midnight, from text alone: YAML makes 22:30 without quotes the number 1350."""
    hour, _, minute = value.partition(":") if isinstance(value, str) else ("", "", "")
    if hour.isdecimal() and minute.isdecimal() and len(minute) == 2:
        minutes = int(hour) * 60 + int(minute)
        if int(minute) < 60 and minutes <= DAY_MIN:
            return minutes
    raise ValueError(
        "write a time of day from '00:00' to '24:00' in quotes, for example '08:30' "
        f"(without them YAML reads 22:30 as 1350); got {value!r}"
    )


def _known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"unknown time zone {name!r}; write one like Europe/Vienna") from None
    return name


def _some(days: tuple[Day, ...]) -> tuple[Day, ...]:
    """Not by a least length: what is no day counts as missing there, which is told already."""
    if not days:
        raise ValueError("is empty; give at least one value")
    return days


Instances = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(ge=0, le=366 * 86_400)]
MinuteOfDay = Annotated[int, BeforeValidator(_minute_of_day)]


class Bounds(NamedTuple):
    """Instances that an operator may be given, and by which one change may differ from now."""

    least: int
    most: int
    most_at_once: int


class Range(Strict):
    """Bounds of an operator as the file has them; what is left out is that of ``default``."""

    model_config = ConfigDict(frozen=True)

    least: Instances | None = None
    most: Instances | None = None
    most_at_once: Instances | None = None

    def bounds(self, default: Range | None) -> Bounds:
        """Bounds, with the default's where it says nothing. Raises ValueError."""
        values = {**dict(default or ()), **{name: value for name, value in self if value}}
        least, most = values.get("least"), values.get("most")
        problems = []
        if missing := [name for name in Bounds._fields if not values.get(name)]:
            problems.append(f"{' and '.join(missing)} missing here and in default; add it")
        if least and most and least > most:
            problems.append(f"least ({least}) must not be above most ({most})")
        if problems:
            raise ValueError(", and ".join(problems))
        return Bounds(**values)


class QuietHours(Strict):
    """Hours in which nothing changes; those that end on the next day belong to the first."""

    model_config = ConfigDict(frozen=True)

    days: Annotated[tuple[Day, ...], AfterValidator(_some)] = DAYS
    begin: MinuteOfDay = 0
    end: MinuteOfDay = DAY_MIN

    @model_validator(mode="after")
    def _last(self) -> Self:
        if self.begin == self.end:
            raise ValueError("begin and end are the same; leave both out for the whole day")
        return self

    def hold(self, local: datetime) -> bool:
        """Whether a time on the clock of the wall is in them."""
        minute = local.hour * 60 + local.minute
        today, before = DAYS[local.weekday()], DAYS[local.weekday() - 1]
        if self.begin < self.end:
            return today in self.days and self.begin <= minute < self.end
        return (today in self.days and minute >= self.begin) or (
            before in self.days and minute < self.end
        )


class ChangeLimits(Strict):
    """Limits of one job. Every change keeps all of them, whatever a controller wants."""

    model_config = ConfigDict(frozen=True)

    default: Range | None = None
    operators: Annotated[dict[str, Range], Field(default_factory=dict, validate_default=True)]
    changed_instances_per_hour: Instances
    """Of all operators together, in any hour. What was asked for counts, come up or not."""
    between_changes_s: Seconds = 120.0
    reading_age_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 60.0
    """A reading that is older says nothing of the job any more."""
    up_within_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 300.0
    """So long a change may take until the instances run."""
    wait_after_failure_s: Seconds = 300.0
    """After a change that did not come up; twice as long after each further one."""
    longest_wait_s: Seconds = 3600.0
    respect_others_s: Seconds = 1800.0
    """Hands off after somebody else has changed what the job asks for."""
    time_zone: Annotated[str, AfterValidator(_known_zone)] = "UTC"
    quiet: tuple[QuietHours, ...] = ()

    @field_validator("operators")
    @classmethod
    def _ranges_fit(cls, ranges: dict[str, Range], info: ValidationInfo) -> dict[str, Range]:
        if "default" not in info.data:  # it has a problem of its own
            return ranges
        default, problems = info.data["default"], []
        if default is None and not ranges:
            raise ValueError("name an operator, or give the limits of all as default")
        for name, each in {**({"default": default} if default else {}), **ranges}.items():
            try:
                each.bounds(default)
            except ValueError as error:
                problems.append(f"{name}: {error}")
        if problems:
            raise ValueError("; ".join(problems))
        return ranges

    def of(self, operator: str) -> Bounds | None:
        """What an operator may be given; None: it must not be changed."""
        named = self.operators.get(operator, self.default)
        return named.bounds(self.default) if named else None

    def local(self, at_s: float) -> datetime:
        """Seconds since 1970 as a time of the limits' zone."""
        return datetime.fromtimestamp(at_s, UTC).astimezone(ZoneInfo(self.time_zone))

    def quiet_until(self, at_s: float) -> datetime | None:
        """When the hours in which nothing changes end, if it is in such; seconds since 1970."""
        local = self.local(at_s)
        if not self._is_quiet(local):
            return None
        end = local.replace(second=0, microsecond=0)
        for _ in range(8 * DAY_MIN):
            end += timedelta(minutes=1)
            if not self._is_quiet(end):
                return end
        return datetime.max.replace(tzinfo=UTC)

    def _is_quiet(self, local: datetime) -> bool:
        return any(hours.hold(local) for hours in self.quiet)


def load_limits(path: Path) -> ChangeLimits:
    """Limits from a YAML file. Raises SpecError with every problem."""
    try:
        values = input_yaml(path, "limits")
        if not isinstance(values, Mapping):
            raise SpecError(path.name, ["write a mapping, as infra/service/limits.yaml has one"])
        return ChangeLimits.model_validate(values)
    except ValidationError as error:
        raise SpecError(path.name, validation_problems(error)) from error
