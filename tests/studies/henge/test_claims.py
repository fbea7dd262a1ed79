"""Each claim of Henge holds of runs in which it does, and fails of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from include.experiment.spec import SPECS
from include.model.decision import Reason
from include.studies.henge.metrics import HengeMetrics, HengeRun, JobChange
from include.studies.henge.study import STUDY
from tests.builders import run_spec

FULL = (10.0, 20.0)
MIDDLE = "linear.bolt_middle"


def a_run(
    topology: str,
    *levels: tuple[float, float],
    until_s: float = 30_000.0,
    changes: Sequence[JobChange] = (),
    controller: str = "henge",
) -> HengeRun:
    """Two jobs worth 10 and 20. ``levels`` are (from second, share of the maximum)."""
    spec = run_spec(controller=controller, pattern="constant", topology=topology)
    times_s = np.arange(10.0, until_s + 1, 10.0)
    share = np.ones(times_s.size)
    for from_s, level in levels:
        share[times_s > from_s] = level
    utility = share[:, None] * np.array([FULL])
    return HengeRun(
        spec=spec, jobs=("t1_stateless", "t2_stateful"), times_s=times_s, utility=utility,
        juice=share[:, None] * np.ones((1, 2)), max_utility=np.array(FULL),
        changes=tuple(changes), instances_at_end={MIDDLE: 20},
    )  # fmt: skip


def acts(*times_s: float, job: str = "t1_stateless", reason: Reason = Reason.SLO_VIOLATED):
    """One change per time; those for a met SLO stop instances."""
    stopped = 5 if reason is Reason.SLO_MET else 0
    return [JobChange(at_s, job, stopped, reason) for at_s in times_s]


def initial(
    slo_ms: int, *, executors=(20, 40), rounds=(1, 2), share=1.0, controller="henge"
) -> list[HengeRun]:
    """Runs of the linear job from ten executors, at once and twice the rate."""
    found = []
    for level, count, number in zip((1.0, 2.0), executors, rounds, strict=True):
        changes = acts(*(900.0 + 60 * i for i in range(number)))
        run = a_run(f"tenants_linear_{slo_ms}", (0, share), changes=changes, controller=controller)
        spec = replace(
            run.spec,
            pattern_options={"level": level}, controller_options={"instances": f"{MIDDLE}=10"},
        )  # fmt: skip
        found.append(replace(run, spec=spec, instances_at_end={MIDDLE: count}))
    return found


def diurnal(henge: float, manual: float, default: float = 0.05, **options) -> list[HengeRun]:
    """Constant shares of the three, over 48 hours of ten minutes."""
    return [
        a_run("tenants_diurnal", (0, share), controller=name, **options)
        for name, share in (("henge", henge), ("manual", manual), ("default-storm", default))
    ]


def ten_jobs(first: int, second: int) -> HengeRun:
    """Jobs that are reconfigured once each in the first peak, and some in the second."""
    jobs = tuple(f"t{n}" for n in range(10))
    run = a_run("tenants_diurnal", (0, 0.9))
    times_s = [(5000.0 + 10 * i, i) for i in range(first)]
    times_s += [(20_000.0 + 10 * i, i) for i in range(second)]
    changes = tuple(JobChange(at_s, jobs[i % 10], 0, Reason.SLO_VIOLATED) for at_s, i in times_s)
    return replace(run, jobs=jobs, changes=changes)


def of_ten(topology: str, each: int) -> HengeRun:
    """Ten jobs, each reconfigured so often."""
    jobs = tuple(f"t{n}" for n in range(10))
    changes = [one for job in jobs for one in acts(*range(900, 900 + each), job=job)]
    return replace(a_run(topology, changes=changes), jobs=jobs)


def production(*back_s: float, gain: float) -> HengeRun:
    """Reversions at some times; before each the utility is lower by ``gain``."""
    levels = [(0.0, 0.8)]
    for at_s in back_s:
        levels += [(at_s - 60, 0.8 - gain), (at_s, 0.8)]
    changes = acts(100, 200, 300) + acts(*back_s, reason=Reason.BEST_CONFIGURATION)
    return a_run("tenants_production", *levels, changes=changes)


def spiked(low: float, after: float, reduced: tuple[str, ...] = (), at_s: float = 22_000.0):
    """Utility falls at 21800 s and is somewhere from 23000 s on."""
    changes = [one for job in reduced for one in acts(at_s, job=job, reason=Reason.SLO_MET)]
    return a_run("tenants_cpu_spike", (21_800, low), (22_900, after), changes=changes)


def stateful(extra: int, share: float = 1.0) -> HengeRun:
    changes = acts(*range(1000, 1400, 100))
    changes += acts(*range(1050, 1050 + 100 * (4 + extra), 100), job="t2_stateful")
    return a_run("tenants_stateful", (2000, share), changes=changes)


def growing(*levels: tuple[float, float], late: Sequence[JobChange] = ()) -> HengeRun:
    return a_run("tenants_growing", *levels, until_s=36_000.0, changes=late)


def nodes(ends: Sequence[float] = (0.5, 0.9, 1.0, 1.0), rounds=(4, 2, 2, 2)) -> list[HengeRun]:
    """Clusters of 10 to 40 nodes; ``ends`` is the share of the worse of two jobs."""
    found = []
    for number, end, acted in zip((10, 20, 30, 40), ends, rounds, strict=True):
        run = a_run(f"tenants_40_on_{number}", changes=acts(*range(1000, 1000 + acted)))
        found.append(replace(run, utility=run.utility * np.array([end, 1.0])))
    return found


MANUAL = [
    run
    for slo, share in ((40, 0.7), (50, 0.9), (60, 1.0), (70, 1.0))
    for run in initial(slo, share=share, controller="manual")
]
R60 = initial(60, executors=(21, 44), rounds=(2, 5))
R70 = initial(70, executors=(18, 36))
R40 = initial(40, executors=(25, 40), rounds=(1, 1))
R50 = initial(50, executors=(30, 50), rounds=(2, 3))
T1_FIRST = acts(900, job="t1_stateless") + acts(960, job="t2_stateful")
T2_FIRST = acts(900, job="t2_stateful") + acts(960, job="t1_stateless")
LATE_NEW = [*acts(*range(29_000, 29_040), job="after_8h.1")]

HOLDS_AND_FAILS: dict[str, tuple[list[HengeRun], list[HengeRun]]] = {
    "initial-reaches-max": (R60 + R70, R60 + initial(70, share=0.98)),
    "initial-unachievable": (MANUAL, [*MANUAL[2:], *initial(40, controller="manual")]),
    "initial-rounds-70": (R70, initial(70, rounds=(2, 2))),
    "initial-rounds-60": (R60, initial(60, rounds=(2, 6))),
    "initial-stringent-more": (R60 + R70, R60 + initial(70, executors=(22, 36))),
    "initial-hogging": (R40 + R50, R50 + initial(40, executors=(30, 50), rounds=(2, 3))),
    "priorities-order": (
        [a_run("tenants_priorities", changes=T2_FIRST)],
        [a_run("tenants_priorities", changes=T1_FIRST)],
    ),
    "priorities-time": (
        [a_run("tenants_priorities", (0, 0.5), (1700, 1.0))],
        [a_run("tenants_priorities", (0, 0.5), (1900, 1.0))],
    ),
    "hybrid-time": (
        [a_run("tenants_hybrid", (0, 0.5), (1690, 1.0))],
        [a_run("tenants_hybrid", (0, 0.5), (1750, 1.0))],
    ),
    "hybrid-once": (
        [of_ten("tenants_hybrid", each=1)],
        [of_ten("tenants_hybrid", each=0)],
    ),
    "spikes-hidden": ([a_run("tenants_spikes")], [a_run("tenants_spikes", (4000, 0.99))]),
    "juice-independent": (
        [a_run("tenants_triple", (4100, 0.992), (4200, 1.0))],
        [a_run("tenants_triple", (4100, 0.986), (4200, 1.0))],
    ),
    "triple-juice": (
        [a_run("tenants_triple", (4100, 0.9), (5000, 1.0))],
        [a_run("tenants_triple", (4100, 0.9), (5800, 1.0))],
    ),
    "diurnal-average": (diurnal(0.9, 0.8), diurnal(0.84, 0.8)),
    "diurnal-manual": (diurnal(0.9, 0.8), diurnal(0.8, 0.9)),
    "diurnal-percentiles": (diurnal(0.9, 0.8), diurnal(0.9, 0.92)),
    "diurnal-hour-15": ([ten_jobs(10, 5)], [ten_jobs(9, 5)]),
    "diurnal-second-peak": ([ten_jobs(10, 5)], [ten_jobs(10, 10)]),
    "production-median": (
        [a_run("tenants_production", (0, 0.7))],
        [a_run("tenants_production", (0, 0.67))],
    ),
    "production-reversion": ([production(9000, gain=0.1)], [production(9000, gain=-0.1)]),
    "spike-recovers": ([spiked(0.5, 1.0)], [spiked(0.5, 0.8)]),
    "spike-reduction": (
        [spiked(0.5, 1.0, ("t1_stateless", "t2_stateful"))],
        [spiked(0.5, 1.0, ("t1_stateless", "t2_stateful"), at_s=900)],
    ),
    "stateful-converge": ([stateful(2)], [stateful(0)]),
    "growing-max": ([growing()], [growing((14_000, 0.9))]),
    "growing-contention": ([growing((28_800, 0.8))], [growing((28_800, 0.97))]),
    "growing-old-jobs": (
        [growing(late=LATE_NEW)],
        [growing(late=acts(*range(29_000, 29_100)))],
    ),
    "nodes-overloaded": (nodes(), [a_run("tenants_40_on_10", (0, 0.9))]),
    "nodes-more": (nodes(), nodes((0.5, 1.0, 0.9, 1.0))),
    "nodes-rounds": (nodes(), nodes(rounds=(5, 2, 2, 2))),
    "outage-still": (
        [a_run("tenants_outage", changes=acts(1000, 1700))],
        [a_run("tenants_outage", changes=acts(1500))],
    ),
    "outage-recovers": ([a_run("tenants_outage")], [a_run("tenants_outage", (29_600, 0.9))]),
}


def asked(claim: str, runs: Sequence[HengeRun]) -> dict[str, str]:
    (row,) = (row for row in STUDY.claims_of(HengeMetrics(runs)) if row["id"] == claim)
    return row


AGAIN = [*acts(900, 960, job="t2_stateful"), *acts(1020)]


@pytest.mark.parametrize(
    ("claim", "runs", "holds"),
    [
        ("spike-recovers", [spiked(0.97, 1.0)], "no"),  # nothing to recover from
        ("production-reversion", [production(9000, 9300, gain=0.1)], "no"),  # thrashing
        ("production-reversion", [production(gain=0.0)], "no"),  # none at all
        ("stateful-converge", [stateful(2, share=0.9)], "no"),
        ("initial-hogging", R50 + initial(40, executors=(25, 40), rounds=(2, 3)), "no"),
        ("priorities-order", [a_run("tenants_priorities", changes=AGAIN)], "yes"),
        ("outage-still", [a_run("tenants_outage", changes=acts(1020))], "yes"),
        ("outage-still", [a_run("tenants_outage", changes=acts(1100))], "no"),
        ("outage-still", [a_run("tenants_outage", changes=acts(1690))], "yes"),
    ],
)
def test_what_the_claim_says_besides_is_asked_too(claim, runs, holds):
    assert asked(claim, runs)["holds"] == holds


@pytest.mark.parametrize(
    ("claim", "runs", "numbers"),
    [
        (
            "priorities-time",
            [a_run("tenants_priorities", (0, 0.1), (1495, 1.0))],
            "maximum at 1500 s after 0 rounds",
        ),
        ("diurnal-average", diurnal(0.9, 0.8), "90.00 % against 5.00 %"),
        ("diurnal-manual", diurnal(0.9, 0.8), "90.00 % against 80.00 %"),
        ("diurnal-percentiles", diurnal(0.9, 0.8), "manual 80.0, 80.0, 80.0 %"),
    ],
)
def test_a_claim_stands_beside_the_numbers_that_it_was_asked_of(claim, runs, numbers):
    row = asked(claim, runs)
    assert (row["holds"], numbers in row["measured"]) == ("yes", True)


def test_claims_without_runs_are_unknown():
    rows = STUDY.claims_of(HengeMetrics([a_run("tenants_priorities")]))
    known = [row["id"] for row in rows if row["holds"]]
    assert known == ["priorities-order", "priorities-time"]
    assert len(rows) == len(STUDY.claims)


def test_satisfaction_is_of_the_jobs_that_are_there():
    run = a_run("x")
    run = replace(run, utility=run.utility * np.array([0.5, np.nan]))
    assert run.satisfaction[0] == 50
    assert run.at_max(0) is None


def test_every_experiment_is_there():
    assert sorted(STUDY.specs) == sorted(path.stem for path in SPECS.glob("henge_*.yaml"))


def test_cells_are_of_reconfigurations_and_of_instances_at_the_end():
    rows = STUDY.results_of(HengeMetrics(R60)).tables["cells"]
    found = {row["metric"]: row for row in rows}
    assert found["reconfigurations_count"]["mean"] == 3.5
    assert found["instances_at_end_count"]["sigma"] == pytest.approx(np.std([21, 44], ddof=1))
