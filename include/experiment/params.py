"""The trigger form of the DAG `experiment`: what can be filled in, and how it becomes a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from include.arrivals import PATTERNS
from include.controllers import CONTROLLERS
from include.experiment.prices import PRICE_BOOKS
from include.experiment.spec import RunSpec, parse_spec
from include.model.errors import SpecError
from include.testbeds import TESTBEDS
from include.testbeds.flavors import FLAVORS
from include.topologies.load import topology_names

MAX_MINUTES = 20160


def experiment_params() -> dict[str, dict[str, Any]]:
    """Per param, the keyword arguments of an Airflow ``Param``: default and JSON schema."""
    return {
        **_what_runs(),
        **_where_it_runs(),
        **_fine_tuning(),
    }


def run_from_params(params: Mapping[str, Any]) -> RunSpec:
    """The run that a filled-in form asks for. Raises SpecError with every problem at once.

    Names that no registry knows are reported later, by `resolve`, with everything else that
    needs looking up.
    """
    known = experiment_params()
    values = {name: params.get(name, known[name]["default"]) for name in known}
    pattern = {"name": values["pattern"], **_mapping("pattern_options", values)}
    if values["trace"]:
        pattern["path"] = str(Path(values["trace"]).expanduser())
    spec = parse_spec(
        {
            "name": values["experiment"],
            "controllers": [
                {"name": values["controller"], **_mapping("controller_options", values)}
            ],
            "patterns": [pattern],
            "btus_min": [values["btu_min"]],
            "seeds": [values["seed"]],
            "duration_min": values["duration_min"],
            "topology": values["topology"],
            "testbed": values["testbed"],
            "flavor": values["flavor"],
            "calibration": values["calibration"] or "",
            "faults": _mapping("faults", values),
            "price_books": list(values["price_books"]),
        },
        source="the params",
    )
    return next(iter(spec.points()))


def _mapping(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    value = values[name] or {}
    if isinstance(value, str):
        try:
            value = json.loads(value or "{}")
        except ValueError as error:
            raise SpecError("the params", [f"{name} is not JSON: {error}"]) from error
    if not isinstance(value, Mapping):
        raise SpecError("the params", [f"{name} must be a mapping of options, got {value!r}"])
    return dict(value)


def _what_runs() -> dict[str, dict[str, Any]]:
    section = "What runs"
    return {
        "experiment": {
            "default": "experiment",
            "type": "string",
            "pattern": "^[a-z0-9][a-z0-9_-]{0,63}$",
            "title": "Experiment",
            "description": "Results are kept under this name: small letters, digits, - and _.",
            "section": section,
        },
        "topology": {
            "default": "manufacturing",
            "type": "string",
            "examples": list(topology_names()),
            "title": "Topology",
            "description": "One that comes with the project, or the path of your own .yaml file.",
            "section": section,
        },
        "pattern": _choice("random_walk_1", PATTERNS, "Arrival pattern", section),
        "controller": _choice("btu", CONTROLLERS, "Controller", section),
        "btu_min": {
            "default": 10,
            "type": "number",
            "minimum": 0.25,
            "maximum": MAX_MINUTES,
            "title": "BTU (minutes)",
            "description": "Billing time unit; a run is cut into windows of this length.",
            "section": section,
        },
        "seed": {
            "default": 1,
            "type": "integer",
            "minimum": 0,
            "title": "Seed",
            "description": "The same spec and seed give the same measurements.",
            "section": section,
        },
        "duration_min": {
            "default": 120,
            "type": "number",
            "minimum": 0.25,
            "maximum": MAX_MINUTES,
            "title": "Duration (minutes)",
            "description": "How long items arrive.",
            "section": section,
        },
    }


def _where_it_runs() -> dict[str, dict[str, Any]]:
    section = "Where it runs and what it costs"
    return {
        "testbed": _choice("simulated", TESTBEDS, "Testbed", section),
        "flavor": _choice("docker-4cpu-7gb", FLAVORS, "Host flavor", section),
        "price_books": {
            "default": ["btu10", "btu30", "btu60"],
            "type": "array",
            "items": {"type": "string", "enum": list(PRICE_BOOKS)},
            "examples": list(PRICE_BOOKS),
            "minItems": 1,
            "title": "Price books",
            "description": "The same leases are priced by every book.",
            "section": section,
        },
    }


def _fine_tuning() -> dict[str, dict[str, Any]]:
    section = "Fine tuning"
    options = {"default": {}, "type": ["object", "null"], "section": section}
    return {
        "trace": {
            "default": None,
            "type": ["string", "null"],
            "title": "Trace file",
            "description": "For the pattern trace: CSV or Parquet with time_s and level.",
            "section": section,
        },
        "pattern_options": {
            **options,
            "title": "Pattern options",
            "description": 'For example {"level": 6} for the pattern constant.',
        },
        "controller_options": {
            **options,
            "title": "Controller options",
            "description": 'For example {"scale_up_above_items": 100} for threshold.',
        },
        "faults": {
            **options,
            "title": "Faults",
            "description": 'For example {"host_losses_per_hour": 0.5}; none by default.',
        },
        "calibration": {
            "default": None,
            "type": ["string", "null"],
            "title": "Calibration",
            "description": "Name or path; empty takes the one that fits the topology.",
            "section": section,
        },
    }


def _choice(default: str, known: Mapping[str, Any], title: str, section: str) -> dict[str, Any]:
    return {
        "default": default,
        "type": "string",
        "enum": list(known),
        "title": title,
        "section": section,
    }
