"""What controllers would have cost and left late, on the recording that was kept beside them, or on
one day of it, which is cut out as a folder.

The same replays, ranking, checks and page as of `advise` on that recording.
"""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

from include.advise.answer import Answer
from include.advise.case import asked_in
from include.advise.publish import publish_answer
from include.advise.request import OBJECTIVE, PER_SECOND, SUITABLE, AdviceRequest
from include.files.appended import whole_lines
from include.files.whole import csv_text, new_folder, read_json, swap_in, write_bytes, write_json
from include.model.errors import SpecError, StoreError
from include.runs.measurements.locks import alone
from include.service.record import EVENTS, TASK_MANAGERS
from include.service.shadow import DECISIONS, READS_IN_S, RECORDING, STATE, decisions_in
from include.workloads.recordings.folder import ABOUT, EDGES, JOB, OPERATORS, is_recorded

DAYS = "days"
DAY_S = 86_400.0
HOW = "advise replays them, with the recording of the shadow and --controllers"


def is_shadow(folder: Path) -> bool:
    """Whether a folder is that of a shadow, also before the first decision, and no experiment."""
    return (folder / STATE).is_file() or is_recorded(folder / RECORDING)


def day_of(folder: Path) -> tuple[Path, str] | None:
    """The state of a shadow and the day of it, such as 2026-01-31, that ``folder`` is.

    The day is empty if the folder is the state itself; None: it is neither.
    """
    folder = folder.resolve()
    if is_shadow(folder):
        return folder, ""
    state = folder.parent.parent
    return (state, folder.name) if folder.parent.name == DAYS and is_shadow(state) else None


def cut_day(folder: Path, day: date) -> Path:
    """Write ``folder/days/DAY`` whole: the rows of that day in UTC. Returns it; a day that is not
    over yet is cut again later. One process at a time: another one's draft would be removed.

    Raises StoreError without the state of a shadow, SpecError when it has nothing of that day.
    """
    state_of(folder)
    recording = folder / RECORDING
    began_s = datetime.combine(day, time(), UTC).timestamp()
    target = folder / DAYS / day.isoformat()
    if not (job_rows := _rows_of(recording / JOB, began_s)):
        raise SpecError("day", [f"nothing was recorded on {day} (UTC)"])
    with alone(folder, f"cut of {day}"), new_folder(target) as draft:
        write_bytes(draft / JOB, job_rows.encode())
        for path in (*(recording / name for name in (OPERATORS, TASK_MANAGERS, EVENTS)),
                     folder / DECISIONS):  # fmt: skip
            write_bytes(draft / path.name, _rows_of(path, began_s).encode())
        write_json(draft / ABOUT, read_json(recording / ABOUT))
        write_bytes(draft / EDGES, (recording / EDGES).read_bytes())
        swap_in(draft, target)
    return target


def _rows_of(path: Path, began_s: float) -> str:
    """The header and the rows of a day that begins then; nothing where there are none."""
    lines = csv.reader(whole_lines(path))
    header = next(lines)
    rows = [row for row in lines if 0 <= float(row[0]) - began_s < DAY_S]
    return csv_text(header, rows) if rows or path.name != JOB else ""


def state_of(folder: Path) -> Any:
    """What a shadow has written of itself. Raises StoreError without its state."""
    if (folder / STATE).is_file():
        return read_json(folder / STATE)
    if is_recorded(folder / RECORDING):
        why = f"no controller has decided in {folder} yet: leave the shadow beside the job until "
        raise StoreError(f"{why}it has run for {READS_IN_S:g} s and a decision is printed")
    raise StoreError(f"{folder} has no shadow; name the --state of a shadow")


def request_of(folder: Path, recording: Path, request: AdviceRequest) -> AdviceRequest:
    """The request for the controllers of a shadow, with their options; an objective or prices that
    are empty are those that it was told.

    Raises SpecError when none of them has margins, StoreError without a state.
    """
    state = state_of(folder)
    known = {name: own["options"] for name, own in state["controllers"].items() if name in SUITABLE}
    if not known:
        raise SpecError("verdict", [f"none of the controllers has margins; {HOW}"])
    return replace(
        request,
        recording=str(recording),
        controllers=tuple(known),
        options=known,
        objective=request.objective or state.get("objective") or OBJECTIVE,
        prices=request.prices or state.get("prices") or PER_SECOND,
    )


def publish_verdict(answer: Answer, folder: Path) -> Path:
    """Publish an answer; of a day also what was decided and what happened. Returns the folder."""
    recording = Path(asked_in(folder).recording)
    of_day = (DECISIONS, EVENTS) if (recording / DECISIONS).is_file() else ()
    return publish_answer(answer, folder, [recording / name for name in of_day])


def decision_counts(decisions: Path) -> dict[str, tuple[int, int, int]]:
    """Of each controller: how often it decided, would have changed something, and failed."""
    decided, changes, failed = Counter[str](), Counter[str](), Counter[str]()
    for _, name, rows in decisions_in(decisions):
        decided[name] += 1
        changes[name] += any(row["instances"] != row["wanted"] for row in rows)
        failed[name] += any(row["failed"] == "True" for row in rows)
    return {name: (decided[name], changes[name], failed[name]) for name in decided}


def verdict_lines(answer: Answer, folder: Path, decisions: Path) -> list[str]:
    """How far to trust it, and what was decided, in sentences."""
    left_out = [name for name in state_of(folder)["controllers"] if name not in SUITABLE]
    lines = ["The model, fed with what was recorded, beside the recording:"]
    for name, replayed, recorded in answer.fidelity:
        error = f"{replayed / recorded - 1:+.1%}" if recorded == recorded and recorded else "none"
        lines.append(f"  {name:<32} {replayed:>10.4g} {recorded:>10.4g}   error {error}")
    lines.append("Decided beside the running job:")
    for name, (decided, changes, failed) in decision_counts(decisions).items():
        failures = f"; it failed {failed} times" if failed else ""
        lines.append(f"  {name}: {decided} times, {changes} of them to change something{failures}")
    if left_out:
        lines.append(f"Left out, without margins: {', '.join(left_out)}; {HOW}")
    return lines
