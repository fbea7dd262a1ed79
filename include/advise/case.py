"""What is asked about a recording: checked, and kept in a folder so that tasks can share it."""

from __future__ import annotations

import shutil
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import yaml

from include.advise.candidates import (
    ANY,
    Policy,
    fixed,
    recorded_policy,
    settings_of,
    tried,
)
from include.advise.job import JobModel, fit, with_times
from include.advise.margins import (
    HOLDS,
    BacktestError,
    Margin,
    errors_text,
    margin_of,
    read_errors,
    scaler_kind,
    share_range,
    verdict,
)
from include.advise.objective import LatencyObjective, parse_objective, percentile_doubts
from include.advise.operator_replay import setting_under
from include.advise.paste import platforms_of
from include.advise.readings import Readings, lasting_counts, readings_of, require_signals
from include.advise.recorded import (
    KEPT_JOB,
    Recorded,
    keep_recorded,
    kept_recorded,
    read_recorded,
    with_operators,
)
from include.advise.replay import ReplayConditions, priced, replay
from include.advise.request import (
    BY_BUSY_TIME,
    BY_CPU,
    BY_JOB,
    FIXED,
    PLATFORMS,
    SUITABLE,
    AdviceRequest,
    require_values,
)
from include.experiment.prices import is_file, price_book
from include.experiment.prices.books import book_of, load_book
from include.experiment.problems import registration_problems
from include.files.inputs import input_text
from include.files.plain_yaml import read_yaml
from include.files.whole import read_json, require_writable, write_bytes, write_json
from include.model.billing import CloudPriceBook
from include.model.errors import SpecError, StoreError, all_checked
from include.model.host import PriceBook
from include.workloads.recordings import Recording
from include.workloads.recordings.folder import is_recorded
from include.workloads.recordings.recording import FloatArray

DAY_S = 86_400.0
DAYS_TO_DRAW = 3
"""A recording of at least so many whole days gives every seed but the first drawn days."""
WHAT_SCALED = (
    "the number of instances changed, and --recorded does not say by what: the policy, as the "
    "table names it ('hpa, CPU 35 %') or with its options ('hpa target_cpu=0.4'), can narrow the "
    "ranges"
)
DAMAGED = (TypeError, KeyError, ValueError, AttributeError)
"""What reading a request raises that nobody has written so."""
_REQUEST, _BOOK = "request.json", "book.yaml"
_SIZES, _ERRORS = "fixed_sizes.json", "backtest_errors.csv"
AGAINST = "against.json"
"""What another recording says against the answer."""


def read_book(prices: str) -> PriceBook:
    """The price book of that name, or in that file. Raises SpecError."""
    return load_book(prices) if is_file(prices) else price_book(prices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked: the objective, the price of a host, what a replay takes for granted, and
    what the job may run on."""

    objective: LatencyObjective
    book: PriceBook
    conditions: ReplayConditions
    seeds: int = 3
    platforms: tuple[str, ...] = PLATFORMS
    slots_each: int = 1
    """Instances of a task manager, where they were recorded as its slots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A recorded job, what is asked about it, and the policies that are tried in their order;
    ``recorded`` is the policy that it was recorded under, None where that is not known, ``errors``
    are how far off backtests were."""

    question: Question
    job: JobModel
    read: Readings
    policies: tuple[Policy, ...] = ()
    recorded: Policy | None = None
    errors: tuple[BacktestError, ...]

    def margin(self, policy: Policy) -> Margin:
        """How far what is predicted of the policy may be off, as backtests have been."""
        recorded, limit_s = self.recorded, self.question.objective.limit_s
        return margin_of(
            self.errors,
            scaler_kind(recorded.controller, recorded.options) if recorded else None,
            scaler_kind(policy.controller, policy.options),
            limit_s / max(1e-9, self.job.quiet_latency_s),
            by_operator=self.job.operators_under(policy.controller) is not None,
        )


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A request in which nothing is wrong, and what it names."""

    request: AdviceRequest
    recorded: Recorded
    errors: str
    untried: Case


def read_request(request: AdviceRequest, folder: Path, asked: str = "advise") -> ReadRequest:
    """Read everything that the request names. Raises SpecError with all that is wrong with what is
    ``asked`` at once, also where the folder has something that no advice has left."""
    try:
        book, recorded = _read_all(request, folder, asked)
        errors = errors_text(request.errors)
        return ReadRequest(request, recorded, errors, _untried(request, book, recorded, errors))
    except SpecError as error:
        raise SpecError(error.source, [*error.problems, *_controller_problems(request)]) from None


def keep_case(request: AdviceRequest, folder: Path, asked: str = "advise") -> Case:
    """Read everything that the request names, and keep it in ``folder/case`` for `open_case`.

    Rows of an earlier request are removed, or they would be ranked with those of this one; what was
    published stays until the new answer is ready to take its place. Raises SpecError as
    `read_request`, and for controllers, before it replays or writes.
    """
    return keep(read_request(request, folder, asked), folder)


def keep(read: ReadRequest, folder: Path) -> Case:
    """The same of a request that was read."""
    request, recorded = read.request, read.recorded

    def sizes(untried: Case) -> Sequence[int]:
        require_writable(folder / AGAINST)  # before long work
        return fixed_sizes(untried)

    case = _with_policies(request, recorded.job, read.untried, sizes)
    kept = folder / "case"
    for name in ("measurements", "staged"):
        shutil.rmtree(folder / name, ignore_errors=True)
    (folder / AGAINST).unlink(missing_ok=True)
    write_bytes(kept / _ERRORS, read.errors.encode())
    keep_recorded(recorded, kept)
    if is_file(request.prices):
        write_bytes(kept / _BOOK, input_text(request.prices, "price book").encode())
    write_json(kept / _SIZES, [policy.at_start for policy in case.policies if policy.at_start])
    write_json(kept / _REQUEST, asdict(request))
    return case


def is_advice(folder: Path) -> bool:
    """Whether `keep_case` has kept a request in it."""
    return (folder / "case" / _REQUEST).is_file()


def asked_in(folder: Path) -> AdviceRequest:
    """The request that `keep_case` has kept. Raises TypeError or KeyError for another version."""
    values = read_json(folder / "case" / _REQUEST)
    return AdviceRequest(**{**values, "controllers": tuple(values["controllers"])})


def require_ours(folder: Path) -> None:
    """Raise SpecError unless the folder is empty, not there yet, or that of an earlier advice."""
    kept = folder / "case"
    if any((kept / name).is_file() for name in (_REQUEST, KEPT_JOB)):
        return
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if folder.exists():
        is_what = "has something else in it" if folder.is_dir() else "is a file"
        problem = f"{folder} {is_what}; name a folder that is empty or not there yet"
        raise SpecError("the folder of the advice", [problem])


def open_case(folder: Path) -> Case:
    """What `keep_case` has kept. Raises StoreError when it is missing or damaged."""
    kept = folder / "case"
    try:
        request = asked_in(folder)
        book = _kept_book(kept) if is_file(request.prices) else price_book(request.prices)
        recorded = kept_recorded(kept, asked=bool(request.edges))
        sizes = read_json(kept / _SIZES)
        errors = (kept / _ERRORS).read_text()
        untried = _untried(request, book, recorded, errors)
        return _with_policies(request, recorded.job, untried, lambda _: sizes)
    except (SpecError, OSError, yaml.YAMLError, *DAMAGED) as error:
        problem = f"{kept} cannot be read ({error}); ask for the advice again"
        raise StoreError(problem) from error


def _kept_book(folder: Path) -> PriceBook:
    """Read without asking where inputs may be: `keep_case` has asked that of the user's file."""
    text = (folder / _BOOK).read_text(encoding="utf-8")
    return book_of(read_yaml(text), _BOOK)


def _read_all(request: AdviceRequest, folder: Path, asked: str) -> tuple[PriceBook, Recorded]:
    """Book and recording; neither can hide what is wrong with the other, or with the rest."""

    def book() -> PriceBook:
        book = read_book(request.prices)
        if isinstance(book, CloudPriceBook) and book.billed_from != "order":
            problem = f"{book.name}: replays bill from the order; write billed_from: order"
            raise SpecError(asked, [problem])
        return book

    *_, read, priced, _ = all_checked(
        asked,
        lambda: require_values(request, asked),
        lambda: require_ours(folder),
        lambda: parse_objective(request.objective),
        lambda: read_recorded(
            asked, request.recording, request.columns, request.edges, sort=request.sort
        ),
        book,
        lambda: read_errors(errors_text(request.errors), "--errors"),
    )
    return priced, read


def _controller_problems(request: AdviceRequest) -> list[str]:
    """What is wrong with the controllers where there is no model of the job: in any job as a whole,
    or if operators may be recorded, which a controller may rely on, with their names only."""
    names: Sequence[str] = request.controllers
    if request.edges or is_recorded(request.recording):
        names = [name for name in names if registration_problems("controller", name)]
    try:
        tried(ANY, settings={}, only=names)
    except SpecError as error:
        return [f"{error.source}: {problem}" for problem in error.problems]
    return []


def _untried(request: AdviceRequest, book: PriceBook, recorded: Recorded, errors_csv: str) -> Case:
    """The case without policies."""
    recording, objective = recorded.job, parse_objective(request.objective)
    require_signals(recording, "latency_s")
    read = readings_of(recording)
    job = _model(request, recorded, objective)
    counts = _counts(read)
    most = request.max_instances or max(1, int(counts.max()))
    conditions = ReplayConditions(
        instances_at_start=max(1, min(int(counts[0]), most)),
        max_instances=most,
        instances_per_host=request.per_host or recording.instances_per_host or 1,
        latency_limit_s=objective.limit_s,
        takes_s=job.takes_s,
    )
    provider = book.provider if isinstance(book, CloudPriceBook) else ""
    question = Question(
        objective=objective,
        book=book,
        conditions=priced(conditions, book),
        seeds=request.seeds,
        platforms=platforms_of(request.platform, recording.columns, provider),
        slots_each=recording.instances_per_host or 1,
    )
    lasting = lasting_counts(counts, read.dip_steps)
    lasted = None if request.recorded or np.ptp(lasting) else fixed(max(1, int(lasting[0])))
    if not request.recorded and lasted is None:
        job = replace(job, notes=(*job.notes, WHAT_SCALED))
    errors = read_errors(errors_csv, "--errors")
    return Case(question=question, job=job, read=read, recorded=lasted, errors=errors)


def _counts(read: Readings) -> FloatArray:
    counts: FloatArray = np.round(read.instances[~np.isnan(read.instances)])
    return counts


def _with_policies(
    request: AdviceRequest,
    recording: Recording,
    untried: Case,
    sizes: Callable[[Case], Sequence[int]],
) -> Case:
    """The case with what is tried, of fixed ``sizes`` among others; these are looked for once
    nothing speaks against any controller, in the case with what scaled the job."""
    question, job, read = untried.question, untried.job, untried.read
    unrecorded = _unrecorded(recording, job)
    in_setting = partial(setting_under, job, read.load_per_s, question.conditions)
    names = tuple(dict.fromkeys(request.controllers)) or SUITABLE
    policies = tried(
        question.conditions,
        settings=settings_of(
            job.quiet_lag_s * rate_at_half(job), by_operator=job.operators is not None
        )
        | {name: {"": options} for name, options in request.options.items()},
        only=names,
        unrecorded=unrecorded,
        setting_under=in_setting,
    )
    scaler = None
    if request.recorded:
        counts = lasting_counts(_counts(read), read.dip_steps)
        steady = () if np.ptp(counts) else (fixed(max(1, int(counts[0]))),)
        scaler = recorded_policy(
            request.recorded, (*policies, *steady), question.conditions, unrecorded, in_setting
        )
        _require_scaled(scaler, counts)
        untried = replace(untried, recorded=scaler)
    if FIXED in names:
        policies = (*policies, *map(fixed, sorted(set(sizes(untried)))))
    if scaler is not None and scaler not in policies:
        policies = (*policies, scaler)
        job = replace(job, notes=(*job.notes, f"{scaler.name} is {request.recorded}"))
    return replace(untried, policies=policies, job=job)


def _require_scaled(scaler: Policy, counts: FloatArray) -> None:
    """Raise SpecError where so many instances as it keeps were not recorded all the time."""
    if scaler.controller == FIXED and set(counts.tolist()) != {scaler.at_start}:
        why = f"{counts.min():.0f} to {counts.max():.0f} instances were recorded"
        raise SpecError("--recorded", [f"{scaler.name} has not scaled this job: {why}"])


def _model(request: AdviceRequest, recorded: Recorded, objective: LatencyObjective) -> JobModel:
    """That of the job, of which an objective can be asked. Raises SpecError."""
    doubts = percentile_doubts(recorded.job, objective)
    job = with_times(fit(recorded.job), request.start_up_s, request.restart_s)
    job = with_operators(replace(job, notes=(*job.notes, *doubts)), recorded)
    if job.operators is not None and request.max_instances:
        job.operators.require_slots(request.max_instances)
    if np.isnan(job.quiet_latency_s):
        problem = "has no latency away from restarts and scalings; record it throughout, or map it"
        about = "(--map latency=COLUMN): an objective is about latency"
        raise SpecError(recorded.job.name, [f"{problem} {about}"])
    return job


def _unrecorded(recording: Recording, job: JobModel) -> tuple[str, ...]:
    """Controllers that decide by what the recording does not have: nobody has CPU of operators."""
    if recording.is_busy_time:
        return BY_CPU
    if job.operators is None:
        return BY_BUSY_TIME
    return tuple(name for name in BY_CPU if name not in BY_JOB)


def fixed_sizes(case: Case) -> Sequence[int]:
    """The fixed sizes to try: the fewest instances with which every seed reaches the objective, the
    fewest that hold it (`margins.verdict`), the instances at the start, and the most.

    The fewest are found by halving: in a replay that never scales more instances are not later.
    """
    question, job, margin = case.question, case.job, case.margin(fixed(1)).share
    conditions = question.conditions
    loads = [load_of(case.read, seed) for seed in range(1, question.seeds + 1)]
    loads = list({id(load): load for load in loads}.values())  # noise of CPU moves no latency

    def holds(count: int, *, certain: bool) -> bool:
        started, build = replace(conditions, instances_at_start=count), fixed(count).build
        shares = []
        for load in loads:
            run = replay(job, load, started, build)
            beyond = job.is_beyond(load, run.instances) & certain
            shares.append(question.objective.between(load, run.latency_s, beyond)[0])
        low, high = share_range(shares, shares, margin if certain else 0.0)
        return verdict(question.objective.share, low, high) == HOLDS

    def fewest(*, certain: bool) -> int:
        sizes = range(1, conditions.max_instances + 1)
        return 1 + bisect_left(sizes, True, key=lambda count: holds(count, certain=certain))

    sizes = {fewest(certain=False), fewest(certain=True)}
    sizes |= {conditions.instances_at_start, conditions.max_instances}
    return sorted(one for one in sizes if 1 <= one <= conditions.max_instances)


def rate_at_half(job: JobModel) -> float:
    """Records per second of an instance at half its CPU, or the most that was seen if less."""
    rates = np.linspace(0, job.most_per_s, 2000)
    reached = np.flatnonzero(job.cpu_share(rates) >= 0.5)
    return float(rates[reached[0]]) if reached.size and reached[0] else job.most_per_s


def load_of(read: Readings, seed: int) -> FloatArray:
    """The recorded load for the first seed; for the others days drawn from it, where it has them.

    A recording of fewer days is the same load for every seed: other days are not known.
    """
    per_day = round(DAY_S / read.step_s)
    days = read.load_per_s.size // per_day
    if seed == 1 or days < DAYS_TO_DRAW:
        return read.load_per_s
    drawn = np.random.default_rng(seed).integers(0, days, days)
    return np.concatenate([read.load_per_s[day * per_day : (day + 1) * per_day] for day in drawn])


def seeded(question: Question, seed: int) -> Question:
    """The question with the seed of one replay."""
    return replace(question, conditions=replace(question.conditions, seed=seed))
