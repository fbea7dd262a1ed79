"""The same runs on another testbed, and figures of both from tables that passed their checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from include.experiment.run import Run
from include.experiment.spec import RunSpec
from include.results.quality.gates import check_tables
from include.results.tables.build import build_tables
from include.results.tables.measured import measured_rows
from include.runs.batch import require_complete, run_batch
from include.runs.stages import store_of
from include.studies.fidelity.comparison import Case, Figures, case_of
from include.studies.fidelity.figures import figures_of

SIMULATED = "_simulated"
"""What the experiment of the predictions ends with; the name of the measured one is before it."""


NOT_ASKED_FOR = (
    "host_lost", "host_boot_failure", "job_manager_restarted", "provider_restarted", "rescale_late",
)  # fmt: skip
"""Events of a run without faults that say that the machine could not keep up with the engine."""


LATEST_TIMERS_MS = 50.0
"""Of 99 in 100 timers, in any window: as the checks of the tables have it."""


def why_unsound(run: Run, root: Path) -> str:
    """What speaks against a run as a measurement of its policy; empty where nothing does."""
    store = store_of(run.spec, root)
    events = measured_rows(store, "event", ("event",))["event"].to_pylist()
    counts = Counter(() if run.spec.faults else (e for e in events if e in NOT_ASKED_FOR))
    faults = [f"{count} x {event}" for event, count in sorted(counts.items())]
    if any(store.part("machine", 0).parent.glob("part-*.parquet")):
        lags_ms = measured_rows(store, "machine", ("timer_lag_p99_ms",))["timer_lag_p99_ms"]
        if (lag_ms := max(lags_ms.to_pylist(), default=0.0)) > LATEST_TIMERS_MS:
            faults.append(f"timers {lag_ms:.0f} ms late")
    return ", ".join(faults)


def measured_figures(runs: Sequence[Run], root: Path) -> dict[Case, Figures]:
    """Figures of complete runs of one experiment, from tables that are built and checked anew."""
    return _figures([run.spec for run in runs], root)


def predicted_figures(
    runs: Sequence[Run], root: Path, testbed: str, calibration: str, processes: int | None = None
) -> dict[Case, Figures]:
    """Figures of the same runs on a testbed that needs no engine, with a calibration.

    Runs that this code has predicted before are taken as they are. Raises TestbedError with every
    prediction that failed, SpecError where the testbed or the calibration does not fit.
    """
    specs = [
        replace(
            run.spec,
            experiment=f"{run.spec.experiment}{SIMULATED}",
            testbed=testbed,
            calibration=calibration,
        )
        for run in runs
    ]
    require_complete(run_batch(specs, root, processes=processes))
    return _figures(specs, root)


def _figures(specs: list[RunSpec], root: Path) -> dict[Case, Figures]:
    folder = root / specs[0].experiment
    build_tables(folder, [spec.run_id for spec in specs])
    check_tables(folder)
    figures = figures_of(root, specs)
    return {case_of(spec): figures[spec.run_id] for spec in specs if spec.run_id in figures}
