"""What controllers would have cost and left late, on the recording that was kept beside them.

The same replays, ranking, checks and page as of `advise` on that recording.
"""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from include.advise.answer import Answer
from include.advise.case import asked_in
from include.advise.publish import publish_answer
from include.advise.request import SUITABLE, AdviceRequest
from include.files.appended import whole_lines
from include.files.whole import read_json, write_bytes
from include.model.errors import SpecError, StoreError
from include.service.record import EVENTS
from include.service.shadow import DECISIONS, READS_IN_S, STATE
from include.workloads.recordings.folder import is_recorded

RECORDING = "recording"


def shadowed(folder: Path) -> dict[str, dict[str, Any]]:
    """The controllers of a shadow with their options. Raises StoreError without its state."""
    return {name: state["options"] for name, state in _state(folder)["controllers"].items()}


def is_shadow(folder: Path) -> bool:
    """Whether a folder is that of a shadow, also before the first decision, and no experiment."""
    return (folder / STATE).is_file() or is_recorded(folder / RECORDING)


def _state(folder: Path) -> Any:
    if (folder / STATE).is_file():
        return read_json(folder / STATE)
    if is_recorded(folder / RECORDING):
        why = f"no controller has decided in {folder} yet: leave the shadow beside the job until "
        raise StoreError(f"{why}it has run for {READS_IN_S:g} s and a decision is printed")
    raise StoreError(f"{folder} has no shadow; name the --state of a shadow")


def asked_for(folder: Path) -> tuple[str, str]:
    """Objective and price book of a shadow, empty where it was not told them.

    Raises StoreError without its state.
    """
    state = _state(folder)
    return state.get("objective", ""), state.get("prices", "")


def request_of(folder: Path, recording: Path, request: AdviceRequest) -> AdviceRequest:
    """The request for the controllers of a shadow, with their options.

    Raises SpecError when none of them can be replayed for a whole job.
    """
    known = {name: options for name, options in shadowed(folder).items() if name in SUITABLE}
    if not known:
        raise SpecError("verdict", ["none of the controllers can be replayed for a whole job"])
    return replace(request, recording=str(recording), controllers=tuple(known), options=known)


def publish_verdict(answer: Answer, folder: Path) -> Path:
    """Publish an answer; of a day also what was decided and what happened. Returns the folder."""
    published = publish_answer(answer, folder)
    recording = Path(asked_in(folder).recording)
    if (recording / DECISIONS).is_file():
        for name in (DECISIONS, EVENTS):
            write_bytes(published / name, (recording / name).read_bytes())
    return published


def decision_counts(decisions: Path) -> dict[str, tuple[int, int, int]]:
    """Of each controller: how often it decided, would have changed something, and failed."""
    decided, changes, failed = Counter[str](), Counter[str](), Counter[str]()
    rows = csv.DictReader(whole_lines(decisions))
    for (name, _), decision in groupby(rows, key=itemgetter("controller", "time_s")):
        operators = list(decision)
        decided[name] += 1
        changes[name] += any(row["instances"] != row["wanted"] for row in operators)
        failed[name] += any(row["failed"] == "True" for row in operators)
    return {name: (decided[name], changes[name], failed[name]) for name in decided}


def verdict_lines(answer: Answer, folder: Path, decisions: Path) -> list[str]:
    """How far to trust it, and what was decided, in sentences."""
    left_out = [name for name in shadowed(folder) if name not in SUITABLE]
    lines = ["The model, fed with what was recorded, beside the recording:"]
    for name, replayed, recorded in answer.fidelity:
        error = f"{replayed / recorded - 1:+.1%}" if recorded == recorded and recorded else "none"
        lines.append(f"  {name:<32} {replayed:>10.4g} {recorded:>10.4g}   error {error}")
    lines.append("Decided beside the running job:")
    for name, (decided, changes, failed) in decision_counts(decisions).items():
        failures = f"; it failed {failed} times" if failed else ""
        lines.append(f"  {name}: {decided} times, {changes} of them to change something{failures}")
    if left_out:
        lines.append(f"Cannot be replayed for a whole job: {', '.join(left_out)}")
    return lines
