"""What is stored of a run, and whether it may stand for what would be measured now.

One rule for every way to measure: a stored run counts when both its inputs (run.json) and the
code that measured it (code.json) are those of now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from include.files.whole import is_json, read_json, write_json
from include.model.errors import StoreError, command
from include.runs.measurements.store import RunStore
from include.runs.versions import code_digest

if TYPE_CHECKING:
    from include.experiment.run import Run
    from include.experiment.spec import RunSpec


ASKED = "asked.json"


class Stored(StrEnum):
    """What was found; the value says it to a person."""

    NOTHING = "nothing was stored"
    COMPLETE = "stored complete, by this code"
    BEGUN = "interrupted before, goes on from its last window"
    CUT_OFF = "measured anew, what was stored was cut off before its inputs"
    OTHER_CODE = "measured anew, what was stored is of other code"
    OTHER_INPUTS = "stored with other inputs"
    DAMAGED = "measured anew, what was stored is damaged"


def find_stored(run: Run, store: RunStore) -> Stored:
    """Look at the folder of the run, at nothing else. Never raises for what is damaged."""
    if not store.home.is_dir():
        return Stored.NOTHING
    inputs_or_results = _mark(store), store.run_json, store.manifest
    if not any(path.exists() for path in inputs_or_results):  # as where the disk was full
        return Stored.CUT_OFF
    if not is_of_this_code(store):
        return Stored.OTHER_CODE
    inputs = store.run_json.read_bytes() if store.run_json.is_file() else None
    if inputs not in (None, run.to_json().encode()):
        return Stored.OTHER_INPUTS if is_json(inputs) else Stored.DAMAGED
    if store.damage(run.spec.windows):
        return Stored.DAMAGED
    return Stored.COMPLETE if inputs and store.manifest.is_file() else Stored.BEGUN


def stored_run(store: RunStore) -> Run:
    """The run as it was resolved. Raises StoreError where that is missing, damaged or too old."""
    from include.experiment.run import Run  # with numpy, as in versions.py

    try:
        return Run.from_json(store.run_json.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{store.run_json} cannot be read: it is missing, damaged or of another version. "
            f"Remove the run ({command('remove', store.folder, store.run_id)}) "
            "and measure it again."
        ) from error


def is_of_this_code(store: RunStore) -> bool:
    """Whether what is stored, if anything, was measured by the code that is here now."""
    try:
        mark = read_json(_mark(store))
        return bool(mark["sha256"] == code_digest(mark["controllers"]))
    except (StoreError, KeyError, TypeError):  # damaged, or a controller that is not here
        return False


def is_of_other_code(store: RunStore) -> bool:
    """Whether other code has measured it; of an own controller that is not here nobody knows."""
    from include.controllers import CONTROLLERS  # with numpy, as in versions.py

    if is_of_this_code(store):
        return False
    try:
        own = filter(CONTROLLERS.path_of, read_json(_mark(store))["controllers"])
        return all(name in CONTROLLERS for name in own)
    except (StoreError, KeyError, TypeError):  # damaged
        return True


def mark_asked(folder: Path, runs: Iterable[str]) -> None:
    """Keep which runs of an experiment were asked for last, so that a report can miss some."""
    write_json(folder / ASKED, sorted(runs))


def asked_runs(folder: Path) -> list[str]:
    """Ids of the runs that were asked for last; empty where nobody said."""
    file = folder / ASKED
    runs: list[str] = read_json(file) if file.is_file() else []
    return runs


def forget_asked(folder: Path, runs: Collection[str]) -> None:
    """Runs that were removed are missed no more."""
    if asked := asked_runs(folder):
        mark_asked(folder, [run for run in asked if run not in runs])


def mark_code(store: RunStore, spec: RunSpec) -> None:
    """Say that what is stored from here on is measured by the code that is here now."""
    write_json(_mark(store), {"sha256": code_of(spec), "controllers": _controllers_of(spec)})


def code_of(spec: RunSpec) -> str:
    """The digest of the code that measures a run; of what this process has looked at once, it is
    that of then, as is the code that it has imported."""
    return code_digest(_controllers_of(spec))


def _controllers_of(spec: RunSpec) -> list[str]:
    return sorted({controller.name for controller in spec.all_controllers})


def _mark(store: RunStore) -> Path:
    return store.home / "code.json"
