"""The evaluation of Heinze et al.: what a run's figures are, and which claims follow from which."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from include.experiment.spec import parse_spec
from include.runs.stages import store_of
from include.studies.base import StudyData
from include.studies.fugu.metrics import METRICS, FuguMetrics, case_of, read_run
from include.studies.fugu.predicates import CONFIGURATIONS, DAYS
from include.studies.fugu.study import STUDY


def figures(utilisation, latency_ms, **changes):
    values = dict.fromkeys(METRICS, 0.0) | {
        "avg_utilisation": utilisation,
        "latency_p90_ms": latency_ms,
        "latency_mean_ms": 0.9 * latency_ms,
        "max_utilisation": 0.66,
        "hosts": 5.5,
        "migrations": 500,
        "overload_share": 0.02,
    }
    return values | changes


def the_paper():
    """What the text prints; where it says more or less, something that is."""
    local = {
        "default": figures(0.52, 1850),
        "lower 0.2": figures(0.48, 1500),
        "lower 0.4": figures(0.54, 2300),
        "upper 0.7": figures(0.50, 2800, migrations=900),
        "upper 0.9": figures(0.54, 3000, overload_share=0.1),
    }
    everywhere = {name: figures(0.5, 3900, max_utilisation=0.75) for name in CONFIGURATIONS}
    everywhere["default"] = figures(0.49, 2340, max_utilisation=0.75)
    sarsa = {
        "default": figures(0.58, 1700, hosts=5.0),
        "lower 0.2": figures(0.56, 1480, hosts=5.0),
        "lower 0.4": figures(0.60, 2000, hosts=5.0),
        "upper 0.7": figures(0.57, 1800, hosts=5.0),
        "upper 0.9": figures(0.62, 2300, hosts=5.0),
        "imp 0": figures(0.55, 2100),
        "imp 0.5": figures(0.55, 1845),
        "dur 160": figures(0.56, 1800),
    }
    cases = {
        (controller, name, DAYS[0]): one
        for controller, runs in (
            ("fugu-local", local), ("fugu-global", everywhere), ("fugu-sarsa", sarsa),
        )
        for name, one in runs.items()
    }  # fmt: skip
    for day, latency_ms in zip(DAYS[1:], (3600, 2500), strict=True):
        cases["fugu-local", "default", day] = figures(0.45, latency_ms)
        cases["fugu-sarsa", "default", day] = figures(0.57, 1900)
    return FuguMetrics({one: {1: run, 2: run} for one, run in cases.items()})


def changed(case, *runs):
    """The same, but for one case: a run for each seed, or one for both."""
    return FuguMetrics({**the_paper().runs, case: dict(zip((1, 2), runs * 2, strict=False))})


def test_one_claim_is_contradicted_by_the_paper_and_all_are_asked_of_both_seeds():
    rows = STUDY.claims_of(the_paper())
    assert [row["id"] for row in rows if row["holds"] != "yes"] == ["learning-local"]
    assert [row["id"] for row in rows if row["apart"] == "contradicted"] == ["learning-local"]
    rows = [row for row in rows if row["holds"] == "yes"]
    assert {row["seeds"] for row in rows} == {"2 of 2"}
    assert all(any(digit in row["measured"] for digit in "0123456789") for row in rows)


LOCAL, GLOBAL, SARSA = "fugu-local", "fugu-global", "fugu-sarsa"
FAILS: dict[str, Any] = {
    "local-default": (LOCAL, "default", figures(0.6, 1850)),
    "lower-decreased": (LOCAL, "lower 0.2", figures(0.53, 1500)),
    "lower-increased": (LOCAL, "lower 0.4", figures(0.54, 1700)),
    "upper-latency": (LOCAL, "upper 0.9", figures(0.54, 1800)),
    "upper-migrations": (LOCAL, "upper 0.7", figures(0.50, 2800, migrations=400)),
    "upper-overloads": (LOCAL, "upper 0.9", figures(0.54, 3000)),
    "local-maximum": (LOCAL, "upper 0.9", figures(0.54, 3000, max_utilisation=0.71)),
    "global-default": (GLOBAL, "default", figures(0.45, 2340, max_utilisation=0.75)),
    "global-latency": (GLOBAL, "upper 0.7", figures(0.5, 2000)),
    "global-maximum": (GLOBAL, "upper 0.7", figures(0.5, 3900)),
    "sarsa-utilisation": (SARSA, "upper 0.9", figures(0.63, 2300, hosts=5.0)),
    "sarsa-latency": (SARSA, "lower 0.2", figures(0.56, 1200, hosts=5.0)),
    "sarsa-robust": (SARSA, "upper 0.9", figures(0.62, 5000, hosts=5.0)),
    "sarsa-gains": (SARSA, "upper 0.7", figures(0.54, 1800)),
    "sarsa-higher": (SARSA, "upper 0.7", figures(0.50, 1800)),
    "sarsa-hosts": (SARSA, "default", figures(0.58, 1700, hosts=5.5)),
    "day-2": (LOCAL, "default", figures(0.45, 2000), DAYS[1]),
    "days-stable": (SARSA, "default", figures(0.57, 4000), DAYS[1]),
    "days-better": (SARSA, "default", figures(0.44, 1900), DAYS[2]),
    "learning-utilisation": (SARSA, "imp 0", figures(0.57, 2100)),
    "learning-latency": (SARSA, "imp 0", figures(0.55, 1800)),
    "more-worse": (SARSA, "imp 0.5", figures(0.59, 1845)),
    "impact-worst": (SARSA, "dur 160", figures(0.54, 1846)),
    "learning-local": (SARSA, "imp 0.5", figures(0.50, 1845)),
}


def holding_and_failing(claim):
    """Figures of which it holds, and others that differ in what it is about."""
    controller, configuration, becomes, *day = FAILS[claim]
    holding = the_paper()
    if claim == "learning-local":
        holding = changed((SARSA, "imp 0", DAYS[0]), figures(0.55, 1840))
    return holding, changed((controller, configuration, *(day or DAYS[:1])), becomes)


def test_a_claim_may_hold_for_the_means_and_not_for_every_seed():
    low, high = figures(0.5, 2000), figures(0.5, 9000)
    rows = STUDY.claims_of(changed(("fugu-global", "upper 0.7", DAYS[0]), low, high))
    (row,) = (row for row in rows if row["id"] == "global-latency")
    assert (row["holds"], row["seeds"]) == ("yes", "1 of 2")


def test_the_experiments_are_those_of_section_v():
    cases = {case_of(point) for point in STUDY.runs([1])}
    configurability = {
        (name, configuration, DAYS[0])
        for name in ("fugu-local", "fugu-global", "fugu-sarsa")
        for configuration in CONFIGURATIONS
    }
    workloads = {(name, "default", day) for name in ("fugu-local", "fugu-sarsa") for day in DAYS}
    adaptivity = {("fugu-sarsa", name, DAYS[0]) for name in ("imp 0", "imp 0.5", "dur 160")}
    assert cases == configurability | workloads | adaptivity
    assert len(STUDY.runs([1])) == len(cases), "what two experiments share is measured once"


def test_figures_of_a_run_are_means_over_points_and_percentiles_of_the_mean_query(tmp_path):
    raw = {"name": "x", "controllers": ["fugu-local"], "topology": "trading_queries"}
    (spec,) = parse_spec(raw, source="x").points()
    store = store_of(spec, tmp_path)
    for part, start_s in enumerate((5.0, 15.0)):
        times_s = np.repeat([start_s, start_s + 5.0], 2)
        host = {
            "time_s": times_s,
            "host": ["host-1", "host-2"] * 2,
            "cpu_share": np.array([0.2, 0.6, 0.4, 1.0]),
            "memory_share": np.zeros(4),
            "instances": np.ones(4, dtype=np.int64),
        }
        store.write_rows("host_utilisation", part, host)
        tenant = {
            "time_s": times_s,
            "tenant": ["q1", "q2"] * 2,
            "latency_ms": np.array([100.0, 300.0, 50.0, np.nan]) * (1 + part),
            "tail_latency_ms": np.zeros(4),
            "juice": np.ones(4),
            "utility": np.zeros(4),
            "max_utility": np.zeros(4),
        }
        store.write_rows("tenant", part, tenant)
        activity = {
            "time_s": times_s,
            "activity": ["migration", "migration", "host_leased", "host_released"],
            "operator": [""] * 4,
            "instance": [""] * 4,
            "host": ["host-1"] * 4,
        }
        store.write_rows("scaling_activity", part, activity)
    found = read_run(StudyData(tmp_path / "x", [spec]), spec)
    assert (found["points"], found["hosts"]) == (4, 2.0)
    assert found["min_utilisation"] == pytest.approx(0.3)
    assert found["avg_utilisation"] == pytest.approx(0.55)
    assert found["max_utilisation"] == pytest.approx(0.8)
    # Means of the queries that delivered: 200, 50, 400 and 100 ms.
    assert found["latency_p50_ms"] == pytest.approx(150)
    assert found["latency_p90_ms"] == pytest.approx(340)
    assert found["latency_mean_ms"] == pytest.approx(187.5)
    assert (found["migrations"], found["host_changes"]) == (4, 4)
    assert found["overload_share"] == pytest.approx(0.25)
