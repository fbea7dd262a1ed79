"""What sources ask of operators, from what a run was resolved to."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.experiment.run import resolve
from include.experiment.spec import RunSpec
from include.model.errors import StoreError
from include.results.tables.demand import demand_rows
from include.runs.stages import provision
from tests.builders import run_spec

INSTANCES, EXECUTIONS = "instances_per_level", "executions_per_item"


def demand_of(spec: RunSpec, root: Path, asks: str) -> dict[tuple[str, str], float]:
    """What sources ask of operators, where they ask it, by source and operator."""
    provision(spec, root)
    rows = demand_rows(root / spec.experiment, spec.run_id)
    return {(row["source"], row["operator"]): row[asks] for row in rows if row[asks] is not None}


def test_sources_add_up_to_the_demand_of_their_operators(tmp_path: Path) -> None:
    spec = run_spec()
    demand = demand_of(spec, tmp_path, INSTANCES)
    assert len({source for source, _ in demand}) > 1
    for operator, instances in resolve(spec).instances_per_level.items():
        own = [part for (_, name), part in demand.items() if name == operator]
        assert sum(own) == pytest.approx(instances)
        assert all(own)


def test_who_runs_in_another_operator_adds_to_its_demand_and_has_its_own_executions(
    tmp_path: Path,
) -> None:
    spec = run_spec(
        controller="threshold", pattern="pyramid", topology="cell_images",
        flavor="kvm-1cpu", calibration="cell_images",
    )  # fmt: skip
    demand = demand_of(spec, tmp_path, INSTANCES)
    alone = resolve(spec).instances_per_level
    assert {operator for _, operator in demand} == {"images"}
    assert sum(demand.values()) == pytest.approx(alone["images"] + alone["queries"])
    executions = demand_of(spec, tmp_path, EXECUTIONS)
    assert executions.pop(("scientists", "images")) == 0
    assert executions == pytest.approx({("camera", "images"): 1, ("scientists", "queries"): 1})


def test_an_item_counts_at_every_operator_that_it_leads_to(tmp_path: Path) -> None:
    asked = demand_of(run_spec(topology="manufacturing"), tmp_path, EXECUTIONS)
    of_s2 = {operator: n for (source, operator), n in asked.items() if source == "S2"}
    assert of_s2 == pytest.approx({
        "O1": 1, "O3": 1, "O4": 1, "O5": 1, "O7": 3, "O9": 1, "O8": 1 / 300,
    })  # fmt: skip
    assert asked["S1", "O8"] == pytest.approx(0.98)
    assert asked["S3", "O8"] == pytest.approx(1 / 102)


@pytest.mark.parametrize("damage", ["{", "{}"])
def test_a_run_whose_inputs_are_damaged_is_named(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "runs" / "r" / "run.json"
    path.parent.mkdir(parents=True)
    path.write_text(damage)
    with pytest.raises(StoreError, match=r"run\.json is damaged"):
        demand_rows(tmp_path, "r")
