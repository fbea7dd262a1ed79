"""Values for the simulator from real containers: ``python -m include.studies.live --out FILE``.

Measures an over-provisioned run and a scaled one on the live testbed (about ten minutes; runs that
are there already are taken as they are), and writes what they say as a calibration.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from include.experiment.run import Run
from include.experiment.spec import RunSpec
from include.files.whole import write_bytes
from include.model.errors import TidebenchError
from include.results.tables.measured import measured_rows
from include.runs.measurements.store import RunStore
from include.runs.stages import load_run, run_all, store_of
from include.studies.base import runs_of
from include.studies.live.calibration import as_yaml
from include.studies.live.study import EXPERIMENT, scaled


def measured(spec: RunSpec, root: Path) -> tuple[Run, RunStore]:
    """A complete run of a spec: the stored one, whatever code measured it, or a new one."""
    store = store_of(spec, root)
    if not store.manifest.is_file():
        run_all(spec, root)
    return load_run(spec, root), store


def calibrate(root: Path) -> str:
    """Measure what is not there yet; the calibration as YAML."""
    (recorded,) = runs_of(EXPERIMENT, ["live_recording"])
    _, recording = measured(recorded, root)
    run, store = measured(scaled(), root)
    return as_yaml(
        measured_rows(recording, "processing_duration").to_pylist(),
        measured_rows(store, "event").to_pylist(),
        measured_rows(store, "scaling_activity").to_pylist(),
        run.calibration["sample_every_items"],
    )


def main(arguments: Sequence[str]) -> int:
    """Returns 1 with what to do when something cannot be measured or written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path("var"), help="where runs are stored")
    parser.add_argument("--out", type=Path, required=True, help="the calibration to write")
    options = parser.parse_args(arguments)
    try:
        text = calibrate(options.root.resolve())
        write_bytes(options.out.resolve(), text.encode())
    except TidebenchError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 (a command)
        return 1
    print(f"{text}\nCalibration: {options.out}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
