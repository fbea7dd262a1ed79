"""The evaluation of Henge again: measure its experiments, hold its claims against them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from include.control.batch import RunResult, require_complete, run_batch
from include.experiment.spec import RunSpec, load_spec
from include.reproduction.henge_facts import HengeFacts, read_run
from include.reproduction.henge_questions import QUESTIONS
from include.reproduction.henge_questions_loaded import LOADED_QUESTIONS

SPECS = Path(__file__).parents[1] / "experiment" / "specs"
COLUMNS = ("id", "section", "claim", "published", "holds", "measured")


def points(seeds: Sequence[int] | None = None, experiments: Sequence[str] = ()) -> list[RunSpec]:
    """Every run of the experiments, or of those named (``diurnal``, ``outage``, ...).

    ``seeds`` are those of the specs unless given.
    """
    paths = sorted(SPECS.glob("henge_*.yaml"))
    specs = [
        load_spec(path)
        for path in paths
        if not experiments or path.stem.partition("_")[2] in experiments
    ]
    if seeds is not None:
        specs = [spec.model_copy(update={"seeds": list(seeds)}) for spec in specs]
    return [point for spec in specs for point in spec.points()]


def reproduce(
    root: Path,
    *,
    seeds: Sequence[int] | None = None,
    experiments: Sequence[str] = (),
    processes: int | None = None,
    report: Callable[[RunResult], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Measure what is not stored yet under ``root``, and check every claim about it.

    Raises TestbedError with every failed run.
    """
    specs = points(seeds, experiments)
    require_complete(run_batch(specs, root, processes=processes, report=report))
    return check_claims(HengeFacts([read_run(root, spec) for spec in specs]))


def check_claims(facts: HengeFacts) -> list[dict[str, Any]]:
    """One row per claim whose runs were measured; ``holds`` is yes or no."""
    questions = {**QUESTIONS, **LOADED_QUESTIONS}
    rows = []
    for claim in claims():
        try:
            holds, measured = questions[claim["question"]](facts)
        except KeyError:
            continue
        about = (claim["id"], claim["section"], claim["claim"], claim["published"])
        answer = ("yes" if holds else "no", measured)
        rows.append(dict(zip(COLUMNS, (*about, *answer), strict=True)))
    return rows


@cache
def claims() -> tuple[Mapping[str, str], ...]:
    """The claims, as henge_claims.yaml lists them."""
    text = Path(__file__).with_name("henge_claims.yaml").read_text(encoding="utf-8")
    return tuple(yaml.safe_load(text))
