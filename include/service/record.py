"""Records a running job into a folder, poll by poll; ``advise`` and ``operators`` take it.

Rows are appended and never changed, so a process that is killed loses at most the poll that it was
at, and another one goes on in the same folder. What was not read is an empty cell.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Protocol

import yaml

from include.files.appended import AppendedRows
from include.files.whole import json_bytes, make_folder, read_json, write_bytes, write_synced
from include.model.errors import SetupError, SpecError
from include.service.clock import SteadyClock, turns
from include.service.rates import NO_RATES, JobRates, comparable, fetched, rates_between
from include.service.reading import JobReading, TaskManagerReading
from include.service.rest import MOST_TASK_MANAGERS, FlinkRest, NoSuchJobError
from include.testbeds.flink.rest import NoAnswerError
from include.workloads.recordings.folder import ABOUT, EDGES, JOB, OPERATORS

LOCK = ".lock"
EVENTS, TASK_MANAGERS = "events.csv", "task_managers.csv"
JOB_COLUMNS = (
    "time_s", "job", "state", "task_manager_slots", "desired_instances", "task_managers",
    "free_slots", "rate_per_s", "arrivals_per_s", "lag_records", "latency_s", "busy_share",
    "task_manager_cpu_share", "task_manager_memory_share", "checkpoint_running",
    "last_checkpoint_s", "restarts", "missing",
)  # fmt: skip
OPERATOR_COLUMNS = (
    "time_s", "operator", "instances", "asked_least", "asked_most", "max_parallelism", "in_per_s",
    "out_per_s", "busy_share", "busiest_share", "idle_share", "back_pressured_share",
    "pending_records", "buffered_s", "watermark_ms", "counted_in", "counted_out", "counted_busy_s",
)  # fmt: skip
TASK_MANAGER_COLUMNS = (
    "time_s", "task_manager", *(each.name for each in fields(TaskManagerReading)[1:]),
)  # fmt: skip


class Recorder:
    """Writes readings of one job into its folder.

    Raises SpecError when the folder is of another job, SetupError when somebody else records into
    it or it cannot be written, StoreError when another version wrote it.
    """

    def __init__(self, folder: Path, job: str, url: str, every_s: float) -> None:
        self.folder, self._job, self._url = folder, job, url
        self._require_same(url, every_s)
        self._jobs = AppendedRows(folder / JOB, JOB_COLUMNS)
        self._operators = AppendedRows(folder / OPERATORS, OPERATOR_COLUMNS)
        self._managers = AppendedRows(folder / TASK_MANAGERS, TASK_MANAGER_COLUMNS)
        self._events = AppendedRows(folder / EVENTS, ("time_s", "kind", "detail"))
        self._every_s = every_s
        job_before = (self._jobs.last() or {}).get("job", "")
        self._known: dict[str, Any] = {"job": job_before} if job_before else {}
        """The newest `facts_of` the job."""
        self._graph: tuple[Any, ...] = ()
        """What EDGES has, and whether ABOUT has slots. One that waits for slots has no graph."""
        self._fetched: JobReading | None = None
        self._latency: tuple[float, float] | None = None
        self._silent = ""
        """Why there is no reading, as an event: no_answer, no_job."""

    @property
    def last_s(self) -> float:
        """When the last row is of; 0 of none."""
        last = self._jobs.last()
        return float(last["time_s"]) if last else 0.0

    def begin(self, now_s: float) -> None:
        """Say that recording begins or goes on, and since when nobody has looked."""
        if last_s := self.last_s:
            self.say(now_s, ("gap", f"nobody recorded for {now_s - last_s:.0f} s"))
        else:
            self.say(now_s, ("begun", f"job {self._job}, every {self._every_s:g} s"))

    def keep(self, now: JobReading) -> JobRates | None:
        """Write a reading; what was done since the last one that Flink had fetched, if known.

        Raises SetupError when it cannot be written. The next one is compared with the last that
        could be, so what happened in between is told then.
        """
        was, known, facts = self._fetched, self._known, facts_of(now)
        rates = rates_between(was, now) if was else None
        if now.running and self._graph != (graph := (now.edges, bool(now.task_managers))):
            self._keep_graph(now)
            self._graph = graph
        if now.url not in ("", self._url):
            self._keep_address(now)
        at_s = round(now.at_s, 3)
        self._operators.append(_operator_rows(at_s, now, rates))
        self._managers.append(
            (at_s, *astuple(replace(manager, cpu_load=_rounded(manager.cpu_load))))
            for manager in now.task_managers
        )
        self._jobs.append([_job_row(at_s, now, rates, self._latency_s(now, rates), was)])
        answers = [("answers", "Flink answers again")] if self._silent else []
        self.say(now.at_s, *changes_between(known, known | facts), *answers)
        self._known = known | facts if known.get("job") == now.job else facts
        self._silent = ""
        if was is None or not comparable(was, now) or fetched(was, now):
            self._fetched = now if now.running else None
        return rates

    def miss(self, now_s: float, why: str, kind: str = "no_answer") -> None:
        """Write that there is no reading: a row with the job's last id, and once why."""
        if self._silent != kind:
            self.say(now_s, (kind, why))
        self._silent = kind
        job = self._known.get("job", "")
        row = {"time_s": round(now_s, 3), "job": job, "state": "no answer", "missing": why[:200]}
        self._jobs.append([_cells(JOB_COLUMNS, row)])

    def end(self, now_s: float, polls: int) -> None:
        """Say that recording ends, and let the files go."""
        self.say(now_s, ("ended", f"{polls} polls were kept"))
        for rows in (self._jobs, self._operators, self._managers, self._events):
            rows.close()

    def say(self, at_s: float, *events: tuple[str, str]) -> None:
        """Write events of that time (epoch seconds): a word and a sentence each."""
        self._events.append((round(at_s, 3), kind, detail) for kind, detail in events)

    def _latency_s(self, now: JobReading, rates: JobRates | None) -> float | None:
        """The estimate; while the job is down, of what came when it last ran."""
        if rates is not None:
            if rates.latency_s is not None:
                self._latency = now.at_s, rates.latency_s
            return rates.latency_s
        if now.running or self._latency is None:
            return None
        since_s, latency_s = self._latency
        return latency_s + now.at_s - since_s

    def _keep_graph(self, now: JobReading) -> None:
        edges = {"edges": [{"from": origin, "to": target} for origin, target in now.edges]}
        write_bytes(self.folder / EDGES, yaml.safe_dump(edges, sort_keys=False).encode())
        slots = [manager.slots for manager in now.task_managers]
        if slots:
            each = max(set(slots), key=slots.count)
            self._write_about(read_json(self.folder / ABOUT) | {"slots_each": each})

    def _keep_address(self, now: JobReading) -> None:
        self._write_about(read_json(self.folder / ABOUT) | {"url": now.url})
        moved = f"the job is read at {now.url} now, and was at {self._url}"
        self.say(now.at_s, ("moved", moved))
        self._url = now.url

    def _require_same(self, url: str, every_s: float) -> None:
        path = self.folder / ABOUT
        about = {"version": 1, "job": self._job, "url": url, "every_s": every_s}
        if not path.is_file():
            there = self.folder.iterdir() if self.folder.is_dir() else ()
            if any(not file.name.startswith((LOCK, f".{ABOUT}.draft")) for file in there):
                problem = f"{self.folder} has something else in it; name an empty or a new folder"
                raise SpecError("--out", [problem])
            self._write_about(about)
            return
        before = read_json(path)
        if before["job"] != self._job:
            problem = f"{self.folder} has a recording of {before['job']!r}; name another folder"
            raise SpecError("--out", [problem])
        self._write_about({**before, **about})

    def _write_about(self, about: Mapping[str, Any]) -> None:
        """Without it the folder is of something else, also after a power cut."""
        write_synced(self.folder / ABOUT, json_bytes(about))


def facts_of(now: JobReading) -> dict[str, Any]:
    """What a reading says for certain, of which every change is an event. What it could not read is
    not in it; nor are instances of a job that waits for slots, of which Flink has none."""
    facts: dict[str, Any] = {"state": now.state, "job": now.job}
    if now.running:
        facts |= {"instances": now.instances, "started_s": now.started_s}
    if now.elastic:
        bounds = {op.operator: f"{op.asked_least}-{op.asked_most}" for op in now.operators}
        facts["bounds"] = bounds
    if not any(line.startswith("TaskManagers:") for line in now.missing):
        facts["task_managers"] = {manager.id for manager in now.task_managers}
    return facts


def changes_between(was: dict[str, Any], now: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Every change that somebody who reads the recording has to know of: a word, a sentence."""
    was = now | was  # what was not known before has not changed

    def steps(kind: str) -> str:
        before = was.get(kind, {})
        each = ((name, before.get(name, new), new) for name, new in now.get(kind, {}).items())
        return ", ".join(f"{name} {old} -> {new}" for name, old, new in each if old != new)

    if now["state"] != was["state"]:
        yield "state", f"{was['state']} -> {now['state']}"
    if now["job"] != was["job"]:
        yield "redeployed", f"the job of this name is {now['job']} now, and was {was['job']}"
        return
    if scaled := steps("instances"):
        yield "rescaled", scaled
    elif now.get("started_s") != was.get("started_s"):  # Flink counts restarts some seconds late
        yield "restarted", "the job was started again"
    if asked := steps("bounds"):
        yield "asked", asked
    managers, were = now.get("task_managers", set()), was.get("task_managers", set())
    if gone := sorted(were - managers):
        yield "task_managers_gone", ", ".join(gone)
    if new := sorted(managers - were):
        yield "task_managers_new", ", ".join(new)


def _cells(columns: Sequence[str], own: Mapping[str, Any], *others: object) -> list[Any]:
    """A cell for each column: what is its ``own``, or what the first of the others with a field of
    that name has; empty where none has."""

    def cell(column: str) -> Any:
        if column in own:
            return own[column]
        found = (getattr(one, column) for one in others if hasattr(one, column))
        return _rounded(next(found, None))

    return [cell(column) for column in columns]


def _operator_rows(at_s: float, now: JobReading, rates: JobRates | None) -> Iterator[list[Any]]:
    for op in now.operators:
        own = {
            "time_s": at_s,
            "instances": op.parallelism if now.running else None,
            "max_parallelism": max(0, op.max_parallelism) or None,
            "asked_least": op.asked_least if now.elastic else None,
            "asked_most": op.asked_most if now.elastic else None,
            "busiest_share": _rounded(op.busiest_share) if rates else None,
            "counted_in": op.records_in,
            "counted_out": op.records_out,
            "counted_busy_s": _rounded(op.busy_s),
            "pending_records": op.pending_records,
        }
        of = rates.operators[op.operator] if rates else NO_RATES
        yield _cells(OPERATOR_COLUMNS, own, of, op)


def _job_row(
    at_s: float,
    now: JobReading,
    rates: JobRates | None,
    latency_s: float | None,
    fetched_before: JobReading | None,
) -> list[Any]:
    cpu, memory = _used(now, fetched_before, rates.since_s if rates else 0.0)
    own = {
        "time_s": at_s,
        "task_manager_slots": now.slots if now.running else None,
        "desired_instances": now.asked_slots if now.elastic else None,
        "task_managers": len(now.task_managers) or None,
        "free_slots": sum(each.free_slots for each in now.task_managers)
        if now.task_managers
        else None,
        "latency_s": _rounded(latency_s),
        "task_manager_cpu_share": _rounded(cpu),
        "task_manager_memory_share": _rounded(memory),
        "checkpoint_running": int(now.checkpoint_running),
        "missing": "; ".join(now.missing)[:300] or None,
    }
    return _cells(JOB_COLUMNS, own, rates, now)


def _used(
    now: JobReading, before: JobReading | None, passed_s: float
) -> tuple[float | None, float | None]:
    """CPU of what TaskManagers reserve since then, and memory of what they may use: means."""
    was = {manager.id: manager for manager in before.task_managers} if before else {}
    # Of so many, each reads the mean CPU time of all, which does not go on once they are others.
    many = max(len(was), len(now.task_managers)) > MOST_TASK_MANAGERS
    others = many and was.keys() != {manager.id for manager in now.task_managers}
    cpu = [
        _cpu_share(was[manager.id], manager, passed_s)
        for manager in now.task_managers
        if manager.id in was and passed_s > 0 and not others
    ]
    memory = [
        manager.memory_bytes / manager.memory_limit_bytes
        for manager in now.task_managers
        if manager.memory_bytes is not None and manager.memory_limit_bytes
    ]
    return _mean([share for share in cpu if share is not None]), _mean(memory)


def _cpu_share(
    before: TaskManagerReading, now: TaskManagerReading, passed_s: float
) -> float | None:
    """None also where CPU time went back: a JVM, or one that the mean is of, is a new one."""
    if before.cpu_s is None or now.cpu_s is None or not now.reserved_cores:
        return None
    spent_s = now.cpu_s - before.cpu_s
    return spent_s / passed_s / now.reserved_cores if spent_s >= 0 else None


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _rounded(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


@contextmanager
def alone_in(folder: Path, what: str) -> Iterator[Callable[[], None]]:
    """Only one process at a time does ``what`` in a folder; the lock ends with the process.

    Raises SetupError when another one does, or the folder cannot be written or locked; and so does
    what it yields, once the folder was removed or replaced: another process may have that one.
    A folder that was made for this and got nothing is removed at the end.
    """
    is_new = not folder.exists()
    try:
        make_folder(folder)
        file = (folder / LOCK).open("a")
    except OSError as error:
        how = "make it writable, or name another folder"
        raise SetupError(f"{folder} cannot be written ({error.strerror}); {how}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            problem = f"another process {what} in {folder}; end it, or name another folder"
            raise SetupError(problem) from None
        except OSError as error:  # over the network, say
            problem = f"{folder} cannot be locked ({error.strerror}); name one on a local disk"
            raise SetupError(problem) from error

        def is_ours() -> bool:
            return file_number(folder / LOCK) == file_number(file.fileno())

        def require_ours() -> None:
            if not is_ours():
                how = "end this process and start it again"
                raise SetupError(f"{folder} was removed or replaced; {how}")

        try:
            yield require_ours
        finally:
            with suppress(OSError):
                if is_new and is_ours() and [*folder.iterdir()] == [folder / LOCK]:
                    (folder / LOCK).unlink()
                    folder.rmdir()


def file_number(path: Path | int) -> tuple[int, int] | None:
    """Device and number of a file, also of an open one; None when it is not there."""
    try:
        there = os.stat(path)  # noqa: PTH116  of an open file
    except OSError:
        return None
    return there.st_dev, there.st_ino


class Polled(Protocol):
    """A running Flink by one of its interfaces; see `FlinkRest` for what its methods raise."""

    url: str

    def job_named(self, name: str) -> str: ...
    def reading(self, name: str) -> JobReading: ...
    def close(self) -> None: ...


Told = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Polling:
    """Which job is polled, how often, and until it is late or stopped."""

    url: str
    job: str
    every_s: float
    lasts_s: float
    stop: threading.Event = field(default_factory=threading.Event)
    told: Told
    """Gets a line where something is not as it should be."""
    client: Callable[..., Polled] = FlinkRest
    """Made with the address, and told the time by ``now_s``."""


def record(
    polling: Polling,
    folder: Path,
    *,
    seen: Callable[[JobReading, JobRates | None], None] = lambda reading, rates: None,
    missed: Callable[[NoAnswerError], None] = lambda error: None,
    turned: Callable[[], None] = lambda: None,
    clock: SteadyClock | None = None,
) -> int:
    """Poll; how many polls were kept. See `Recorder` for errors.

    ``seen`` gets every reading once it is kept, ``missed`` why there is none, and ``turned`` is
    called at every turn, also at one whose poll is lost.

    Raises NoAnswerError when Flink does not answer at first, or has no job of that name.
    """
    clock = clock or SteadyClock()
    job, every_s, told = polling.job, polling.every_s, polling.told
    with (
        alone_in(folder, "records") as require_ours,
        closing(polling.client(polling.url, now_s=clock.now_s)) as flink,
    ):
        flink.job_named(job)
        recorder = Recorder(folder, job, flink.url, every_s)
        clock.not_before(recorder.last_s + every_s / 2)
        recorder.begin(clock.now_s())
        polls, silent, lost, jumped_s = 0, "", "", 0.0
        for at_s in turns(clock, every_s, polling.lasts_s, polling.stop):
            turned()
            try:
                require_ours()
                jumped_s += clock.jumped_s()
                if jumped_s:
                    how = f"the clock of this machine was set by {jumped_s:+.0f} s"
                    recorder.say(at_s, ("clock", how))
                    jumped_s = 0.0
                try:
                    reading = flink.reading(job)
                except NoAnswerError as error:
                    kind = "no_job" if isinstance(error, NoSuchJobError) else "no_answer"
                    missed(error)
                    if silent != kind:
                        told(str(error))
                    silent = kind
                    recorder.miss(at_s, str(error), kind)
                else:
                    seen(reading, recorder.keep(reading))
                    polls, silent, lost = polls + 1, "", ""
            except SetupError as error:  # a full disk may have room again
                if lost != str(error):
                    told(f"this poll is lost: {error}")
                lost = str(error)
        with suppress(SetupError):
            recorder.end(clock.now_s(), polls)
        return polls
