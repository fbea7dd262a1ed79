"""Settings of an instance, which the testbed writes into its container as a file."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path

FILE = Path("/run/tidebench/settings.json")
"""In a container. Docker shows the environment of a container to whoever asks, and no file."""
MONITOR = "monitor"
"""Queue of the records of sampled items; the other queues are named after their operators."""
RUN_PATTERN = re.compile(r"[\w.-]+")
"""Safe as a prefix of Redis keys (whose access rules are glob patterns) and as a vhost."""


@dataclass(frozen=True, slots=True)
class Target:
    """An operator that takes ``items_out`` items per ``items_in`` items of this one."""

    operator: str
    items_out: int = 1
    items_in: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of an instance. Raises ValueError for a run that cannot name keys and vhost."""

    operator: str
    instance: str
    run: str
    """Also the prefix of its Redis keys."""
    amqp_url: str = field(repr=False)
    redis_url: str = field(repr=False)
    targets: tuple[Target, ...] = ()
    sample_every_items: int = 10
    """Every so many-th item is reported to the queue ``monitor``; 0 for none."""
    timestamp_resolution_s: float = 0.0
    """Cut of the publication time in reported durations; 0 for none."""
    prefetch: int = 50
    """Items the broker hands out before one is acknowledged."""
    burn: bool = False
    """Whether the operator is a ``relay`` although it has code of its own."""
    service_ms: float = 0.0
    """CPU time per item of the operator ``relay``."""
    heartbeat_s: int = 10
    """A silent peer is given up after about twice this."""

    def __post_init__(self) -> None:
        if not RUN_PATTERN.fullmatch(self.run):
            raise ValueError("a run may have letters, digits, dot, dash and underscore only")

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """The inverse of :meth:`to_json`. Raises ValueError for text that it has not written."""
        try:
            plain = json.loads(text)
            targets = tuple(Target(**target) for target in plain.pop("targets"))
            return cls(targets=targets, **plain)
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error
