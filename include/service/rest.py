"""A running Flink by its REST interface alone: what it says of a job, and a request to rescale.

Metrics are those of Flink's last fetch. A request for metrics starts a fetch when the last one is
older than `metrics.fetcher.update-interval` (10 s by default), and is answered before the fetch
is over. So a reading asks for metrics first, waits `SETTLES_S`, and reads then. What Flink says of
states may be as old as `web.refresh-interval` (3 s by default).
"""

from __future__ import annotations

import math
import os
import re
import ssl
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from include.advise.edges import plain_name
from include.model.errors import SpecError
from include.service.rates import whole_sum
from include.service.reading import UNCOUNTED, JobReading, OperatorReading, TaskManagerReading
from include.testbeds.flink.rest import TIMEOUT_S, FlinkHttp, NoAnswerError

POLL_WITHIN_S = 20.0
"""All requests of a reading are over by then, whatever the other side does."""
SETTLES_S = 0.4
NAMES_FOR_S = 300.0
"""Names of metrics are asked for again after so long, or when an answer is empty."""
MOST_TASK_MANAGERS = 40
"""Of more, CPU and memory are their means, which is one request in place of one for each."""
LONGEST_NAME = 60
TOKEN, TOKEN_FILE = "TIDEBENCH_FLINK_TOKEN", "TIDEBENCH_FLINK_TOKEN_FILE"
"""A bearer token, or the file that has it, which goes before."""
CA = "TIDEBENCH_FLINK_CA"
"""A file of certificates that Flink's is checked against, in place of the system's."""
SHARES = {
    "busy_share": "busyTimeMsPerSecond",
    "idle_share": "idleTimeMsPerSecond",
    "back_pressured_share": "backPressuredTimeMsPerSecond",
}
_WATERMARK, _BUFFERED = "currentInputWatermark", "estimatedTimeToConsumeBuffersMs"
NO_WATERMARK = -(2**63)
_MEMORY = ("Heap.Used", "NonHeap.Used", "Direct.MemoryUsed")
OF_JVM = (
    "Status.JVM.CPU.Load",
    "Status.JVM.CPU.Time",
    *(f"Status.JVM.Memory.{part}" for part in _MEMORY),
)
_ENDED = ("FINISHED", "CANCELED", "FAILED")


class JobLook(NamedTuple):
    """What a change relies on besides metrics.

    The first three are as in a `JobReading`, and may be as old as `web.refresh-interval`.
    """

    state: str
    started_s: float
    checkpoint_running: bool
    bounds: dict[str, tuple[int, int]]
    """The least and most subtasks of each vertex, by Flink's id, as of now."""
    name: str
    """An id is of one JobManager alone: `--job-id` may give another's job the same."""


class NoSuchJobError(NoAnswerError):
    """Flink answers, and has no job of that name."""


class FlinkRest:
    """The REST interface of a JobManager at ``url``, over one connection that is kept.

    Raises SpecError for an address that is none. Every method raises NoAnswerError when Flink does
    not answer, or not as it should.
    """

    def __init__(
        self,
        url: str,
        *,
        now_s: Callable[[], float] = time.time,
        timeout_s: float = TIMEOUT_S,
        settles_s: float = SETTLES_S,
    ) -> None:
        self._now_s, self._timeout_s, self._settles_s = now_s, timeout_s, settles_s
        self._headers = _authorization()
        self.connect(url)
        self._over_at = math.inf
        self._names: dict[tuple[str, str], tuple[float, tuple[str, ...]]] = {}
        self._up: tuple[tuple[str, float], float] = ("", 0.0), 0.0
        """Of the last start of a job, when it was up."""
        self._running: list[str] = []
        """Ids of the jobs of that name that have not ended."""

    def connect(self, url: str) -> None:
        """Send the next requests to this address."""
        self.url = address(url)
        context = _certificates() if self.url.startswith("https:") else None
        self._http = FlinkHttp(self.url, self._timeout_s, self._headers, context)

    def jobs(self) -> list[Mapping[str, Any]]:
        """Flink's overview of every job that it knows: ``jid``, ``name``, ``state``, times."""
        with answers_of("Flink", self.url):
            return list(self._get("/jobs/overview")["jobs"])

    def job_named(self, name: str) -> str:
        """The id of the job of that name that runs, or else was the last to start; of several, of
        the newest.

        Raises NoSuchJobError where there is none: another JobManager may have the address now.
        """
        with answers_of("Flink", self.url):
            jobs = self.jobs()
            of_name = [job for job in jobs if job["name"] == name]
            if not of_name:
                others = ", ".join(sorted({str(job["name"]) for job in jobs})[:10]) or "none"
                problem = f"{self.url} has no job {name!r}; it has: {others}"
                how = f"if {name!r} has moved or was renamed, start again with its address or --job"
                raise NoSuchJobError(f"{problem}; {how}")
            newest = max(of_name, key=lambda job: (job["state"] not in _ENDED, job["start-time"]))
            self._running = [str(job["jid"]) for job in of_name if job["state"] not in _ENDED]
            return str(newest["jid"])

    def requirements(self, job: str) -> dict[str, tuple[int, int]]:
        """The least and most subtasks of each vertex; only an adaptive scheduler has them."""
        with answers_of("Flink", self.url):
            asked = self._get(f"/jobs/{job}/resource-requirements")
            return {vertex: _bounds(needs["parallelism"]) for vertex, needs in asked.items()}

    def look(self, job: str) -> JobLook:
        """What may have changed since a reading; the bounds last, for they are compared."""
        with answers_of("Flink", self.url):
            details = self._get(f"/jobs/{job}")
            checkpoints = self._get(f"/jobs/{job}/checkpoints")
            return JobLook(
                state=_state(details),
                started_s=_started_s(details),
                checkpoint_running=bool(checkpoints["counts"]["in_progress"]),
                bounds=self.requirements(job),
                name=str(details["name"]),
            )

    def ask_for(self, job: str, bounds: Mapping[str, tuple[int, int]]) -> None:
        """Replace the least and most subtasks of each vertex; Flink wants them of all.

        One request, which is never sent twice.
        """
        body = {
            vertex: {"parallelism": {"lowerBound": least, "upperBound": most}}
            for vertex, (least, most) in bounds.items()
        }
        path = f"/jobs/{job}/resource-requirements"
        self._request("PUT", path, body)

    def reading(self, name: str) -> JobReading:
        """One poll of the job of that name. What a part of it cannot say is in ``missing``."""
        self._over_at = time.monotonic() + POLL_WITHIN_S
        try:
            with answers_of("Flink", self.url):
                return self._reading(name)
        finally:
            self._over_at = math.inf

    def _reading(self, name: str) -> JobReading:
        at_s, job = self._now_s(), self.job_named(name)
        self._names = {key: names for key, names in self._names.items() if key[0] == job}
        missing: list[str] = []
        if len(self._running) > 1:
            others = ", ".join(sorted({*self._running} - {job}))
            how = "end it, or give one of them another name"
            missing.append(f"which job is meant: {name!r} is {others}, too; {how}"[:300])
        details = self._get(f"/jobs/{job}")
        for vertex in details["vertices"][:1]:
            self._part(missing, "", self._metrics, job, vertex["id"], ())  # Flink fetches now
        asked = self._part(missing, "resource requirements", self.requirements, job)
        reactive = asked is not None and self._part(missing, "", self._reactive)
        checkpoints = self._part(missing, "checkpoints", self._get, f"/jobs/{job}/checkpoints")
        restarts = self._part(missing, "restarts", self._restarts, job)
        listed = self._part(missing, "TaskManagers", self._get, "/taskmanagers")
        time.sleep(self._settles_s)
        managers = self._task_managers((listed or {}).get("taskmanagers", ()), missing)
        details = self._get(f"/jobs/{job}")
        running = _state(details) == "RUNNING"
        up_s = self._part(missing, "", self._up_s, job, details) if running else 0.0
        names = operator_names({each["id"]: each["name"] for each in details["vertices"]})
        fed = {node["id"] for node in _plan(details) if node.get("inputs")}
        operators = tuple(
            self._operator(job, each, names[each["id"]], asked or {}, fed, missing)
            for each in details["vertices"]
        )
        missing += (
            f"{UNCOUNTED}{op.operator}: Flink has not those of all subtasks"
            for op in operators
            if running and None in (op.records_out, op.records_in if op.vertex in fed else 0.0)
        )
        return JobReading(
            at_s=at_s,
            job=job,
            name=name,
            state=_state(details),
            started_s=_started_s(details),
            operators=operators,
            edges=_edges(details, names),
            task_managers=managers,
            checkpoint_running=bool(checkpoints and checkpoints["counts"]["in_progress"]),
            last_checkpoint_s=_last_checkpoint_s(checkpoints),
            restarts=restarts,
            elastic=asked is not None and not reactive,
            up_s=up_s or 0.0,
            down_s=_down_s(details),
            missing=tuple(dict.fromkeys(missing)),
            url=self.url,
        )

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        self._http.close()

    # -------------------------------------------------------------------- parts of a reading

    def _part(self, missing: list[str], what: str, ask: Any, *about: Any) -> Any:
        """What a request answers; None, and a line in ``missing``, when it fails."""
        try:
            with answers_of("Flink", self.url):
                return ask(*about)
        except NoAnswerError as error:
            if what:
                missing.append(f"{what}: {error}"[:300])
            return None

    def _operator(
        self,
        job: str,
        vertex: Mapping[str, Any],
        name: str,
        asked: Mapping[str, tuple[int, int]],
        fed: Collection[str],
        missing: list[str],
    ) -> OperatorReading:
        runs = int(vertex["parallelism"])
        least, most = asked.get(vertex["id"], (runs, runs))
        of_task = _whole(vertex.get("metrics") or {})
        what, about = f"{UNCOUNTED}{name}", (job, vertex["id"])
        is_source = vertex["id"] not in fed
        wanted = self._part(missing, what, self._wanted, *about, is_source) or ()
        metrics = self._part(missing, what, self._metrics, *about, wanted) or {}
        if wanted and not metrics:
            missing.append(f"{what}: Flink's answer is empty")
        counted_in = of_task.get("read-records")
        if is_source:  # its reader counts, and some count nothing
            counted_in = _total(metrics, wanted, "numRecordsIn") or None
        lowest = metrics.get(_WATERMARK, {}).get("min")
        watermark = float(NO_WATERMARK if lowest is None else lowest)
        return OperatorReading(
            operator=name,
            vertex=str(vertex["id"]),
            parallelism=runs,
            asked_least=least,
            asked_most=most,
            max_parallelism=int(vertex["maxParallelism"]),
            slot_group=str(vertex.get("slotSharingGroupId", "")),
            records_in=counted_in,
            records_out=of_task.get("write-records"),
            busy_s=scaled(of_task.get("accumulated-busy-time"), 1e-3),
            idle_s=scaled(of_task.get("accumulated-idle-time"), 1e-3),
            back_pressured_s=scaled(of_task.get("accumulated-backpressured-time"), 1e-3),
            busiest_share=share(metrics.get(SHARES["busy_share"], {}).get("max")),
            pending_records=_total(metrics, wanted, "pendingRecords"),
            buffered_s=scaled(known(metrics.get(_BUFFERED, {}).get("avg")), 1e-3),
            watermark_ms=watermark if NO_WATERMARK < watermark < math.inf else None,
            **{kind: share(metrics.get(of, {}).get("avg")) for kind, of in SHARES.items()},
        )

    def _wanted(self, job: str, vertex: str, is_source: bool) -> tuple[str, ...]:
        """Names of the metrics to ask for: one that does not exist would empty the answer.

        Kept once all are there: the source of Kafka registers its backlog when it first fetches.
        """
        cached = self._names.get((job, vertex))
        if cached is not None and time.monotonic() - cached[0] < NAMES_FOR_S:
            return cached[1]
        there = [str(metric["id"]) for metric in self._metrics(job, vertex, ()).values()]
        wanted = [name for name in (*SHARES.values(), _WATERMARK, _BUFFERED) if name in there]
        wanted += [name for name in there if re.fullmatch(_OF_SOURCE, name)]
        has_all = not is_source or any(name.endswith(".pendingRecords") for name in wanted)
        if has_all and len(wanted) >= len(SHARES):
            self._names[job, vertex] = time.monotonic(), tuple(wanted)
        return tuple(wanted)

    def _metrics(self, job: str, vertex: str, names: Sequence[str]) -> dict[str, Any]:
        """Of a vertex by name, summed up over its subtasks; without names: which there are."""
        path = f"/jobs/{job}/vertices/{vertex}/subtasks/metrics"
        if names:
            path += f"?get={quote(','.join(names), safe=',')}&agg=min,max,avg,sum"
        metrics = {str(metric["id"]): metric for metric in self._get(path)}
        if names and not metrics:
            self._names.pop((job, vertex), None)
        return metrics

    def _reactive(self) -> bool:
        """Whether the job takes all slots that there are, and Flink refuses every change (2.2.1,
        `AdaptiveScheduler.updateJobResourceRequirements`)."""
        options = {str(each["key"]): str(each["value"]) for each in self._get("/jobmanager/config")}
        return options.get("scheduler-mode", "").lower() == "reactive"

    def _restarts(self, job: str) -> int | None:
        metrics = self._get(f"/jobs/{job}/metrics?get=numRestarts")
        return int(float(metrics[0]["value"])) if metrics else None

    def _up_s(self, job: str, details: Mapping[str, Any]) -> float:
        """When the last subtask began to run: that of a vertex is when its first was deployed."""
        start = job, _started_s(details)
        if self._up[0] != start:
            paths = (f"/jobs/{job}/vertices/{of['id']}/subtasktimes" for of in details["vertices"])
            subtasks = [each for path in paths for each in self._get(path)["subtasks"]]
            self._up = start, max(int(each["timestamps"]["RUNNING"]) for each in subtasks) / 1000
        return self._up[1]

    def _task_managers(
        self, listed: Iterable[Mapping[str, Any]], missing: list[str]
    ) -> tuple[TaskManagerReading, ...]:
        listed = sorted(listed, key=lambda row: str(row["id"]))
        mean: dict[str, float] | None = None
        if len(listed) > MOST_TASK_MANAGERS:
            what = "CPU and memory of TaskManagers"
            mean = self._part(missing, what, self._of_jvms) or {}
        readings = []
        for row in listed:
            values = mean
            if values is None:
                what = f"CPU and memory of TaskManager {row['id']}"
                values = self._part(missing, what, self._of_jvm, str(row["id"])) or {}
            memory = [values[name] for name in OF_JVM[2:] if name in values]
            readings.append(
                TaskManagerReading(
                    id=str(row["id"]),
                    slots=int(row["slotsNumber"]),
                    free_slots=int(row["freeSlots"]),
                    cpu_load=known(values.get("Status.JVM.CPU.Load")),
                    cpu_s=scaled(values.get("Status.JVM.CPU.Time"), 1e-9),
                    cores=known(row.get("hardware", {}).get("cpuCores")),
                    reserved_cores=known(row.get("totalResource", {}).get("cpuCores")),
                    memory_bytes=sum(memory) if memory else None,
                    memory_limit_bytes=known(
                        row.get("memoryConfiguration", {}).get("totalProcessMemory")
                    ),
                )
            )
        return tuple(readings)

    def _of_jvm(self, manager: str) -> dict[str, float]:
        path = f"/taskmanagers/{quote(manager, safe='')}/metrics?get={','.join(OF_JVM)}"
        return {str(metric["id"]): float(metric["value"]) for metric in self._get(path)}

    def _of_jvms(self) -> dict[str, float]:
        """Means over all TaskManagers."""
        path = f"/taskmanagers/metrics?get={','.join(OF_JVM)}&agg=avg"
        return {str(metric["id"]): float(metric["avg"]) for metric in self._get(path)}

    # ------------------------------------------------------------------------------ requests

    def _get(self, path: str) -> Any:
        return self._request("GET", path, None)

    def _request(self, method: str, path: str, body: Any) -> Any:
        within_s = min(self._timeout_s, self._over_at - time.monotonic())
        if within_s <= 0:
            raise NoAnswerError(f"the whole poll of {self.url} took more than {POLL_WITHIN_S:g} s")
        self._renew_token()
        return self._http.request(method, path, body, within_s)

    def _renew_token(self) -> None:
        """Whoever gives out a token that ends writes the next one into the same file."""
        try:
            if self._headers != (headers := _authorization()):
                self.close()
                self._headers = headers
                self.connect(self.url)
        except SpecError as error:
            raise NoAnswerError(str(error)) from error


_OF_SOURCE = r"Source__[^.]*\.(numRecordsIn|pendingRecords)"


@contextmanager
def answers_of(whom: str, url: str) -> Iterator[None]:
    """An answer that is JSON, but none of theirs, is no answer. Raises NoAnswerError."""
    try:
        yield
    except (
        LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError
    ) as error:  # fmt: skip
        why = f"{url} answers otherwise than {whom} ({type(error).__name__}: {error})"
        raise NoAnswerError(why) from error


def operator_names(vertices: Mapping[str, str]) -> dict[str, str]:
    """A plain name of each vertex, by id: long ones are cut, equal ones numbered by their ids."""
    plain = {
        vertex: plain_name(name)[:LONGEST_NAME].rstrip("_") for vertex, name in vertices.items()
    }
    times = Counter(plain.values())
    names = {vertex: name for vertex, name in plain.items() if times[name] == 1}
    for vertex in sorted(plain.keys() - names.keys()):
        numbered = (f"{plain[vertex]}_{number}" for number in count(1))
        names[vertex] = next(name for name in numbered if name not in names.values())
    return dict(sorted(names.items()))


def address(
    url: str,
    whose: str = "Flink's address",
    usage: str = "http://HOST:8081 or https://HOST:8081",
    token: str = TOKEN,
) -> str:
    """An address as messages call it: never with a password."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise SpecError(whose, [f"write {usage}"]) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SpecError(whose, [f"write {usage}"])
    if "@" in parts.netloc:
        raise SpecError(whose, [f"credentials do not belong into addresses; set {token}"])
    if parts.query:
        raise SpecError(whose, [f"write {usage}, without ? and what follows"])
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path.rstrip('/')}"


def _certificates() -> ssl.SSLContext:
    """What a Flink over TLS is checked against."""
    try:
        return ssl.create_default_context(cafile=os.environ.get(CA) or None)
    except (OSError, ssl.SSLError) as error:
        raise SpecError(CA, [f"{os.environ.get(CA)} is no file of certificates: {error}"]) from None


def _authorization() -> dict[str, str]:
    token = os.environ.get(TOKEN, "")
    if path := os.environ.get(TOKEN_FILE, ""):
        try:
            token = Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise SpecError(TOKEN_FILE, [f"{path} cannot be read: {error}"]) from None
    if not (token.isascii() and token.isprintable()):
        raise SpecError(TOKEN, ["has a line end or letters that no token has; set it again"])
    return {"Authorization": f"Bearer {token}"} if token else {}


def _state(details: Mapping[str, Any]) -> str:
    """The job's, or of the first of its tasks that do not run."""
    if (state := str(details["state"])) != "RUNNING":
        return state
    states = [str(each["status"]) for each in details["vertices"]]
    return next((status for status in states if status not in ("RUNNING", "FINISHED")), state)


def _started_s(details: Mapping[str, Any]) -> float:
    """When the last vertex was deployed, in epoch seconds; 0 while a task does not run."""
    if _state(details) != "RUNNING":
        return 0.0
    starts = [int(each["start-time"]) for each in details["vertices"]]
    return max([int(details["timestamps"]["RUNNING"]), *starts]) / 1000


def _down_s(details: Mapping[str, Any]) -> float:
    """Where a restart made a new graph, that knows only since when it is there itself."""
    times_ms = details["timestamps"]
    return int(times_ms.get("RESTARTING") or times_ms.get("CREATED") or 0) / 1000


def _plan(details: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """How records flow; nothing of a job that waits for slots, whose plan is {} before Flink 2."""
    nodes: Sequence[Mapping[str, Any]] = details["plan"].get("nodes", ())
    return nodes


def _edges(details: Mapping[str, Any], names: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    pairs = (
        (names[entry["id"]], names[node["id"]])
        for node in _plan(details)
        for entry in node.get("inputs", ())
    )
    return tuple(dict.fromkeys(pairs))


def _last_checkpoint_s(checkpoints: Mapping[str, Any] | None) -> float | None:
    done = ((checkpoints or {}).get("latest") or {}).get("completed")
    return int(done["trigger_timestamp"]) / 1000 if done else None


def _bounds(parallelism: Mapping[str, Any]) -> tuple[int, int]:
    return int(parallelism["lowerBound"]), int(parallelism["upperBound"])


def _whole(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Counters of a vertex that are complete: every subtask has told its own. NaN is none."""
    return {
        name: counted
        for name, value in metrics.items()
        if not isinstance(value, bool)
        and metrics.get(f"{name}-complete", True)
        and (counted := known(value)) is not None
    }


def _total(values: Mapping[str, Any], wanted: Sequence[str], kind: str) -> float | None:
    names = (name for name in wanted if name.endswith(f".{kind}") and name in values)
    return whole_sum(known(values[name]["sum"]) for name in names)


def share(ms_per_s: Any) -> float | None:
    """A share, 0 to 1, of milliseconds a second."""
    ms = known(ms_per_s)
    return None if ms is None else min(1.0, max(0.0, ms / 1000))


def known(value: Any) -> float | None:
    """A metric that is none when nothing was measured: NaN, below 0, or endless."""
    return None if value is None or not 0 <= float(value) < math.inf else float(value)


def scaled(value: float | None, factor: float) -> float | None:
    """In another unit."""
    return None if value is None else value * factor
