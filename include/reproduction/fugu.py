"""The evaluation of Heinze et al. ("Auto-scaling Techniques for Elastic Data Stream Processing").

Three experiments, one spec each; what they share is measured once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from include.control.batch import RunResult, require_complete, run_batch
from include.experiment.spec import RunSpec, load_spec
from include.reproduction.fugu_facts import Facts, facts_of, figures_of_run
from include.reproduction.fugu_questions import QUESTIONS

EXPERIMENTS = ("fugu_configurability", "fugu_workloads", "fugu_adaptivity")
_SPECS = Path(__file__).parents[1] / "experiment" / "specs"


@dataclass(frozen=True, slots=True)
class Reproduction:
    """One row per case (means over seeds) and one row per claim."""

    results: Sequence[Mapping[str, Any]]
    claims: Sequence[Mapping[str, Any]]


def reproduce(
    root: Path,
    *,
    seeds: Sequence[int] | None = None,
    processes: int | None = None,
    report: Callable[[RunResult], None] = lambda _: None,
) -> Reproduction:
    """Measure what is missing below ``root`` and ask every claim.

    ``seeds`` are those of the specs unless given. Raises TestbedError with every failed run.
    """
    specs = points(seeds)
    require_complete(run_batch(specs, root, processes=processes, report=report))
    facts = facts_of((spec, figures_of_run(root, spec)) for spec in specs)
    return Reproduction(facts.rows(), check_claims(facts))


def points(seeds: Sequence[int] | None = None) -> list[RunSpec]:
    """Every run of the three experiments; what two of them share is measured once."""
    unique: dict[str, RunSpec] = {}
    for name in EXPERIMENTS:
        spec = load_spec(_SPECS / f"{name}.yaml")
        if seeds is not None:
            spec = spec.model_copy(update={"seeds": list(seeds)})
        for point in spec.points():
            unique.setdefault(replace(point, experiment="").to_json(), point)
    return list(unique.values())


def check_claims(facts: Facts) -> list[dict[str, Any]]:
    """One row per claim: whether it holds for the means over seeds, in how many, and numbers."""
    seeds = facts.seeds()
    rows = []
    for claim in claims():
        ask = QUESTIONS[claim["question"]]
        holds, numbers = ask(facts)
        in_seeds = sum(ask(facts.of_seed(seed))[0] for seed in seeds)
        row = {name: claim[name] for name in ("id", "section", "claim")}
        row |= {"holds": "yes" if holds else "no", "seeds": f"{in_seeds} of {len(seeds)}"}
        rows.append({**row, "numbers": numbers})
    return rows


@cache
def claims() -> tuple[Mapping[str, Any], ...]:
    """The claims, as fugu_claims.yaml lists them."""
    text = Path(__file__).with_name("fugu_claims.yaml").read_text(encoding="utf-8")
    return tuple(yaml.safe_load(text))
