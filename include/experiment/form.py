"""The trigger forms of the DAGs: what can be filled in, as the schemas of their params.

A form is made of sections, each a pydantic model: its fields are those of the form, and its JSON
schema says how Airflow draws them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core.core_schema import NullableSchema

from include.controllers import CONTROLLERS
from include.experiment.options import options_help
from include.experiment.prices import PRICE_BOOKS
from include.experiment.problems import MOST_MINUTES, least_duration_min
from include.experiment.spec import SPECS, default_of
from include.testbeds import TESTBEDS
from include.testbeds.flavors import FLAVORS
from include.workloads import PATTERNS
from include.workloads.topologies import topology_names

EVERY_S = default_of("monitor_every_s")
SHORTEST_MIN = least_duration_min(EVERY_S)
BY_TESTBED = "by testbed"
WAYS = (BY_TESTBED, "task", "dag_run")
"""How a cell of a matrix can be measured: whole in one task, or by a run of its own DAG."""
WITHOUT_FILES = [name for name in PATTERNS if name != "trace"]
"""A pattern that reads a file needs an option, so in a matrix it needs a spec file."""
ANYTHING = {"$ref": "#/definitions/anything"}
WITHIN_64_BITS = {"minimum": -(2**63), "maximum": 2**63 - 1}
"""Of every number: Airflow cannot hand a larger one to a task, which would fail without a log."""
CHECKED_BY_US = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    **ANYTHING,
    "definitions": {
        "anything": {**WITHIN_64_BITS, "items": ANYTHING, "additionalProperties": ANYTHING}
    },
}
"""Makes the rest of a schema say how Airflow draws a field, and nothing else: in this draft
whatever stands beside a reference is not validated. Airflow would refuse one field at a time, in
the words of JSON Schema; `params` tells everything at once. For the same reason no field is drawn
with a minimum or maximum of its own: the form of Airflow changes what is outside to them without a
word; it does not look into definitions."""


class Section(BaseModel):
    """Fields that a form shows together. The section without a name is open with the form, the
    others are closed. A field of lines is Any: Airflow draws it by its default."""

    headed: ClassVar[str | None] = None


class _AsDrawn(GenerateJsonSchema):
    """Airflow draws a field that may be empty by a list of types, and nothing by anyOf."""

    def update_with_validations(self, *_: Any) -> None:
        """Bounds of a number are not drawn."""

    def nullable_schema(self, schema: NullableSchema) -> dict[str, Any]:
        filled_in = self.generate_inner(schema["schema"])
        return {**filled_in, "type": [filled_in["type"], "null"]}


def form_of(*sections: type[Any]) -> dict[str, dict[str, Any]]:
    """Per field, the keyword arguments of an Airflow ``Param``: default and JSON schema. A section
    is a `Section`, or a dataclass whose fields say themselves where they are."""
    return {
        name: {"section": getattr(section, "headed", None), **drawn, **CHECKED_BY_US}
        for section in sections
        for name, drawn in TypeAdapter(section)
        .json_schema(schema_generator=_AsDrawn)["properties"]
        .items()
    }


def experiment_params() -> dict[str, dict[str, Any]]:
    """The form of one run."""
    return {
        **form_of(WhatRuns, WhereItRuns, Options, Circumstances, Advisors, UnderTopology, Kept),
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
    return form_of(
        SpecFile, Axes, WhereItRuns, EachCell, Circumstances, Advisors, UnderTopology, Kept
    )


def sweep_params() -> dict[str, dict[str, Any]]:
    """The form of a sweep."""
    return form_of(SweepFile)


def _one_of(choices: Mapping[str, Any], default: str, title: str, description: str) -> Any:
    texts: dict[str, Any] = {"title": title, "description": description}
    return Field(default, **texts, json_schema_extra={"enum": list(choices)})


def _some_of(choices: list[str], default: list[str], title: str, description: str = "") -> Any:
    text = description or f"Any of {', '.join(choices)}."
    return Field(default, title=title, description=text, examples=list(choices))


def _lines(title: str, example: str, options: str) -> Any:
    text = f"One per line, name = value, for example {example}; none is needed.\n\n{options}"
    return Field([], title=title, json_schema_extra={"description_md": text})


def _faults_help() -> str:
    """The faults of every testbed that can inject some; none of them is on by default."""
    faults = {
        name: list(testbed.parameters().faults.model_fields) for name, testbed in TESTBEDS.items()
    }
    return "\n\n".join(
        f"**{name}**: {', '.join(testbed_faults)}"
        for name, testbed_faults in faults.items()
        if testbed_faults
    )


def _calibrations() -> list[str]:
    return sorted(
        {name for testbed in TESTBEDS.values() for name in testbed.parameters().calibration_names()}
    )


_NAME = Field(
    "experiment",
    title="Name",
    description="Results are kept under this name: small letters, digits, - and _.",
)
_DURATION = Field(
    default_of("duration_min"),
    title="Duration (minutes)",
    description=f"How long items arrive: at least {SHORTEST_MIN:g} where the monitor "
    f"reads every {EVERY_S:g} s, at most {MOST_MINUTES}.",
)


class WhatRuns(Section):
    """What one run is of."""

    experiment: str = _NAME
    topology: str = Field(
        "manufacturing",
        title="Topology",
        description="One that comes with the project, or the path of your own .yaml file.",
        examples=list(topology_names()),
    )
    pattern: str = _one_of(
        PATTERNS,
        "random_walk_1",
        "Arrival pattern",
        "How much arrives over time; its options are under fine tuning.",
    )
    controller: str = _one_of(
        CONTROLLERS,
        "btu",
        "Controller",
        "The provisioning policy; its options are under fine tuning.",
    )
    btu_min: float = Field(
        default_of("btus_min")[0],
        title="BTU (minutes)",
        description="Billing time unit; a run is cut into windows of this length.",
    )
    seed: int = Field(
        1, title="Seed", description="The same spec and seed give the same measurements."
    )
    duration_min: float = _DURATION


class SpecFile(Section):
    """A matrix that stands in a file."""

    spec: str | None = Field(
        None,
        title="Spec file",
        description="One that comes with the project, or the path of your own .yaml file. "
        "Its matrix runs; of what is below only Each cell counts.",
        examples=sorted(path.stem for path in SPECS.glob("*.yaml")),
    )


class SweepFile(Section):
    """The points of a sweep stand in a file."""

    spec: str = Field(
        "include/experiment/specs/sensitivity_thresholds.yaml",
        title="Spec file",
        description="Path of a YAML file; a relative one starts at the repository.",
    )


class Axes(Section):
    """What the cells of a matrix are of."""

    experiment: str = _NAME
    topology: list[str] = Field(
        ["manufacturing"],
        title="Topologies",
        description="One per line: those that come with the project, or paths of your own "
        f".yaml files. Known: {', '.join(topology_names())}.",
    )
    controllers: list[str] = _some_of(list(CONTROLLERS), ["btu", "threshold"], "Controllers")
    patterns: list[str] = _some_of(WITHOUT_FILES, ["random_walk_1"], "Patterns")
    btus_min: list[Any] = Field(
        default_of("btus_min"),
        title="BTUs (minutes)",
        description="One per line or with commas, for example 10, 30, 60.",
    )
    seeds: list[Any] = Field(
        [1],
        title="Seeds",
        description="One per line or with commas, for example 1, 2, 3 or 1-3: as many runs "
        "of everything else.",
    )
    duration_min: float = _DURATION


class WhereItRuns(Section):
    """The testbed, and what its hosts cost."""

    headed = "Where it runs and what it costs"

    testbed: str = _one_of(
        TESTBEDS,
        default_of("testbed"),
        "Testbed",
        "simulated is per item and flow in rates, both in seconds; others take as long as the "
        "run says.",
    )
    flavor: str = _one_of(
        FLAVORS,
        default_of("flavor"),
        "Host flavor",
        "The kind of host that is leased: its cores and memory.",
    )
    price_books: list[str] = _some_of(
        list(PRICE_BOOKS),
        default_of("price_books"),
        "Price books",
        "The same leases are priced by every book.",
    )


class EachCell(Section):
    """How a matrix is measured."""

    headed = WhereItRuns.headed

    each_cell: str = _one_of(
        dict.fromkeys(WAYS),
        BY_TESTBED,
        "Each cell",
        "One task that measures all windows, or a run of the DAG experiment. By testbed: a task "
        "where a run takes less time than it says, else a DAG run.",
    )


class Options(Section):
    """Options of what one run is of."""

    headed = "Fine tuning"

    trace: str | None = Field(
        None,
        title="Trace file",
        description="For the pattern trace: CSV or Parquet with time_s and level.",
    )
    pattern_options: Any = _lines("Pattern options", "level = 6", options_help(PATTERNS))
    controller_options: Any = _lines(
        "Controller options",
        "scale_up_above_items = 100",
        options_help({name: registration.build for name, registration in CONTROLLERS.items()}),
    )


class Circumstances(Section):
    """What a testbed does to whatever runs on it."""

    headed = Options.headed

    faults: Any = _lines("Faults", "host_losses_per_hour = 0.5", _faults_help())
    calibration: str | None = Field(
        None,
        title="Calibration",
        description="Name or path; empty takes the one that fits the topology.",
        examples=_calibrations(),
    )


class Advisors(Section):
    """Who else is asked, and not obeyed."""

    headed = Options.headed

    advisors: Any = Field(
        [],
        title="Advisors",
        json_schema_extra={
            "description_md": "Controllers that only say what they would do, beside the one that "
            "acts: one per line, for example keda, or {name: tide, care: 2}; none is needed."
        },
    )


class UnderTopology(Section):
    """Fields that a form may leave empty: then the file of the topology decides."""

    headed = Options.headed

    monitor_every_s: float | None = Field(
        None,
        title="Monitor every (seconds)",
        description="How often the monitor reads; empty: what the topology says, "
        f"else {EVERY_S:g}.",
    )
    hosts: int | None = Field(
        None,
        title="Hosts",
        description="Leased before the first item; 0: as many as the first instances need; "
        f"empty: what the topology says, else {default_of('hosts')}.",
    )
    max_hosts: int | None = Field(
        None,
        title="Most hosts",
        description="How many there are to lease; empty: what the topology says, else "
        f"{default_of('max_hosts')}.",
    )


class Kept(Section):
    """What stays of a run."""

    headed = Options.headed

    summaries_only: bool = Field(
        default_of("summaries_only"),
        title="Summaries only",
        description="Store counts in place of single samples: less space, the same tables.",
    )


UNDER_TOPOLOGY = tuple(UnderTopology.model_fields)
