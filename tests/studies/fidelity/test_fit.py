"""A fit of what the simulator has made finds what it was made with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from include.cli.fidelity import fit_flink
from include.experiment.run import Run, resolve
from include.experiment.spec import parse_spec
from include.model.errors import SpecError, StoreError
from include.runs.measurements.store import to_arrow
from include.runs.stages import run_all, store_of
from include.studies.fidelity import figures
from include.studies.fidelity.comparison import predictions
from include.studies.fidelity.fit import as_yaml, fit
from include.studies.fidelity.measure import why_unsound
from include.testbeds.virtual.calibration import PARAMETERS, VirtualCalibration
from tests.problems import problems_told

GAPS_S = [1.5, 2.5, 4.0]
BUFFER_ITEMS = 2
CHECKPOINT_S = 1.0
TOPOLOGY = """
name: pair
level_unit: machines
emission_period_s: 1
sources:
  S1: {label: One, items_per_level: 1, size_bytes: 10}
  S2: {label: Two, items_per_level: 1, size_bytes: 10}
operators:
  O1: {label: Slow, slo_ms: 900, cpu_shares: 500, memory_mb: 100, storage_mb: 10, service_ms: 300}
  O2: {label: Fast, slo_ms: 900, cpu_shares: 500, memory_mb: 100, storage_mb: 10, service_ms: 100}
  O3: {label: Last, slo_ms: 900, cpu_shares: 500, memory_mb: 100, storage_mb: 10, service_ms: 20}
edges:
  - {from: S1, to: O1}
  - {from: S2, to: O2}
  - {from: O1, to: O3}
  - {from: O2, to: O3}
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> tuple[Run, Path]:
    """A run of the simulator that is too slow for what comes, so that sources must wait."""
    root = tmp_path_factory.mktemp("fit")
    (root / "pair.yaml").write_text(TOPOLOGY)
    (root / "known.yaml").write_text(
        "latency_ms: 0\nservice_cv: 0.5\nsample_every_items: 1\nhost_boot_s: [20, 20]\n"
        f"rescale: {{gap_s: {GAPS_S}}}\nbuffer_items: {{O1: 2, O2: 2, O3: 2}}\n"
    )
    (spec,) = parse_spec(
        {
            "name": "known",
            "topology": str(root / "pair.yaml"),
            "calibration": str(root / "known.yaml"),
            "controllers": [{"name": "manual", "instances": "O2=2"}],
            "patterns": [{"name": "stepwise", "levels": [1, 25], "hold_s": 60}],
            "duration_min": 5,
        },
        source="test",
    ).points()
    run_all(spec, root)
    rows = rescales([*GAPS_S, 99.0], [4] * 4, reprocessed_items=[10, 20, 60, 900])
    rows["cause"][-1] = "crash"
    write(store_of(spec, root).part("rescale", 0), "rescale", rows)
    return resolve(spec), root


def rescales(gaps_s: list[float], instances: list[int], **columns: Any) -> dict[str, Any]:
    """Those that a controller asked for every 40 s: down a second later, and up soon."""
    after_s = {"asked_s": 50.0, "down_s": 51.0, "up_s": 51.2}
    times = {name: [at_s + 40 * k for k in range(len(gaps_s))] for name, at_s in after_s.items()}
    every = {"cause": "controller", "reprocessed_items": 10, "checkpoint_s": CHECKPOINT_S,
             "checkpoint_bytes": 100, "instances_before": 3}  # fmt: skip
    alike = {name: [value] * len(gaps_s) for name, value in every.items()}
    return {**times, "gap_s": gaps_s, "instances_after": instances, **alike, **columns}


def write(path: Path, table: str, columns: Mapping[str, Any]) -> None:
    """Rows of a run that is complete, for which the store takes none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(to_arrow(table, columns), path)


@contextmanager
def beside(measured: tuple[Run, Path], **tables: Mapping[str, Any]) -> Iterator[None]:
    """More rows of the run, for as long as the block."""
    run, root = measured
    parts = {table: store_of(run.spec, root).part(table, 998) for table in tables}
    for table, columns in tables.items():
        write(parts[table], table, columns)
    try:
        yield
    finally:
        for part in parts.values():
            part.unlink()


def test_it_finds_service_times_room_and_gaps(
    measured: tuple[Run, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, root = measured
    found = fit([run], root)
    for name, service_ms in (("O1", 300.0), ("O2", 100.0), ("O3", 20.0)):
        estimate = found.service_ms[name]
        assert estimate.low < service_ms < estimate.high
        assert estimate.value == pytest.approx(service_ms, rel=0.1)
    assert found.service_cv.value == pytest.approx(0.5, abs=0.05)
    assert found.buffer_items.value == BUFFER_ITEMS
    assert found.buffer_items.rows > 100
    monkeypatch.setattr("include.studies.fidelity.fit.LEAST_ROWS", found.buffer_items.rows + 1)
    assert fit([run], root).buffer_items.value == 5, "too few to say"
    assert found.gap_s == tuple(gap_s - CHECKPOINT_S for gap_s in GAPS_S)
    assert found.gap_median_s.value == 2.5
    assert (found.gap_median_s.low, found.gap_median_s.high) == (1.5, 4.0), "of three"
    assert found.buffer_items.low <= BUFFER_ITEMS <= found.buffer_items.high
    assert found.undone_items.value == 20
    assert found.release_s == (0, 0), "nobody was released"


def test_a_release_is_timed_from_the_checkpoint_of_what_ran_there(
    measured: tuple[Run, Path],
) -> None:
    run, root = measured
    hosts, released_s, ended_s = ["a", "b", "c"], [60.0, 70.0, 89.0], [60.5, 71.5, 91.0]
    activity: dict[str, Any] = {name: [""] * 3 for name in ("operator", "instance")}
    activity |= {"time_s": released_s, "activity": ["host_released"] * 3, "host": hosts}
    lease: dict[str, Any] = {
        "host": hosts,
        "ordered_s": [1.0] * 3,
        "ended_s": ended_s,
        "released": [True] * 3,
    }
    lease |= {"flavor": ["small"] * 3, "paid_until_s": [601.0] * 3}
    with beside(measured, scaling_activity=activity, lease=lease):
        assert fit([run], root).release_s == (0.75, 1.25)


def test_what_every_instance_adds_to_a_gap_is_taken_out_of_the_gaps(
    measured: tuple[Run, Path],
) -> None:
    run, root = measured
    instances = list(range(5, 65, 5))
    gaps_s = [1.25 + 0.05 * count for count in instances]
    with beside(measured, rescale=rescales(gaps_s, instances)):
        found = fit([run], root)
    assert found.per_instance_s.value == pytest.approx(0.05, abs=0.002)
    assert found.gap_s.count(0.25) > len(instances) // 2
    assert fit([run], root).per_instance_s.value == 0, "all had as many instances"


def test_a_median_of_very_many_gaps_has_an_interval(measured: tuple[Run, Path]) -> None:
    run, root = measured
    gaps_s = [1 + number / 10_000 for number in range(10_000)]
    with beside(measured, rescale=rescales(gaps_s, [4] * len(gaps_s))):
        median = fit([run], root).gap_median_s
    assert 1.48 < median.low < median.value < median.high < 1.52


def test_the_file_is_a_calibration_that_says_what_it_has_seen(
    measured: tuple[Run, Path], tmp_path: Path
) -> None:
    run, root = measured
    text = as_yaml(fit([run], root), 1.0)
    path = tmp_path / "fitted.yaml"
    path.write_text(text)
    loaded = PARAMETERS.load_calibration(str(path))
    assert isinstance(loaded, VirtualCalibration)
    assert loaded.rescale is not None
    assert loaded.rescale.gap_s == tuple(gap_s - CHECKPOINT_S for gap_s in GAPS_S)
    assert set(loaded.buffer_items) == {"O1", "O2", "O3"}
    assert run.spec.run_id in text


def test_a_run_that_was_never_rescaled_says_so(measured: tuple[Run, Path]) -> None:
    run, root = measured
    path = store_of(run.spec, root).part("rescale", 0)
    stored = path.read_bytes()
    write(path, "rescale", {})
    try:
        with pytest.raises(StoreError, match="no run has a rescale"):
            fit([run], root)
    finally:
        path.write_bytes(stored)


def test_a_run_counts_unless_hosts_were_lost_that_nobody_asked_to_lose(
    measured: tuple[Run, Path],
) -> None:
    run, root = measured
    assert why_unsound(run, root) == ""
    event = {"time_s": [5.0, 6.0, 7.0], "event": ["host_lost", "host_lost", "provider_restarted"]}
    with beside(measured, event={**event, "subject": ["a", "b", "c"], "detail": [""] * 3}):
        assert why_unsound(run, root) == "2 x host_lost, 1 x provider_restarted"


def figures_when(
    measured: tuple[Run, Path], monkeypatch: pytest.MonkeyPatch, **changes: float | None
) -> Mapping[str, float]:
    """Figures of the run with made-up tables; ``changes`` are columns of ``outcomes``."""
    run, root = measured
    name = run.spec.run_id
    levels = ("real_time", "near_real_time", "relaxed")
    outcome = {f"strict_{level}_compliance_percent": 90.0 for level in levels}
    outcome |= {"end_to_end_near_real_time_compliance_percent": 80.0, "age_p95_ms": 2000.0}
    outcome |= {"resource_cost": 7.0, "strict_total_cost": 8.0}
    bills = [
        {"run": name, "resource_cost": 7.0, "strict_relaxed_total_cost": total,
         "end_to_end_relaxed_total_cost": total + 1} for total in (9.0, 8.0, 10.0)
    ]  # fmt: skip
    staged = {
        "outcomes": [{"run": name, **outcome, **changes}],
        "cost": bills,
        "timeline": [{"run": name, "ready_instances": 2, "waiting_items": n} for n in (4, 6)],
    }
    monkeypatch.setattr(figures, "read_staged", lambda folder, table: staged[table])
    return figures.figures_of(root, [run.spec])[name]


def test_costs_are_those_of_the_price_book_that_the_run_planned_with(
    measured: tuple[Run, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    figure = figures_when(measured, monkeypatch)
    assert figure["end_to_end_total_cost"] == 9.0
    assert (figure["end_to_end_percent"], figure["waiting_mean_items"]) == (80.0, 5.0)


def test_a_run_that_completed_nothing_has_no_age_to_predict(
    measured: tuple[Run, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = figures_when(measured, monkeypatch)
    stuck = figures_when(measured, monkeypatch, age_p95_ms=None)
    assert whole.keys() - stuck.keys() == {"age_p95_s"}
    case = ("walk", "tide", 802)
    for pair in (whole, stuck), (stuck, whole), (stuck, stuck):
        rows = predictions("known", *({case: each} for each in pair), fitted=())
        assert {row.figure for row in rows} == stuck.keys()


def test_runs_that_cannot_be_fitted_together_are_named(measured: tuple[Run, Path]) -> None:
    run, root = measured
    topology = replace(run.topology, edges=run.topology.edges[1:])
    sampled = replace(run, topology=topology, calibration={"sample_every_items": 5})
    problems = problems_told(fit, [run, sampled], root)
    assert [problem.partition("; ")[2] for problem in problems] == [
        "fit it by itself", "measure it with sample_every_items: 1"
    ]  # fmt: skip


def test_runs_that_are_on_no_engine_are_refused(measured: tuple[Run, Path]) -> None:
    run, root = measured
    with pytest.raises(SpecError, match=f"{run.spec.run_id} was simulated; give runs"):
        fit_flink([root / "known"], root / "fitted.yaml", "")
