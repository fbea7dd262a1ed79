"""The evaluation of Borkowski et al., PVLDB 12(7), again: three filters on three workloads."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import yaml

from include.control.batch import RunResult, require_complete, run_batch
from include.experiment.spec import RunSpec, load_spec
from include.reproduction.kalman_economy import break_even
from include.reproduction.kalman_errata import find_errata
from include.reproduction.kalman_facts import Facts, facts_of, read_run, welch_p
from include.reproduction.kalman_published import (
    FILTERS,
    METRICS,
    RUNS,
    TOLERANCE_PERCENT,
    Figure,
    published,
)
from include.reproduction.kalman_questions import QUESTIONS

SPEC = Path(__file__).parents[1] / "experiment" / "specs" / "kalman_evaluation.yaml"
PAIRS = tuple(combinations(FILTERS.values(), 2))

Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Reproduction:
    """Tables of the paper and their tests, measured beside printed; claims; what it misprints."""

    results: Rows
    tests: Rows
    changes: Rows
    break_even: Rows
    claims: Rows
    errata: list[str]


def reproduce(
    root: Path,
    *,
    seeds: Sequence[int] | None = None,
    processes: int | None = None,
    report: Callable[[RunResult], None] = lambda _: None,
) -> Reproduction:
    """Measure what is missing below ``root``, ask every claim, and write the tables as CSV there.

    ``seeds`` are those of the spec (20) unless given. Raises TestbedError with every failed run.
    """
    specs = points(seeds)
    require_complete(run_batch(specs, root, processes=processes, report=report))
    found = hold_against_paper(facts_of([(spec, read_run(root, spec)) for spec in specs]))
    for name in ("results", "tests", "changes", "break_even", "claims"):
        _write(root / f"kalman_{name}.csv", getattr(found, name))
    return found


def points(seeds: Sequence[int] | None = None) -> list[RunSpec]:
    """Every run of the evaluation."""
    spec = load_spec(SPEC)
    if seeds is not None:
        spec = spec.model_copy(update={"seeds": list(seeds)})
    return list(spec.points())


def hold_against_paper(facts: Facts) -> Reproduction:
    """Everything that the paper tabulates or says, of what was measured."""
    return Reproduction(
        results(facts), welch_tests(facts), changes(facts), break_even(facts), check_claims(facts),
        find_errata(published()),
    )  # fmt: skip


def results(facts: Facts) -> Rows:
    """One row per cell of Tables 3 to 5; the published columns are empty where none is known."""
    rows = []
    for scenario in facts.scenarios():
        for metric in METRICS:
            for name in FILTERS.values():
                cell = facts.cells[scenario, name, metric]
                row = {
                    "scenario": scenario, "metric": metric, "filter": name,
                    "runs": len(cell.values), "mean": cell.mean, "sigma": cell.sigma,
                }  # fmt: skip
                rows.append(row | _beside(published().get((scenario, name, metric)), row))
    return rows


def _beside(figure: Figure | None, row: Mapping[str, Any]) -> dict[str, Any]:
    if figure is None:
        return dict.fromkeys(
            ("published_mean", "published_sigma", "off_percent", "tolerance_percent", "inside")
        )
    off = 100 * (row["mean"] / figure.mean - 1)
    tolerance = TOLERANCE_PERCENT[row["metric"]]
    return {
        "published_mean": figure.mean, "published_sigma": figure.sigma, "off_percent": off,
        "tolerance_percent": tolerance, "inside": abs(off) <= tolerance,
    }  # fmt: skip


def welch_tests(facts: Facts) -> Rows:
    """Welch's t-test of every pair of filters, of what was measured and of what is printed."""
    rows = []
    for scenario in facts.scenarios():
        for metric in METRICS:
            for pair in PAIRS:
                cells = [facts.cells[scenario, name, metric] for name in pair]
                own = [(cell.mean, cell.sigma, len(cell.values)) for cell in cells]
                figures = [published().get((scenario, name, metric)) for name in pair]
                printed = [(one.mean, one.sigma, RUNS) for one in figures if one]
                rows.append(
                    {
                        "scenario": scenario,
                        "metric": metric,
                        "filter": pair[0],
                        "other_filter": pair[1],
                        "welch_p": welch_p(*own) if min(n for *_, n in own) > 1 else None,
                        "published_welch_p": welch_p(*printed) if len(printed) == 2 else None,
                    }
                )
    return rows


def changes(facts: Facts) -> Rows:
    """Percent changes of EKF against GW and PURE, measured and from the printed tables."""
    rows = []
    for scenario in facts.scenarios():
        for metric in METRICS:
            for other in ("GW", "PURE"):
                ekf, base = (published().get((scenario, name, metric)) for name in ("EKF", other))
                rows.append(
                    {
                        "scenario": scenario,
                        "metric": metric,
                        "against": other,
                        "change_percent": facts.change_percent(scenario, metric, other),
                        "published_percent": 100 * (ekf.mean / base.mean - 1)
                        if ekf and base
                        else None,
                    }
                )
    return rows


def check_claims(facts: Facts) -> Rows:
    """One row per claim whose runs were measured; ``holds`` is yes or no."""
    rows = []
    for claim in claims():
        try:
            holds, measured = QUESTIONS[claim["question"]](facts)
        except KeyError:
            continue
        about = {name: claim[name] for name in ("id", "section", "claim", "published")}
        rows.append({**about, "holds": "yes" if holds else "no", "measured": measured})
    return rows


@cache
def claims() -> tuple[Mapping[str, str], ...]:
    """The claims, as kalman_claims.yaml lists them."""
    text = Path(__file__).with_name("kalman_claims.yaml").read_text(encoding="utf-8")
    return tuple(yaml.safe_load(text))


def _write(path: Path, rows: Rows) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
