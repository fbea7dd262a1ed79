"""Claims of Henge: every one has a predicate, and predicates read runs as they should."""

from __future__ import annotations

import numpy as np
import pytest

from include.experiment.spec import RunSpec
from include.model.decision import Reason
from include.studies.henge.metrics import HengeMetrics, HengeRun, JobChange
from include.studies.henge.predicates import PREDICATES
from include.studies.henge.study import CLAIMS, SPECS, claims_of, runs

TIMES_S = np.arange(10.0, 2401.0, 10.0)


def a_run(
    topology: str,
    utility: np.ndarray,
    changes: tuple[JobChange, ...] = (),
    controller: str = "henge",
) -> HengeRun:
    """Two jobs worth 10 and 20; ``utility`` has one row per time, or one for all."""
    spec = RunSpec(
        experiment="x",
        controller=controller,
        pattern="constant",
        btu_min=40,
        seed=1,
        duration_min=40,
        topology=topology,
    )
    values = np.broadcast_to(utility, (TIMES_S.size, 2))
    return HengeRun(
        spec=spec,
        jobs=("t1", "t2"),
        times_s=TIMES_S,
        utility=values,
        juice=values,
        max_utility=np.array([10.0, 20.0]),
        changes=changes,
        instances_at_end={},
    )


def a_reconfiguration(time_s: float, job: str) -> JobChange:
    return JobChange(time_s, job, 0, Reason.SLO_VIOLATED)


def asked(predicate: str, *runs: HengeRun) -> tuple[bool, str]:
    return PREDICATES[predicate](HengeMetrics(runs))


def test_every_claim_has_its_predicate_and_every_predicate_its_claim() -> None:
    asked_for = [claim["predicate"] for claim in CLAIMS]
    assert sorted(asked_for) == sorted(PREDICATES)
    assert len({claim["id"] for claim in CLAIMS}) == len(CLAIMS)


def test_every_experiment_is_there() -> None:
    names = {name.removeprefix("henge_") for name in SPECS}
    assert names == {
        "initial", "priorities", "hybrid", "spikes", "triple", "diurnal", "production",
        "cpu_spike", "stateful", "growing", "nodes", "outage",
    }  # fmt: skip


def test_what_experiments_share_is_run_once() -> None:
    assert {run.experiment for run in runs()} == {"henge"}
    assert len({run.run_id for run in runs()}) == len(runs())


def test_claims_without_runs_are_unknown() -> None:
    run = a_run("tenants_priorities", np.array([10.0, 20.0]))
    rows = claims_of(HengeMetrics([run]))
    known = [row["id"] for row in rows if row["holds"]]
    assert known == ["priorities-order", "priorities-time"]
    assert len(rows) == len(CLAIMS)


def test_satisfaction_is_of_the_jobs_that_are_there() -> None:
    run = a_run("x", np.array([5.0, np.nan]))
    assert run.satisfaction[0] == 50
    assert run.at_max(0) is None


@pytest.mark.parametrize(
    ("order", "holds"), [(("t2", "t1"), True), (("t1", "t2"), False), (("t2", "t2", "t1"), True)]
)
def test_the_order_of_priorities(order: tuple[str, ...], holds: bool) -> None:
    changes = tuple(a_reconfiguration(900.0 + 60 * i, job) for i, job in enumerate(order))
    run = a_run("tenants_priorities", np.array([10.0, 20.0]), changes)
    assert asked("priorities_order", run)[0] is holds


@pytest.mark.parametrize(("reached_s", "holds"), [(1500.0, True), (1900.0, False)])
def test_when_the_maximum_is_reached(reached_s: float, holds: bool) -> None:
    utility = np.where(TIMES_S[:, None] < reached_s, [[1.0, 2.0]], [[10.0, 20.0]])
    answer = asked("priorities_time", a_run("tenants_priorities", utility))
    assert answer == (holds, f"maximum at {reached_s:.0f} s after 0 rounds")


@pytest.mark.parametrize(("at_s", "holds"), [(1020.0, True), (1100.0, False), (1690.0, True)])
def test_an_action_in_the_outage_is_found(at_s: float, holds: bool) -> None:
    run = a_run("tenants_outage", np.array([1.0, 2.0]), (a_reconfiguration(at_s, "t1"),))
    assert asked("outage_still", run)[0] is holds


def test_averages_of_the_diurnal_workload_are_compared() -> None:
    runs = [
        a_run("tenants_diurnal", np.array(worth), controller=name)
        for name, worth in (
            ("henge", [9.0, 18.0]),
            ("manual", [8.0, 16.0]),
            ("default-storm", [0.5, 1.0]),
        )
    ]
    assert asked("diurnal_average", *runs) == (True, "90.00 % against 5.00 %")
    assert asked("diurnal_manual", *runs) == (True, "90.00 % against 80.00 %")
    holds, numbers = asked("diurnal_percentiles", *runs)
    assert holds
    assert "manual 80.0, 80.0, 80.0 %" in numbers
    worse = [runs[1], a_run("tenants_diurnal", np.array([7.0, 14.0])), runs[2]]
    assert asked("diurnal_manual", *worse)[0] is False
