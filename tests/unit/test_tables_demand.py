"""What the levels of sources keep busy, from what a run was resolved to."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.experiment.run import resolve
from include.experiment.spec import RunSpec
from include.model.errors import StoreError
from include.results.tables.demand import demand_rows
from include.runs.stages import provision
from tests.builders import run_spec


def demand_of(spec: RunSpec, root: Path) -> dict[tuple[str, str], float]:
    """Instances per level, by source and operator."""
    provision(spec, root)
    rows = demand_rows(root / spec.experiment, spec.run_id)
    return {(row["source"], row["operator"]): row["instances_per_level"] for row in rows}


def test_sources_add_up_to_the_demand_of_their_operators(tmp_path: Path) -> None:
    spec = run_spec()
    demand = demand_of(spec, tmp_path)
    assert len({source for source, _ in demand}) > 1
    for operator, instances in resolve(spec).instances_per_level.items():
        own = [part for (_, name), part in demand.items() if name == operator]
        assert sum(own) == pytest.approx(instances)
        assert all(own)


def test_an_operator_that_runs_in_another_adds_to_its_demand(tmp_path: Path) -> None:
    spec = run_spec(
        controller="threshold", pattern="pyramid", topology="cell_images",
        flavor="kvm-1cpu", calibration="cell_images",
    )  # fmt: skip
    demand = demand_of(spec, tmp_path)
    alone = resolve(spec).instances_per_level
    assert {operator for _, operator in demand} == {"images"}
    assert sum(demand.values()) == pytest.approx(alone["images"] + alone["queries"])


@pytest.mark.parametrize("damage", ["{", "{}"])
def test_a_run_whose_inputs_are_damaged_is_named(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "runs" / "r" / "run.json"
    path.parent.mkdir(parents=True)
    path.write_text(damage)
    with pytest.raises(StoreError, match=r"run\.json is damaged"):
        demand_rows(tmp_path, "r")
