"""The trigger forms of the DAGs: what can be filled in, as the schemas of their params."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from include.arrivals import PATTERNS
from include.controllers import CONTROLLERS
from include.experiment.options_help import options_help
from include.experiment.prices import PRICE_BOOKS
from include.experiment.problems import MOST_MINUTES, least_duration_min
from include.experiment.spec import default_of
from include.testbeds import TESTBEDS
from include.testbeds.flavors import FLAVORS
from include.topologies.load import topology_names

EVERY_S = default_of("monitor_every_s")
SHORTEST_MIN = least_duration_min(EVERY_S)
SPECS = Path(__file__).with_name("specs")
UNDER_TOPOLOGY = ("monitor_every_s", "hosts", "max_hosts")
"""Fields that a form may leave empty: then the file of the topology decides."""
BY_TESTBED = "by testbed"
WAYS = (BY_TESTBED, "task", "dag_run")
"""How a cell of a matrix can be measured: whole in one task, or by a run of its own DAG."""


FIRST = None
"""The section that Airflow opens with the form: the one without a name. The others are closed."""
LINES: dict[str, Any] = {"default": []}
"""A field of lines. It has no type of its own: Airflow draws the field by its default."""
CHECKED_BY_US = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "$ref": "#/definitions/anything",
    "definitions": {"anything": {}},
}
"""Makes the rest of a schema say how Airflow draws a field, and nothing else: in this draft
whatever stands beside a reference is not validated. Airflow would refuse one field at a time, in
the words of JSON Schema; `params` tells everything at once. For the same reason no field has a
minimum or maximum: the form of Airflow changes what is outside to them without a word."""


def experiment_params() -> dict[str, dict[str, Any]]:
    """Per param, the keyword arguments of an Airflow ``Param``: default and JSON schema."""
    return {
        **_checked_by_us({**_what_runs(), **_where_it_runs(), **_fine_tuning()}),
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
    return _checked_by_us(_matrix())


def _checked_by_us(fields: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: {**field, **CHECKED_BY_US} for name, field in fields.items()}


def _matrix() -> dict[str, dict[str, Any]]:
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
            "default": default_of("btus_min")[0],
            "type": "number",
            "title": "BTU (minutes)",
            "description": "Billing time unit; a run is cut into windows of this length.",
            "section": section,
        },
        "seed": {
            "default": 1,
            "type": "integer",
            "title": "Seed",
            "description": "The same spec and seed give the same measurements.",
            "section": section,
        },
        "duration_min": {
            "default": default_of("duration_min"),
            "type": "number",
            "title": "Duration (minutes)",
            "description": f"How long items arrive: at least {SHORTEST_MIN:g} where the monitor "
            f"reads every {EVERY_S:g} s, at most {MOST_MINUTES}.",
            "section": section,
        },
    }


def _axes() -> dict[str, dict[str, Any]]:
    one = _what_runs()
    section = FIRST
    whole: dict[str, Any] = {"type": "array", "items": {}, "section": section}
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
            "default": default_of("btus_min"),
            **whole,
            "title": "BTUs (minutes)",
            "description": "One per line or with commas, for example 10, 30, 60.",
        },
        "seeds": {
            "default": [1],
            **whole,
            "title": "Seeds",
            "description": "One per line or with commas, for example 1, 2, 3 or 1-3: as many runs "
            "of everything else.",
        },
        "duration_min": one["duration_min"],
    }


def _where_it_runs() -> dict[str, dict[str, Any]]:
    section = "Where it runs and what it costs"
    return {
        "testbed": _choice(default_of("testbed"), TESTBEDS, "Testbed", section)
        | {
            "description": "simulated is per item and flow in rates, both in seconds; others "
            "take as long as the run says."
        },
        "flavor": _choice(default_of("flavor"), FLAVORS, "Host flavor", section)
        | {"description": "The kind of host that is leased: its cores and memory."},
        "price_books": {
            **_choices(default_of("price_books"), PRICE_BOOKS, "Price books", section),
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
            "title": "Monitor every (seconds)",
            "description": "How often the monitor reads; empty: what the topology says, "
            f"else {EVERY_S:g}.",
        },
        "hosts": {
            **number,
            "type": ["integer", "null"],
            "title": "Hosts",
            "description": "Leased before the first item; 0: as many as the first instances need; "
            f"empty: what the topology says, else {default_of('hosts')}.",
        },
        "max_hosts": {
            **number,
            "type": ["integer", "null"],
            "title": "Most hosts",
            "description": "How many there are to lease; empty: what the topology says, else "
            f"{default_of('max_hosts')}.",
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
        "items": {"type": "string"},
        "examples": list(known),
        "title": title,
        "description": f"Any of {', '.join(known)}.",
        "section": section,
    }
