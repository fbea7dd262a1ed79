"""Simulator against reality: ``python -m include.studies.live``.

Measures an over-provisioned run and a scaled one on the live testbed (about ten minutes; runs that
are there already are taken as they are), writes what they say as a calibration of the simulator,
simulates the scaled one's spec with it and prints both side by side.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from include.control.stages import load_run, run_all, store_of
from include.experiment.run import Run
from include.experiment.spec import RunSpec, load_spec
from include.files import write_bytes
from include.measurements.store import RunStore
from include.model.errors import TidebenchError
from include.studies.base import SPECS, measured_rows
from include.studies.live.calibration import as_yaml
from include.studies.live.comparison import seen, side_by_side, verdicts

SEEDS = range(1, 21)
FOLDER = "live_simulated"


def measured(spec: RunSpec, root: Path) -> tuple[Run, RunStore]:
    """A complete run of a spec: the stored one, whatever code measured it, or a new one."""
    store = store_of(spec, root)
    if not store.manifest.is_file():
        run_all(spec, root)
    return load_run(spec, root), store


def spec_named(name: str) -> RunSpec:
    """The only point of a spec that comes with the project."""
    (spec,) = load_spec(SPECS / f"{name}.yaml").points()
    return spec


def calibrate(root: Path) -> Path:
    """Measure what is not there yet and write the calibration; returns its file."""
    _, recording = measured(spec_named("live_recording"), root)
    run, scaled = measured(spec_named("live"), root)
    text = as_yaml(
        measured_rows(recording, "processing_duration").to_pylist(),
        measured_rows(scaled, "event").to_pylist(),
        measured_rows(scaled, "scaling_activity").to_pylist(),
        run.calibration["sample_every_items"],
    )
    file = root / FOLDER / f"{run.topology.name}.yaml"
    write_bytes(file, text.encode())
    return file


def compare(root: Path, calibration: Path, live: RunSpec) -> list[str]:
    """The scaled run beside its simulations, as lines to print."""
    of_live = seen(*measured(live, root))
    twin = replace(live, testbed="simulated", experiment=FOLDER, calibration=str(calibration))
    simulated = []
    for seed in SEEDS:
        spec = replace(twin, seed=seed)
        run_all(spec, root)
        simulated.append(seen(load_run(spec, root), store_of(spec, root)))
    lines = list(side_by_side(of_live, simulated))
    heading = f"{'':<42} {'live':>8} {'simulated':>10} [lowest, highest] difference"
    return [heading, *map(str, lines), "", *verdicts(lines)]


def main(arguments: Sequence[str]) -> int:
    """Returns 1 with what to do when something cannot be measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path("var"), help="where runs are stored")
    parser.add_argument("--calibration", type=Path, help="compare with this one, measure nothing")
    given = parser.parse_args(arguments)
    root = given.root.resolve()
    try:
        file = given.calibration or calibrate(root)
        lines = compare(root, file.resolve(), spec_named("live"))
    except TidebenchError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 (a command)
        return 1
    text = "\n".join([file.read_text(encoding="utf-8"), *lines])
    write_bytes(root / FOLDER / "comparison.txt", f"{text}\n".encode())
    print(f"{text}\n\nCalibration: {file}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
