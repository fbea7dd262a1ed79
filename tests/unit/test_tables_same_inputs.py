"""Files of the same name and other content are never averaged: who reports is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.experiment.matrix import runs_in_file
from include.experiment.spec import RunSpec
from include.experiment.variant import conditions_of, variant_of
from include.model.errors import StoreError
from include.results.tables.same_inputs import require_each_once, require_same_files
from include.runs.stages import provision

SPEC = """\
name: mine
testbed: flow
topology: job.yaml
calibration: calibration.yaml
patterns: {name: trace, path: load.csv}
controllers: [{name: fixed, instances_each: 2}]
btus_min: 60
duration_min: 60
price_books: [btu60, book.yaml]
"""
TOPOLOGY = """\
name: job
emission_period_s: 1.0
sources: {load: {label: Load, items_per_level: 1}}
operators:
  parse: {label: Parse, slo_ms: 1000, cpu_shares: 1024, memory_mb: 9, service_ms: 4}
edges: [{from: load, to: parse}]
"""
BOOK = """
{name: mine, provider: own, region: own, instance_type: own, currency: USD,
 per_hour: 0.05, billed_every_s: 1, minimum_s: 1, as_of: 2026-01-31, source: our bill}
"""
FILES = {
    "spec.yaml": SPEC,
    "book.yaml": BOOK,
    "job.yaml": TOPOLOGY,
    "calibration.yaml": "overhead_cores: 0.05\n",
    "load.csv": "time_s,rate_items_per_s\n0,10\n60,20\n",
}


def provisioned(tmp_path: Path, place: str, seed: int, **changes: str) -> RunSpec:
    """A run whose files lie in a folder of their own, some of them with other content."""
    folder = tmp_path / place
    folder.mkdir()
    for name, content in {**FILES, **{f"{k}.yaml": v for k, v in changes.items()}}.items():
        (folder / name).write_text(content)
    if "load" in changes:
        (folder / "load.csv").write_text(changes["load"])
    spec_file = changes.get("spec", SPEC)
    (folder / "spec.yaml").write_text(f"{spec_file}seeds: {seed}\n")
    (spec,) = runs_in_file(folder / "spec.yaml")
    provision(spec, tmp_path / "var")
    return spec


def looked_at(tmp_path: Path, *specs: RunSpec) -> None:
    rows = [
        {
            "run": spec.run_id, "topology": "job", "pattern": spec.pattern, "seed": spec.seed,
            "conditions": conditions_of(spec), "controller": spec.controller,
            "variant": variant_of(spec), "btu_min": spec.btu_min,
        }
        for spec in specs
    ]  # fmt: skip
    assert len({row["conditions"] for row in rows}) == 1, "the names are the same"
    require_same_files(tmp_path / "var" / "mine", rows)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"job": TOPOLOGY.replace("service_ms: 4", "service_ms: 5")}, "another topology"),
        ({"calibration": "overhead_cores: 0.1\n"}, "another calibration"),
        ({"load": FILES["load.csv"].replace("20", "30")}, "another trace"),
        ({"book": BOOK.replace("0.05", "0.06")}, "another price book"),
    ],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_runs_of_other_files_with_the_same_names_are_told(
    tmp_path: Path, changes: dict[str, str], message: str, seed: int
) -> None:
    first = provisioned(tmp_path, "a", 1)
    other = provisioned(tmp_path, "b", seed, **changes)
    with pytest.raises(StoreError, match=f"{message} under the same name") as caught:
        looked_at(tmp_path, first, other)
    assert first.run_id in str(caught.value)
    assert other.run_id in str(caught.value)


def test_seeds_that_were_priced_by_other_books_are_told(tmp_path: Path) -> None:
    """Their bills would be averaged, one by `btu60` and one by `mine`."""
    first = provisioned(tmp_path, "a", 1)
    alone = SPEC.replace("[btu60, book.yaml]", "book.yaml")
    other = provisioned(tmp_path, "b", 2, spec=alone)
    by_another = alone.replace("instances_each: 2", "instances_each: 3")
    looked_at(tmp_path, first, provisioned(tmp_path, "c", 2, spec=by_another))
    with pytest.raises(StoreError, match="have another list of price books"):
        looked_at(tmp_path, other, first)


def test_the_same_files_elsewhere_are_the_same(tmp_path: Path) -> None:
    looked_at(tmp_path, *(provisioned(tmp_path, f"at{k}", k) for k in (1, 2, 3)))


def test_a_seed_that_would_count_twice_is_told_of(tmp_path: Path) -> None:
    rows = [
        {"run": run, "spec_hash": run, "controller": "btu", "seed": seed, "conditions": ""}
        for run, seed in (("a", 1), ("b", 1), ("c", 2))
    ]
    require_each_once(tmp_path, rows[1:])
    with pytest.raises(StoreError, match=r"a and b measure the same"):
        require_each_once(tmp_path, rows)
