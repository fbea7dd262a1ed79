"""The results of runs on Flink, from published metrics."""

from __future__ import annotations

import pytest

from infra.flink.results import results


def _metric(run: str, metric: str, value: float, **changes: object) -> dict[str, object]:
    row = {"run": run, "topology": "t", "pattern": "p", "controller": run[:-1], "seed": 1}
    return {**row, "btu_min": 1.0, "metric": metric, "value": value, **changes}


def test_a_run_is_a_row_with_its_metrics() -> None:
    rows = [
        _metric("tide1", "resource_cost", 12.0),
        _metric("tide1", "strict_relaxed_compliance", 97.126),
        _metric("tide1", "reprocessed_items", 800.0),
        _metric("ds21", "rescales", 16.0),
        _metric("ds21", "rescale_gap_p50_s", 0.512),
    ]
    run = {"topology": "t", "pattern": "p", "seed": 1}
    assert results(rows) == [
        {**run, "controller": "ds2", "rescales": 16.0, "rescale_gap_p50_s": 0.51},
        {**run, "controller": "tide", "resource_cost": 12.0, "relaxed_compliance_percent": 97.13},
    ]


def test_a_run_that_is_billed_twice_is_refused() -> None:
    rows = [_metric("hpa1", "resource_cost", cost, btu_min=cost) for cost in (1.0, 10.0)]
    with pytest.raises(KeyError, match="hpa1 has resource_cost under several BTUs"):
        results(rows)
