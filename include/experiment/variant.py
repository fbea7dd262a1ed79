"""What a run was given beyond names and defaults, as short text that people and SQL group by."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from include.controllers import CONTROLLERS
from include.experiment.options import changed_options
from include.experiment.spec import SHARED, Conditions, RunSpec
from include.workloads import PATTERNS
from include.workloads.topologies import run_defaults

_CONDITIONS = tuple(name for name in SHARED if name not in ("price_books", "summaries_only"))


def variant_of(spec: RunSpec) -> str:
    """Options of the controller that differ from its defaults, sorted by name; often empty.

    Two runs of one controller have the same variant exactly when it was given the same options:
    ``scale_up_above_items=500``, for several ``name=value, name=value``.
    """
    return _text(changed_options(CONTROLLERS[spec.controller].build, spec.controller_options))


def pattern_variant_of(spec: RunSpec) -> str:
    """The same of the pattern; of a file the name."""
    return _text(changed_options(PATTERNS[spec.pattern], spec.pattern_options))


def conditions_of(spec: RunSpec) -> str:
    """Whatever else differs from a default, sorted by name: the same text, the same load.

    Options of the pattern, faults, and what neither the topology's file nor Tidebench would have
    chosen. Pattern, topology, BTU and seed are columns of their own, and a price book changes
    nothing that happens in a run.
    """
    options = changed_options(PATTERNS[spec.pattern], spec.pattern_options)
    faults = {f"faults.{name}": value for name, value in spec.faults.items()}
    usual = Conditions.model_validate({"patterns": spec.pattern, **run_defaults(spec.topology)})
    conditions = {name: getattr(spec, name) for name in _CONDITIONS}
    changed = {name: value for name, value in conditions.items() if value != getattr(usual, name)}
    return _text(changed | options | faults)


def _text(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_word(name, value)}" for name, value in sorted(values.items()))


def _word(name: str, value: Any) -> str:
    if name in ("path", "calibration"):
        return PurePath(value).name
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:.12g}"
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
