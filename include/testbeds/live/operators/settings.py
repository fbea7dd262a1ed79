"""The environment of a container, parsed once; the package's docstring lists it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SECRETS_FILE = "/run/tidebench/secrets.json"
REQUIRED = ("TB_OPERATOR", "TB_INSTANCE", "TB_RUN", "TB_AMQP_URL", "TB_REDIS_URL")
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
    """Settings of an instance."""

    operator: str
    instance: str
    run: str
    amqp_url: str = field(repr=False)
    redis_url: str = field(repr=False)
    targets: tuple[Target, ...] = ()
    sample_every_items: int = 10
    timestamp_resolution_s: float = 0.0
    prefetch: int = 50
    slo_ms: float = 1000.0
    service_ms: float = 0.0
    health_port: int = 0
    heartbeat_s: int = 10
    code: str = ""


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Settings of an environment. Raises ValueError listing all problems."""
    env = {**_secrets(environment.get("TB_SECRETS", SECRETS_FILE)), **environment}
    problems = [f"{name} is missing" for name in REQUIRED if not env.get(name)]
    if not RUN_PATTERN.fullmatch(env.get("TB_RUN", "") or "-"):
        problems.append("TB_RUN may have letters, digits, dot, dash and underscore only")
    numbers: dict[str, Any] = {}
    for name, variable, parse in (
        ("sample_every_items", "TB_SAMPLE_EVERY", int),
        ("timestamp_resolution_s", "TB_TIMESTAMP_RESOLUTION_S", float),
        ("prefetch", "TB_PREFETCH", int),
        ("slo_ms", "TB_SLO_MS", float),
        ("service_ms", "TB_SERVICE_MS", float),
        ("health_port", "TB_HEALTH_PORT", int),
        ("heartbeat_s", "TB_HEARTBEAT_S", int),
    ):
        try:
            if variable in env:
                numbers[name] = parse(env[variable])
        except ValueError:
            problems.append(f"{variable} is no number: {env[variable]!r}")
    targets: tuple[Target, ...] = ()
    try:
        targets = parse_targets(env.get("TB_TARGETS", "[]"))
    except (ValueError, KeyError, TypeError) as error:
        problems.append(f'TB_TARGETS is no list of {{"operator", "out", "in"}}: {error!r}')
    if problems:
        raise ValueError("; ".join(problems))
    return Settings(
        operator=env["TB_OPERATOR"],
        instance=env["TB_INSTANCE"],
        run=env["TB_RUN"],
        amqp_url=env["TB_AMQP_URL"],
        redis_url=env["TB_REDIS_URL"],
        targets=targets,
        code=env.get("TB_CODE", ""),
        **numbers,
    )


def parse_targets(text: str) -> tuple[Target, ...]:
    """Targets from the JSON of ``TB_TARGETS``."""
    return tuple(
        Target(str(target["operator"]), int(target.get("out", 1)), int(target.get("in", 1)))
        for target in json.loads(text)
    )


def _secrets(path: str) -> dict[str, str]:
    file = Path(path)
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
