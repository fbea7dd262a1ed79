"""Points as Spark tasks: one job, one task per point, results streamed back as they finish.

A task gets its run and nothing else. Workers of a cluster get this code as an archive
from the driver; they find the data root at the same path, and write straight into the store.
"""

from __future__ import annotations

import gc
import logging
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from include.controllers import CONTROLLERS
from include.experiment.spec import RunSpec
from include.runs.batch import RunResult, run_batch
from include.runs.spark.session import spark_session
from include.runs.versions import COMMIT, INCLUDE, modules_behind, root_of, versions

if TYPE_CHECKING:
    from pyspark import SparkContext

REPOSITORY = INCLUDE.parent
UNPACKED = "tidebench"
POLL_S = 0.2
SKIPPED = {"__pycache__"}
DIED = (
    "the worker of this point was killed, most likely because memory ran out; run it again with "
    "fewer cores (--on 'local[1]'): it goes on from its last window"
)


def measure_points(
    specs: Sequence[RunSpec],
    root: Path,
    *,
    master: str | None,
    report: Callable[[RunResult], None],
) -> None:
    """Measure every point below ``root``; ``report`` is called once each, as they finish.

    ``master`` is a Spark master, None the one that spark-submit has chosen. A point that fails
    or takes its worker with it leaves the others alone. Raises SetupError without Java 17.
    """
    with spark_session(master) as spark, tempfile.TemporaryDirectory() as folder:
        context = spark.sparkContext
        controllers = {controller.name for spec in specs for controller in spec.all_controllers}
        _let_workers_find_this_code(context, Path(folder), user_roots(sorted(controllers)))
        waiting = {spec.run_id: spec for spec in specs}
        finished = _in_one_job(context, list(waiting.values()), root)
        for result in finished:
            del waiting[result.spec.run_id]
            report(result)
        # Spark gives a job up when a worker dies too often, and with it points that did no harm.
        for result in _one_by_one(context, list(waiting.values()), root):
            report(result)


def _in_one_job(context: SparkContext, specs: Sequence[RunSpec], root: Path) -> Iterable[RunResult]:
    """Results as tasks finish; ends early when Spark gives the job up."""
    if not specs:
        return
    rows: Any = context.accumulator([], _Appended())  # type: ignore[arg-type]
    reported = 0
    with ThreadPoolExecutor(1) as thread:
        job = thread.submit(_run_job, context, specs, root, rows)
        try:
            while True:
                ended = bool(wait([job], timeout=POLL_S).done)
                new = rows.value[reported:]
                reported += len(new)
                yield from new
                if ended:
                    return
        except BaseException:
            context.cancelAllJobs()
            raise


def _one_by_one(context: SparkContext, specs: Sequence[RunSpec], root: Path) -> Iterable[RunResult]:
    """Each point as a job of its own, so that the one that kills its worker fails alone."""
    with ThreadPoolExecutor(max(1, context.defaultParallelism)) as threads:
        jobs: dict[Future[list[RunResult]], RunSpec] = {
            threads.submit(lambda spec: list(_in_one_job(context, [spec], root)), spec): spec
            for spec in specs
        }
        left = set(jobs)
        while left:
            ended, left = wait(left, return_when=FIRST_COMPLETED)
            for job in ended:
                died = RunResult(spec=jobs[job], outcome="failed", error=DIED)
                yield from job.result() or [died]


def _run_job(context: SparkContext, specs: Sequence[RunSpec], root: Path, rows: Any) -> None:
    from py4j.protocol import Py4JJavaError

    points = context.parallelize(specs, len(specs))
    try:
        points.foreachPartition(partial(_measure_all, root=str(root), rows=rows))
    except Py4JJavaError as error:
        logging.getLogger(__name__).debug("job given up: %s", error)


def _measure_all(specs: Iterable[RunSpec], *, root: str, rows: Any) -> None:
    """Runs on a worker. Never raises: what goes wrong is in the result."""
    for spec in specs:
        rows.add(run_batch([spec], Path(root), processes=1))
    # After every task Spark looks for garbage among all objects; what the first one loaded is none.
    if not gc.get_freeze_count():
        gc.freeze()


class _Appended:
    """A Spark accumulator of rows: what a task adds reaches the driver when the task is done."""

    def zero(self, value: list[RunResult]) -> list[RunResult]:
        return []

    def addInPlace(self, value1: list[RunResult], value2: list[RunResult]) -> list[RunResult]:  # noqa: N802
        return value1 + value2


def _let_workers_find_this_code(
    context: SparkContext, folder: Path, user_roots: Mapping[Path, Path]
) -> None:
    """Tasks of a local master read this repository; others the archive, in their own folder."""
    if not str(context.master).startswith("local"):
        context.addArchive(f"{archive_in(folder, user_roots)}#{UNPACKED}")
        # Relative: an executor unpacks it where it runs, wherever that is.
        context.environment["PYTHONPATH"] = UNPACKED
        return
    before = context.environment.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    parts = [
        str(REPOSITORY),
        *map(str, user_roots.values()),
        *filter(None, before.split(os.pathsep)),
    ]
    context.environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(parts))


def user_roots(controllers: Iterable[str]) -> dict[Path, Path]:
    """Packages and modules that controllers of a user's own lie in or import from beside them, each
    with its folder."""
    own = [path.partition(":")[0] for path in map(CONTROLLERS.path_of, controllers) if path]
    tops = {module.partition(".")[0] for module in (*own, *modules_behind(*own))} - {INCLUDE.name}
    return {root: root.parent for root in map(root_of, tops) if root}


def archive_in(folder: Path, user_roots: Mapping[Path, Path]) -> Path:
    """Write ``tidebench.zip`` into a folder: `include/` as it is here, and of which commit it is,
    with packages of a user's ``own`` beside it.

    To be unpacked before use: topologies, calibrations and levels are read as files, and compiled
    functions are kept beside their source.
    """
    path = folder / "tidebench.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for root, parent in {INCLUDE: INCLUDE.parent, **user_roots}.items():
            for file in sorted(root.rglob("*")) if root.is_dir() else [root]:
                within = file.relative_to(parent)
                if file.is_file() and not SKIPPED.intersection(within.parts):
                    archive.write(file, within)
        archive.writestr(COMMIT.name, versions()["git_commit"] + "\n")
    return path
