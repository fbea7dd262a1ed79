"""A running Flink by what its Prometheus reporter exports, read from a Prometheus server.

The reporter names a metric ``flink_``, its scope and its own name, and puts ``_`` for every other
character of a label's value, unless `filterLabelValueCharacters` is off (Flink 2.2, "Metric
Reporters", and its AbstractPrometheusReporter). It does not export how records flow, bounds, slot
sharing, and of which job a TaskManager without tasks is.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from include.model.errors import SpecError
from include.service.rates import whole_sum
from include.service.reading import UNCOUNTED, JobReading, OperatorReading, TaskManagerReading
from include.service.rest import (
    NO_WATERMARK,
    OF_JVM,
    SHARES,
    address,
    answers_of,
    known,
    operator_names,
    scaled,
    share,
)
from include.testbeds.flink.rest import NoAnswerError
from include.workloads.recordings.server import prometheus_answer

TIMEOUT_S = 10.0
WHOM = "Prometheus with what Flink's reporter exports"
_TASK, _JOB, _MANAGER = "flink_taskmanager_job_task_", "flink_jobmanager_job_", "flink_taskmanager_"
_BUSY, _IDLE, _PRESSED = (f"accumulate{kind}TimeMs" for kind in ("Busy", "Idle", "BackPressured"))
_IN, _OUT, _WATERMARK = "numRecordsIn", "numRecordsOut", "currentInputWatermark"
_OF_TASK = (_IN, _OUT, _WATERMARK, _BUSY, _IDLE, _PRESSED, *SHARES.values())
_OF_SOURCE = ("operator_numRecordsIn", "operator_pendingRecords")
_RUNS_MS, _RESTARTS, _CHECKPOINTS = "runningTime", "numRestarts", "numberOfInProgressCheckpoints"

Edges = tuple[tuple[str, str], ...]


class _Sample(NamedTuple):
    """The newest value of one series; ``name`` is the metric's."""

    name: str
    labels: Mapping[str, str]
    value: float


GONE_AFTER_S = 300.0
_Subtasks = Mapping[frozenset[tuple[str, str]], _Sample]
"""By all labels, so that a subtask that is there twice is so here, too."""


class _Whole(NamedTuple):
    """The last reading that had every subtask."""

    at_s: float
    job: str
    restarts: float
    ran_ms: float
    subtasks: _Subtasks


class FlinkPrometheus:
    """Jobs whose metrics are in the Prometheus at ``url``; ``edges`` of the job by plain names.

    Raises SpecError for an address that is none. Every method raises NoAnswerError when Prometheus
    does not answer, or has nothing of the job.
    """

    def __init__(self, url: str, edges: Edges, *, now_s: Callable[[], float] = time.time) -> None:
        self.url = address(
            url, "Prometheus' address", "http://HOST:9090", "TIDEBENCH_PROMETHEUS_TOKEN"
        )
        self._edges, self._now_s = edges, now_s
        self._began: tuple[Any, float] = (None, 0.0)
        self._whole: _Whole | None = None

    def job_named(self, name: str) -> str:
        """The id of the job of that name that was the last to start, once its operators are those
        of the edges."""
        with answers_of(WHOM, self.url):
            job, samples = self._newest(name, self._now_s())
            there = set(_tasks(samples)[0].values())
        if unknown := sorted(_ends(self._edges).keys() - there):
            known_names = ", ".join(sorted(there)) or "none yet"
            why = f"--edges has {', '.join(unknown)}, the operators of {name!r} are {known_names}"
            raise NoAnswerError(why)
        return job

    def reading(self, name: str) -> JobReading:
        """What the last scrape says of the job of that name."""
        with answers_of(WHOM, self.url):
            return self._reading(name)

    def _reading(self, name: str) -> JobReading:
        at_s = self._now_s()
        job, samples = self._newest(name, at_s)
        of_job = {sample.name: sample.value for sample in samples if sample.name.startswith(_JOB)}
        restarts, ran_ms = of_job.get(_JOB + _RESTARTS), of_job.get(_JOB + _RUNS_MS)
        subtasks, missed = self._with_missed(at_s, job, restarts, ran_ms, _subtasks(samples))
        names, runs, twice = _tasks(subtasks.values())
        fed, order = {target for _, target in self._edges}, _ends(self._edges)
        whole = not twice and order.keys() <= set(names.values())
        running = whole and (ran_ms is None or ran_ms > 0)
        attempts = frozenset(each.labels.get("task_attempt_id", "") for each in subtasks.values())
        if running and self._began[0] != (job, attempts):
            self._began = (job, attempts), at_s - (ran_ms or 0.0) / 1000
        if running and not missed and restarts is not None and ran_ms is not None:
            self._whole = _Whole(at_s, job, restarts, ran_ms, subtasks)
        counted = [sample for sample in samples if sample.labels.get("task_id") not in missed]
        return JobReading(
            at_s=at_s,
            job=job,
            name=name,
            state="RUNNING" if running else "RESTARTING",
            started_s=self._began[1] if running else 0.0,
            operators=tuple(
                _operator(task, label, runs[task], label in fed, counted)
                for task, label in sorted(
                    names.items(), key=lambda item: order.get(item[1], len(order))
                )
            ),
            edges=self._edges,
            task_managers=self._task_managers(subtasks.values()),
            checkpoint_running=of_job.get(_JOB + _CHECKPOINTS, 0.0) > 0,
            last_checkpoint_s=None,
            restarts=None if restarts is None else int(restarts),
            missing=tuple(
                f"{UNCOUNTED}{names[task]}: {count} of {runs[task]} subtasks are not exported now"
                for task, count in sorted(missed.items())
            ),
            url=self.url,
        )

    def close(self) -> None:
        """Every request has a connection of its own."""

    def _with_missed(
        self,
        at_s: float,
        job: str,
        restarts: float | None,
        ran_ms: float | None,
        there: _Subtasks,
    ) -> tuple[_Subtasks, Mapping[str, int]]:
        """Subtasks with those whose scrape was missed, and of how many it was by task id: where the
        job has run on since all were there, and those that are there are the same attempts. What is
        not there for GONE_AFTER_S has finished."""
        before = self._whole
        if before is None or ran_ms is None or (before.job, before.restarts) != (job, restarts):
            return there, {}
        if at_s - before.at_s > GONE_AFTER_S:
            return there, {}
        if ran_ms < before.ran_ms or not there.keys() <= before.subtasks.keys():
            return there, {}
        missed = (before.subtasks[each] for each in before.subtasks.keys() - there.keys())
        return before.subtasks, Counter(sample.labels["task_id"] for sample in missed)

    def _newest(self, name: str, at_s: float) -> tuple[str, list[_Sample]]:
        labels = "|".join(dict.fromkeys((re.escape(name), re.sub(r"[^a-zA-Z0-9:_]", "_", name))))
        tasks = "|".join((*_OF_TASK, *_OF_SOURCE))
        jobs = "|".join((_RUNS_MS, _RESTARTS, _CHECKPOINTS))
        query = f'{{__name__=~"{_TASK}({tasks})|{_JOB}({jobs})",job_name=~{json.dumps(labels)}}}'
        by_job: dict[str, list[_Sample]] = defaultdict(list)
        for sample in self._samples(query):
            by_job[sample.labels.get("job_id", "")].append(sample)
        if not by_job:
            raise NoAnswerError(f"{self.url} has no metrics of a job {name!r} now")

        def began_s(job: str) -> float:
            ran_ms = [sample.value for sample in by_job[job] if sample.name == _JOB + _RUNS_MS]
            return at_s - max(ran_ms) / 1000 if ran_ms else 0.0

        newest = max(sorted(by_job), key=began_s)
        return newest, by_job[newest]

    def _task_managers(self, samples: Iterable[_Sample]) -> tuple[TaskManagerReading, ...]:
        """Those with a task of the job. Their slots are those that it takes, if all share them."""
        taken: dict[str, Counter[str]] = defaultdict(Counter)
        for sample in samples:
            if sample.name == _TASK + _IN:
                taken[sample.labels["tm_id"]][sample.labels["task_id"]] += 1
        if not taken:
            return ()
        metrics = {_MANAGER + name.replace(".", "_"): name for name in OF_JVM}
        ids = json.dumps("|".join(re.escape(manager) for manager in sorted(taken)))
        values: dict[str, dict[str, float]] = defaultdict(dict)
        for sample in self._samples(f'{{__name__=~"{"|".join(metrics)}",tm_id=~{ids}}}'):
            values[sample.labels["tm_id"]][metrics[sample.name]] = sample.value
        return tuple(
            TaskManagerReading(
                id=manager,
                slots=max(taken[manager].values()),
                free_slots=0,
                cpu_load=known(values[manager].get(OF_JVM[0])),
                cpu_s=scaled(values[manager].get(OF_JVM[1]), 1e-9),
                memory_bytes=sum(values[manager].get(part, 0.0) for part in OF_JVM[2:]) or None,
            )
            for manager in sorted(taken)
        )

    def _samples(self, query: str) -> list[_Sample]:
        try:
            text = prometheus_answer(self.url, "query", {"query": query}, TIMEOUT_S)
        except SpecError as error:
            raise NoAnswerError(str(error)) from error
        answer = json.loads(text)
        if answer["status"] != "success":
            raise NoAnswerError(f"{self.url} refuses: {answer.get('error', answer['status'])}")
        return [
            _Sample(series["metric"]["__name__"], series["metric"], float(series["value"][1]))
            for series in answer["data"]["result"]
        ]


def _ends(edges: Edges) -> dict[str, int]:
    """Every operator, and which of them it is along the edges."""
    names = dict.fromkeys(end for edge in edges for end in edge)
    return {name: i for i, name in enumerate(names)}


def _subtasks(samples: Iterable[_Sample]) -> _Subtasks:
    tasks = (sample for sample in samples if sample.name == _TASK + _IN)
    return {frozenset(sample.labels.items()): sample for sample in tasks}


def _tasks(samples: Iterable[_Sample]) -> tuple[dict[str, str], dict[str, int], bool]:
    """Names and parallelism by task id, and whether a subtask is there twice or one is absent: the
    job was started again, and old series are not gone yet or new ones not all there."""
    subtasks: dict[str, list[int]] = defaultdict(list)
    names: dict[str, str] = {}
    for sample in samples:
        if sample.name == _TASK + _IN:
            names[sample.labels["task_id"]] = sample.labels["task_name"]
            subtasks[sample.labels["task_id"]].append(int(sample.labels["subtask_index"]))
    broken = any(sorted(each) != list(range(len(each))) for each in subtasks.values())
    plain = operator_names(dict(sorted(names.items())))
    return plain, {task: len(set(each)) for task, each in subtasks.items()}, broken


def _operator(
    task: str, name: str, runs: int, fed: bool, samples: Iterable[_Sample]
) -> OperatorReading:
    values: dict[str, list[float]] = defaultdict(list)
    for sample in samples:
        if sample.labels.get("task_id") == task:
            metric = sample.name.removeprefix(_TASK)
            if metric not in _OF_SOURCE or sample.labels["operator_name"].startswith("Source"):
                values[metric].append(sample.value)

    def total(metric: str) -> float | None:
        return whole_sum(known(value) for value in values[metric])

    def shares(metric: str) -> list[float]:
        return [part for part in map(share, values[metric]) if part is not None]

    def mean(kind: str) -> float | None:
        each = shares(SHARES[kind])
        return sum(each) / len(each) if each else None

    watermark = min(values[_WATERMARK], default=None)
    return OperatorReading(
        operator=name,
        vertex=task,
        parallelism=runs,
        asked_least=runs,
        asked_most=runs,
        records_in=total(_IN) if fed else total(_OF_SOURCE[0]) or None,
        records_out=total(_OUT),
        busiest_share=max(shares(SHARES["busy_share"]), default=None),
        pending_records=total(_OF_SOURCE[1]),
        watermark_ms=None if watermark == NO_WATERMARK else watermark,
        busy_s=scaled(total(_BUSY), 1e-3),
        idle_s=scaled(total(_IDLE), 1e-3),
        back_pressured_s=scaled(total(_PRESSED), 1e-3),
        busy_share=mean("busy_share"),
        idle_share=mean("idle_share"),
        back_pressured_share=mean("back_pressured_share"),
    )
