"""Many runs at once, in worker processes: each run whole, alone, and reused once complete."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any, Literal

from include.controllers.failures import error_line, places
from include.experiment.spec import RunSpec
from include.files.whole import write_bytes
from include.model.compliance import LEVEL_NAMES
from include.model.errors import ControllerFailed, SetupError, TestbedError, TidebenchError
from include.runs.stages import provision, run_alone, run_provisioned, store_of, stored_state
from include.runs.stored import Stored, code_of
from include.testbeds import TESTBEDS

AGAIN_S = 1.0
"""How soon a run that goes on although it was interrupted is interrupted again."""
DIED = (
    "the process of this run was killed, most likely because memory ran out; run it again when "
    "more is free: it goes on from its last window"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What became of one run. ``summaries`` has one entry per window, none after a failure.

    ``stored`` says what was found of it before.
    """

    spec: RunSpec
    outcome: Literal["measured", "reused", "failed"]
    summaries: tuple[Mapping[str, Any], ...] = ()
    error: str = ""
    took_s: float = 0.0
    stored: str = ""

    @property
    def samples(self) -> int:
        return sum(summary["samples"] for summary in self.summaries)

    @property
    def compliance_percent(self) -> dict[str, float]:
        """By level, the share of all samples within it; empty without a sample."""
        samples = self.samples
        return {
            level: 100
            * sum(summary["samples_within"][level] for summary in self.summaries)
            / samples
            for level in LEVEL_NAMES
            if samples
        }

    @property
    def line(self) -> str:
        """What became of the run, for a line of progress."""
        if self.outcome == "failed":
            reason = self.error.strip().splitlines()
            return f"FAILED: {reason[-1] if reason else 'for no known reason'}"
        percent = self.compliance_percent
        shares = (f"{percent[level]:.1f}" if level in percent else "-" for level in LEVEL_NAMES)
        waiting = self.summaries[-1]["waiting_items"]
        return (
            f"compliance {' / '.join(shares)} % (real-time / near real-time / relaxed), "
            f"{waiting} item{'' if waiting == 1 else 's'} waiting  {self.how}"
        )

    @property
    def how(self) -> str:
        """Reused, or how long it took and why nothing stored counted."""
        if self.outcome == "reused":
            return "reused"
        why = f", {self.stored}" if self.stored not in ("", Stored.NOTHING) else ""
        return f"{self.took_s:.2f} s{why}"


RunReport = Callable[[RunResult], None]
WindowReport = Callable[[RunSpec, Mapping[str, Any]], None]
"""What is called with the summary of every window of a run in this process."""


def run_batch(
    specs: Sequence[RunSpec],
    root: Path,
    *,
    processes: int | None = None,
    side_by_side: int = 1,
    report: RunReport = lambda _: None,
    window: WindowReport = lambda _, __: None,
) -> list[RunResult]:
    """Measure every run under ``root``; results in the order of ``specs``.

    ``processes`` is the number of worker processes, one per CPU by default; with 1 everything
    happens in this process. Measurements do not depend on it: of runs in real time, which share
    the CPUs of their testbed, ``side_by_side`` are measured at a time. A run that is complete,
    with the same inputs and by the same code, is reused, one that was interrupted goes on from its
    last window, and one that fails leaves the others alone: its error is in its result. ``report``
    is called once per finished run, in the order in which they finish, and ``window`` after every
    window of a run in this process.
    """
    root = root.absolute()  # a controller of a user's own may change the folder
    results: dict[int, RunResult] = {}

    def finished(index: int, result: RunResult) -> None:
        results[index] = result
        report(result)

    waiting, alone = list[int](), list[int]()
    for index, spec in enumerate(specs):
        if (reused := _reused(spec, root)) is not None:
            finished(index, reused)
        else:
            (alone if TESTBEDS[spec.testbed].real_time else waiting).append(index)
    # What happens to the machine meanwhile happens to every controller of a seed.
    alone.sort(key=lambda index: specs[index].seed)
    if side_by_side > 1 and len(alone) > 1:
        _side_by_side(specs, root, alone, side_by_side, finished)
        alone = []
    workers = min(processes or os.cpu_count() or 1, len(waiting))
    if workers <= 1:
        alone, waiting = [*alone, *waiting], []
    for index in alone:
        with suppress(KeyError, SyntaxError, OSError):  # a problem of its run
            code_of(specs[index])  # all before the first, which may take hours
    for index in alone:
        finished(index, _measure(specs[index], root, window))
    _in_workers(specs, root, waiting, workers, finished)
    return [results[index] for index in range(len(specs))]


def require_complete(results: Sequence[RunResult]) -> None:
    """Raise TestbedError with every run that failed and why; the others are kept."""
    failed = [result for result in results if result.outcome == "failed"]
    if failed and len(results) == 1:
        raise TestbedError(failed[0].error)
    if failed:
        listed = "\n".join(f"  - {result.spec.run_id}: {result.error}" for result in failed)
        raise TestbedError(
            f"{len(failed)} of {len(results)} runs failed; the others are kept, and are reused "
            f"when this is started again.\n{listed}"
        )


def _measure(spec: RunSpec, root: Path, window: WindowReport = lambda _, __: None) -> RunResult:
    """Run one spec to its end in this process; whatever goes wrong is in the result."""
    started_s = time.perf_counter()
    try:
        with run_alone(spec, root):
            if (reused := _reused(spec, root)) is not None:  # somebody else was at it
                store_of(spec, root).remove_windows(commits=False)  # or died before it did this
                return reused
            stored = provision(spec, root)
            summaries = tuple(run_provisioned(spec, root, partial(window, spec)))
    except Exception as error:
        return RunResult(spec=spec, outcome="failed", error=_reason(error, spec, root))
    took_s = time.perf_counter() - started_s
    return RunResult(
        spec=spec, outcome="measured", summaries=summaries, took_s=took_s, stored=stored
    )


def _reason(error: Exception, spec: RunSpec, root: Path) -> str:
    """Why a run failed; the traceback of what nobody raises on purpose goes to its folder."""
    said = str(error)
    if not isinstance(error, TidebenchError):
        said = f"{error_line(error)} ({places(error, RunResult)[-1]})"
    elif not isinstance(error, ControllerFailed):
        return said
    path = store_of(spec, root).traceback
    text = "".join(traceback.format_exception(error.__cause__ or error))
    try:
        write_bytes(path, text.encode(errors="replace"))
    except SetupError:  # the disk is full
        return f"{said}; the traceback, which {path} cannot keep:\n{text}"
    return f"{said}; traceback: {path}"


def _reused(spec: RunSpec, root: Path) -> RunResult | None:
    """The stored result of a complete run; None when there is anything left to do or to say."""
    store = store_of(spec, root)
    if not store.manifest.is_file():
        return None
    try:
        stored = stored_state(spec, root)
        if stored is not Stored.COMPLETE:
            return None
        summaries = tuple(store.read_commit(window)["summary"] for window in range(spec.windows))
    except TidebenchError:
        return None  # measuring it says what is wrong, or puts it right
    return RunResult(spec=spec, outcome="reused", summaries=summaries, stored=stored.value)


def _side_by_side(
    specs: Sequence[RunSpec],
    root: Path,
    waiting: Sequence[int],
    at_once: int,
    finished: Callable[[int, RunResult], None],
) -> None:
    """Measure runs in real time, each in a process of its own that gives back what it leased.

    Ctrl-C reaches every run that is under way, and nothing more is begun.
    """
    with ThreadPoolExecutor(at_once) as threads:
        futures = {threads.submit(_in_own_process, specs[index], root): index for index in waiting}
        try:
            for future in as_completed(futures):
                finished(futures[future], future.result())
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            for child in active_children():
                if child.pid:
                    os.kill(child.pid, signal.SIGINT)
            raise


def _in_own_process(spec: RunSpec, root: Path) -> RunResult:
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_measure_into, args=(sender, spec, root))
    child.start()
    sender.close()
    try:
        result: RunResult = receiver.recv()
    except EOFError:
        result = RunResult(spec=spec, outcome="failed", error=DIED)
    child.join()
    return result


def _measure_into(sender: Connection, spec: RunSpec, root: Path) -> None:
    """One run; a signal, or the end of the process that started it, ends it and gives back."""
    ends = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
        ends.append(signal.SIGHUP)
    for number in ends:
        signal.signal(number, _interrupt_once)
    _without_threads()
    _with_parent(lambda: os.kill(os.getpid(), signal.SIGINT))
    try:
        sender.send(_measure(spec, root))
    except KeyboardInterrupt:
        for number in ends:
            signal.signal(number, signal.SIG_IGN)
        with suppress(OSError):  # that process may be over
            sender.send(RunResult(spec=spec, outcome="failed", error="interrupted"))


def _interrupt_once(number: int, frame: object) -> None:
    """What a run gives back is not interrupted again; what goes on although it was, is.

    C code that calls Python back, like numba's, drops what is raised there.
    """
    handled = sys.exception()
    while handled and not isinstance(handled, KeyboardInterrupt):
        handled = handled.__context__
    if not handled:
        again = threading.Timer(AGAIN_S, os.kill, (os.getpid(), signal.SIGINT))
        again.daemon = True
        again.start()
        raise KeyboardInterrupt


def _with_parent(end: Callable[[], None]) -> None:
    """Call ``end`` in a thread once the process that started this one is over."""

    def watch() -> None:
        if (parent := parent_process()) is not None:
            parent.join()
            end()

    threading.Thread(target=watch, daemon=True).start()


def _without_threads() -> None:
    """Let this process end with its work, and not with the last thread of a user's controller."""

    def end() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    Finalize(None, end, exitpriority=0)


def _in_workers(
    specs: Sequence[RunSpec],
    root: Path,
    waiting: list[int],
    workers: int,
    finished: Callable[[int, RunResult], None],
) -> None:
    """Share the runs out; when a worker is killed, the runs it may have had go on alone.

    The pool cannot say which run was in the worker that died, only that it was one of the
    first that had not finished. Each of those gets a worker of its own, so that the one to
    blame fails by itself; the others return to a new pool, before them: they may never end.
    """
    alone = list[int]()
    while waiting:
        left = _in_one_pool(specs, root, waiting, workers, finished)
        alone += left[:workers]
        waiting = left[workers:]
    for index in alone:
        if _in_one_pool(specs, root, [index], 1, finished):
            finished(index, RunResult(spec=specs[index], outcome="failed", error=DIED))


def _in_one_pool(
    specs: Sequence[RunSpec],
    root: Path,
    waiting: Sequence[int],
    workers: int,
    finished: Callable[[int, RunResult], None],
) -> list[int]:
    """Run in one pool; returns what was left when a worker died, in the order of ``specs``."""
    left = set(waiting)
    pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_worker)
    try:
        futures: dict[Future[RunResult], int] = {
            pool.submit(_measure, specs[index], root): index for index in waiting
        }
        for future in as_completed(futures):
            index = futures[future]
            finished(index, future.result())
            left.discard(index)
    except BrokenProcessPool:
        pass
    finally:
        pool.shutdown(cancel_futures=True)
    return sorted(left)


def _worker() -> None:
    """A worker leaves Ctrl-C to the process that started it, and ends when that one does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _without_threads()
    _with_parent(lambda: os._exit(1))
