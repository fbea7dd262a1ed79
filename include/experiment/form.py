"""The trigger forms of the DAGs: what can be filled in, as the schemas of their params."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from include.arrivals import PATTERNS
from include.controllers import CONTROLLERS
from include.experiment.options_help import options_help
from include.experiment.prices import PRICE_BOOKS
from include.testbeds import TESTBEDS
from include.testbeds.flavors import FLAVORS
from include.topologies.load import topology_names

MAX_MINUTES = 20160
SPECS = Path(__file__).with_name("specs")
UNDER_TOPOLOGY = ("monitor_every_s", "hosts", "max_hosts")
"""Fields that a form may leave empty: then the file of the topology decides."""
BY_TESTBED = "by testbed"
WAYS = (BY_TESTBED, "task", "dag_run")
"""How a cell of a matrix can be measured: whole in one task, or by a run of its own DAG."""


FIRST = None
"""The section that Airflow opens with the form: the one without a name. The others are closed."""
LINES = {
    "default": [],
    "anyOf": [
        {"type": ["array", "string"], "items": {"type": "string"}},
        {"type": ["object", "null"]},
    ],
}
"""A field of lines. It has no type of its own: Airflow draws the field by its default, and takes
what a program sends as a mapping."""


def experiment_params() -> dict[str, dict[str, Any]]:
    """Per param, the keyword arguments of an Airflow ``Param``: default and JSON schema."""
    return {
        **_what_runs(),
        **_where_it_runs(),
        **_fine_tuning(),
        "report": {
            "default": True,
            "type": "boolean",
            "title": "Report",
            "description": "Build, check and publish the tables once the run is measured.",
            "section": "What comes of it",
        },
    }


def batch_params() -> dict[str, dict[str, Any]]:
    """The form of a matrix: a spec file, or one field per axis and what all cells share."""
    return {
        "spec": {
            "default": None,
            "type": ["string", "null"],
            "examples": sorted(path.stem for path in SPECS.glob("*.yaml")),
            "title": "Spec file",
            "description": "One that comes with the project, or the path of your own .yaml file. "
            "Its matrix runs, and nothing below counts.",
            "section": FIRST,
        },
        **_axes(),
        **_where_it_runs(),
        "each_cell": {
            "default": BY_TESTBED,
            "type": "string",
            "enum": list(WAYS),
            "title": "Each cell",
            "description": "One task that measures all windows, or a run of the DAG experiment. "
            "By testbed: a task where a run takes less time than it says, else a DAG run.",
            "section": "Where it runs and what it costs",
        },
        **{name: _fine_tuning()[name] for name in ("faults", "calibration", *UNDER_TOPOLOGY)},
    }


def _what_runs() -> dict[str, dict[str, Any]]:
    section = FIRST
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
        "pattern": _choice("random_walk_1", PATTERNS, "Arrival pattern", section)
        | {"description": "How much arrives over time; its options are under fine tuning."},
        "controller": _choice("btu", CONTROLLERS, "Controller", section)
        | {"description": "The provisioning policy; its options are under fine tuning."},
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


def _axes() -> dict[str, dict[str, Any]]:
    one = _what_runs()
    section = FIRST
    whole = {"type": "array", "minItems": 1, "section": section}
    files = {"trace"}  # a pattern that reads a file needs an option, so it needs a spec file
    return {
        "experiment": one["experiment"],
        "topology": {
            "default": ["manufacturing"],
            **whole,
            "items": {"type": "string"},
            "title": "Topologies",
            "description": "One per line: those that come with the project, or paths of your own "
            f".yaml files. Known: {', '.join(topology_names())}.",
        },
        "controllers": _choices(["btu", "threshold"], CONTROLLERS, "Controllers", section),
        "patterns": _choices(
            ["random_walk_1"], [name for name in PATTERNS if name not in files], "Patterns", section
        ),
        "btus_min": {
            "default": [10],
            **whole,
            **_numbers("number", 0.25, MAX_MINUTES),
            "title": "BTUs (minutes)",
            "description": "One per line or with commas, for example 10, 30, 60.",
        },
        "seeds": {
            "default": [1],
            **whole,
            **_numbers("integer", 0, 2**31 - 1),
            "title": "Seeds",
            "description": "One per line or with commas, for example 1, 2, 3: as many runs of "
            "everything else.",
        },
        "duration_min": one["duration_min"],
    }


def _where_it_runs() -> dict[str, dict[str, Any]]:
    section = "Where it runs and what it costs"
    return {
        "testbed": _choice("simulated", TESTBEDS, "Testbed", section)
        | {
            "description": "simulated is per item and flow in rates, both in seconds; others "
            "take as long as the run says."
        },
        "flavor": _choice("docker-4cpu-7gb", FLAVORS, "Host flavor", section)
        | {"description": "The kind of host that is leased: its cores and memory."},
        "price_books": {
            **_choices(["btu10", "btu30", "btu60"], PRICE_BOOKS, "Price books", section),
            "description": "The same leases are priced by every book.",
        },
    }


def _fine_tuning() -> dict[str, dict[str, Any]]:
    section = "Fine tuning"
    options = {**LINES, "section": section}
    built = {name: registered.build for name, registered in CONTROLLERS.items()}
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
            "description_md": _lines("level = 6", options_help(PATTERNS)),
        },
        "controller_options": {
            **options,
            "title": "Controller options",
            "description_md": _lines(
                "scale_up_above_items = 100", options_help(built, hidden=("setting",))
            ),
        },
        "faults": {
            **options,
            "title": "Faults",
            "description_md": _lines("host_losses_per_hour = 0.5", _faults_help()),
        },
        "calibration": {
            "default": None,
            "type": ["string", "null"],
            "examples": _calibrations(),
            "title": "Calibration",
            "description": "Name or path; empty takes the one that fits the topology.",
            "section": section,
        },
        **_under_topology(section),
    }


def _under_topology(section: str | None) -> dict[str, dict[str, Any]]:
    number = {"default": None, "section": section}
    return {
        "monitor_every_s": {
            **number,
            "type": ["number", "null"],
            "exclusiveMinimum": 0,
            "title": "Monitor every (seconds)",
            "description": "How often the monitor reads; empty: what the topology says, else 15.",
        },
        "hosts": {
            **number,
            "type": ["integer", "null"],
            "minimum": 0,
            "title": "Hosts",
            "description": "Leased before the first item; 0: as many as the first instances need; "
            "empty: what the topology says, else 0.",
        },
        "max_hosts": {
            **number,
            "type": ["integer", "null"],
            "minimum": 1,
            "title": "Most hosts",
            "description": "How many there are to lease; empty: what the topology says, else 1000.",
        },
    }


def _lines(example: str, known: str) -> str:
    return f"One per line, name = value, for example {example}; none is needed.\n\n{known}"


def _faults_help() -> str:
    """The faults of every testbed that can inject some; none of them is on by default."""
    faults = {name: list(one.parameters().Faults.model_fields) for name, one in TESTBEDS.items()}
    return "\n\n".join(f"**{name}**: {', '.join(own)}" for name, own in faults.items() if own)


def _calibrations() -> list[str]:
    return sorted(
        {name for one in TESTBEDS.values() for name in one.parameters().calibration_names()}
    )


def _numbers(kind: str, lowest: float, highest: float) -> dict[str, Any]:
    """Entries of a field of numbers: as a program sends them, or as they are typed."""
    typed = {"type": "string", "pattern": r"^[-+0-9.eE,;\s]*$"}
    return {"items": {"anyOf": [{"type": kind, "minimum": lowest, "maximum": highest}, typed]}}


def _choice(
    default: str, known: Mapping[str, Any], title: str, section: str | None
) -> dict[str, Any]:
    return {
        "default": default,
        "type": "string",
        "enum": list(known),
        "title": title,
        "section": section,
    }


def _choices(
    default: list[str], known: Collection[str], title: str, section: str | None
) -> dict[str, Any]:
    return {
        "default": default,
        "type": "array",
        "items": {"type": "string", "enum": list(known)},
        "examples": list(known),
        "minItems": 1,
        "title": title,
        "description": f"Any of {', '.join(known)}.",
        "section": section,
    }
