"""From the form of a matrix to its cells: axes, spec files, and every problem at once."""

from __future__ import annotations

from typing import Any

import pytest

from include.experiment.params import matrix_from_params
from include.experiment.spec import SPECS, RunSpec, load_spec
from tests.problems import problems_told


def matrix(most_cells: int = 300, **params: Any) -> list[RunSpec]:
    return matrix_from_params(params, most_cells)


def problems(**params: Any) -> list[str]:
    return problems_told(matrix, **params)


@pytest.mark.parametrize(
    "spec", ["reproduction_baselines", str(SPECS / "reproduction_baselines.yaml")]
)
def test_a_spec_file_is_the_matrix_whatever_else_is_filled_in(spec: str) -> None:
    cells = matrix(spec=spec, experiment="other", controllers=["fixed"])
    assert cells == list(load_spec(SPECS / "reproduction_baselines.yaml").points())


def test_a_problem_of_many_cells_names_a_few() -> None:
    (problem,) = problems(controllers=["btuu", "btu"], seeds=list(range(10)))
    assert "-s3-" in problem
    assert "-s4-" not in problem
    assert problem.endswith(" and 6 of 20 runs)")
