"""Waiting for hours without a worker, and without ever being queued again."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator
from airflow.sdk.exceptions import AirflowFailException
from airflow.triggers.base import BaseTrigger, TaskFailedEvent, TaskSuccessEvent, TriggerEvent
from asgiref.sync import sync_to_async

if TYPE_CHECKING:
    from airflow.sdk import Context

LOOK_EVERY_S = 5.0
UNDER_WAY = ("queued", "running")
"""States of a DAG run that is not over."""


def count_dag_runs(dag_id: str, run_id: str, *states: str) -> int:
    """1 when this DAG run exists and is in one of these states, else 0; in worker and triggerer."""
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    return RuntimeTaskInstance.get_dr_count(dag_id=dag_id, run_ids=[run_id], states=list(states))


class Look(BaseTrigger):
    """Looks until what is waited for has come, and ends the task where it looks: in the triggerer.

    The task does not go back to a worker. A rescheduled or resumed one is queued a second time in
    the same try, and fails when the executor reports the end of the first late (apache/airflow
    issue 71172). ``about`` is what it is about, as JSON; ``told`` is for what has been logged and
    need not be again.
    """

    def __init__(self, **about: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.about = about
        self.told: set[Any] = set()

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """What the triggerer needs to look."""
        return f"{type(self).__module__}.{type(self).__qualname__}", self.about

    @abstractmethod
    def passes(self) -> bool:
        """Look once. Raises AirflowFailException for what never comes."""

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look every few seconds. A task that fails here says why once more in its next try.

        A look that fails for another reason says nothing about what is waited for: a trigger that
        it ended would cost the task a try. The deadline of the task ends what stays broken.
        """
        try:
            while not await sync_to_async(self._passes_now)():
                await asyncio.sleep(LOOK_EVERY_S)
        except AirflowFailException as error:
            self.log.error("tidebench: %s", error)
            yield TaskFailedEvent()
        else:
            yield TaskSuccessEvent()

    def _passes_now(self) -> bool:
        """Whether a look succeeds and passes; each reason why one fails is logged once."""
        try:
            return self.passes()
        except AirflowFailException:
            raise
        except Exception as error:
            if repr(error) not in self.told:
                self.told.add(repr(error))
                self.log.warning("tidebench: cannot look now (%r); looking again", error)
            return False


class Wait(BaseSensorOperator):
    """Looks once in a worker; what has not come by then is left to the triggerer."""

    @abstractmethod
    def look(self, context: Context) -> Look:
        """How to look at what is waited for."""

    def execute(self, context: Context) -> None:
        """Pass, fail for what never comes, or wait for ``timeout`` seconds at most."""
        look = self.look(context)
        if not look.passes():
            limit = timedelta(seconds=self.timeout)
            self.defer(trigger=look, method_name="execute", timeout=limit)
