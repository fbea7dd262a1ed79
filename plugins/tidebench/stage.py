"""What every task of an experiment has in common."""

from __future__ import annotations

import os
import signal
import threading
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, Param
from airflow.sdk.exceptions import AirflowFailException, AirflowTaskTimeout

from tidebench.lineage import STAGED, files

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.experiment.spec import RunSpec
    from include.runs.measurements.origin import DagRun

DEFAULTS = {
    "owner": "tidebench",
    "retries": 2,
    "retry_delay": timedelta(seconds=10),
    "execution_timeout": timedelta(hours=2),
}
"""What every task has unless its DAG says otherwise."""
SCHEDULES = {
    "nightly_reproducibility": "0 2 * * *",
    "reap": "17 * * * *",
    "shadow_report": "30 0 * * *",
}
"""When the DAGs run that TIDEBENCH_SCHEDULES names."""
END_AGAIN_S = 2.0
"""How soon a task that goes on although it was ended is ended again. Long enough for one that does
stop to tidy up; Airflow kills it after five seconds."""
REPOSITORY = Path(__file__).resolve().parents[2]


def data_root() -> Path:
    """The folder of all experiments: TIDEBENCH_DATA_ROOT, or ``var`` beside this code."""
    return Path(os.environ.get("TIDEBENCH_DATA_ROOT") or REPOSITORY / "var").resolve()


def spec_file(text: str) -> Path:
    """The spec file of a sweep; a relative path starts at this repository."""
    from include.files.inputs import expanded

    return REPOSITORY / expanded(text)


def described(doc: str | None, params: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What every DAG has: the docstring of its file, the first line of it in the list of DAGs, and
    a form. What is triggered begins, so no DAG is paused."""
    return {
        "description": (doc or "").strip().partition("\n")[0],
        "doc_md": doc,
        "params": {name: Param(**keywords) for name, keywords in params.items()},
        "default_args": DEFAULTS,
        "is_paused_upon_creation": False,
        "catchup": False,
    }


def schedule_of(dag_id: str) -> str | None:
    """When the DAG runs by itself: never, unless TIDEBENCH_SCHEDULES names it.

    Not by pausing: Airflow never begins what is triggered in a DAG that is paused, and whoever
    unpauses one to trigger it begins its schedule as well.
    """
    names = set(os.environ.get("TIDEBENCH_SCHEDULES", "").replace(",", " ").split())
    if unknown := sorted(names - SCHEDULES.keys()):
        raise ValueError(
            f"TIDEBENCH_SCHEDULES names {', '.join(unknown)}; it may name {', '.join(SCHEDULES)}"
        )
    return SCHEDULES[dag_id] if dag_id in names else None


def run_of(text: str) -> RunSpec:
    """The run that ``resolve_spec`` handed down as JSON."""
    from include.experiment.spec import RunSpec

    return RunSpec.from_json(text)


def is_complete(run: RunSpec) -> bool:
    """Whether what is stored can stand for the run."""
    from include.runs.stages import stored_state

    stored = stored_state(run, data_root())
    return stored is stored.COMPLETE


def dag_run_of_task(context: Context) -> DagRun:
    """The DAG run that a task belongs to: it is kept with what the task measures or publishes."""
    from include.runs.measurements.origin import DagRun

    return DagRun(context["dag_run"].dag_id, context["dag_run"].run_id)


@contextmanager
def without_vain_retries() -> Iterator[None]:
    """Turn errors that a retry cannot fix into a final failure; let the others pass."""
    from include.model.errors import (
        CapacityExhausted,
        GateFailed,
        SetupError,
        SpecError,
        StoreError,
    )

    try:
        yield
    except (SpecError, CapacityExhausted, GateFailed, SetupError, StoreError) as error:
        # The message says everything; a traceback of what led to it would only hide it.
        raise AirflowFailException(str(error)) from None


class TidebenchOperator(BaseOperator):
    """What can tell how it gets on."""

    context: Context
    """That of the task while it works."""

    def say(self, message: str, *values: object) -> None:
        """Log one line of progress; `make demo` shows exactly these."""
        self.log.info("tidebench: " + message, *values)


class Stage(TidebenchOperator):
    """One step of a run. Subclasses say what it does in ``work``.

    ``run`` is the JSON text of the run. The value of ``work`` becomes the task's XCom. ``reads``
    and ``writes`` are files in the folder of the run.
    """

    template_fields: Sequence[str] = ("run",)
    reads: Sequence[str] = ("run.json", "arrivals.csv")
    writes: Sequence[str] = ()
    _at_work = False

    def __init__(self, *, run: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run

    def execute(self, context: Context) -> Any:
        """Do the work; errors that a retry cannot fix fail the task for good."""
        from include.testbeds import TESTBEDS

        self.context, run = context, run_of(self.run)
        if TESTBEDS[run.testbed].in_cloud:
            from tidebench.connections import use_cloud

            use_cloud()
        root = data_root()
        home = root / run.experiment / "runs" / run.run_id
        self.add_inlets(files(home, *self.reads))
        self._at_work = True
        try:
            with without_vain_retries():
                result = self.work(run, root)
        finally:
            self._at_work = False
        self.add_outlets(files(home, *self.writes))
        return result

    def on_kill(self) -> None:
        """Stop at once when the task is ended by hand: Airflow would let it go on for seconds.

        Also called after a time-out, which a retry may follow.
        """
        if self._at_work:  # C code that calls Python back, like numba's, drops what is raised there
            threading.Timer(END_AGAIN_S, self._end_again).start()
        raise AirflowTaskTimeout("this task was ended by hand, or took longer than it may")

    def _end_again(self) -> None:
        if self._at_work:
            os.kill(os.getpid(), signal.SIGTERM)

    @abstractmethod
    def work(self, run: RunSpec, root: Path) -> Any:
        """Do this step for ``run`` below the data root. Safe to repeat."""


class Review(TidebenchOperator):
    """One step of the results of an experiment. Subclasses say what it does in ``work``.

    ``experiment`` is its name. The value of ``work`` becomes the task's XCom. ``reads`` and
    ``writes`` are patterns of files below the folder of the experiment.
    """

    template_fields: Sequence[str] = ("experiment",)
    reads: Sequence[str] = (STAGED,)
    writes: Sequence[str] = ()

    def __init__(self, *, experiment: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.experiment = experiment

    def execute(self, context: Context) -> Any:
        """Do the work; errors that a retry cannot fix fail the task for good."""
        self.context, folder = context, data_root() / self.experiment
        self.add_inlets(files(folder, *self.reads))
        with without_vain_retries():
            result = self.work(folder)
        self.add_outlets(files(folder, *self.writes))
        return result

    @abstractmethod
    def work(self, folder: Path) -> Any:
        """Do this step in the folder of the experiment. Safe to repeat."""
