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

POLL_EVERY_S = 5.0
UNDER_WAY = ("queued", "running")
"""States of a DAG run that is not over."""


def count_dag_runs(dag_id: str, run_id: str, *states: str) -> int:
    """1 when this DAG run exists and is in one of these states, else 0; in worker and triggerer."""
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    return RuntimeTaskInstance.get_dr_count(dag_id=dag_id, run_ids=[run_id], states=list(states))


class Poll(BaseTrigger):
    """Polls until a condition holds, and ends the task where it polls: in the triggerer.

    The task does not go back to a worker. A rescheduled or resumed one is queued a second time in
    the same try, and fails when the executor reports the end of the first late (apache/airflow
    issue 71172). ``about`` are its arguments, as JSON; ``logged`` is what was logged already.
    """

    def __init__(self, **about: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.about = about
        self.logged: set[Any] = set()

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{type(self).__module__}.{type(self).__qualname__}", self.about

    @abstractmethod
    def passes(self) -> bool:
        """Whether the condition holds now. Raises AirflowFailException when it never will."""

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Poll every few seconds. A task that fails here says why once more in its next try.

        A poll that fails for another reason says nothing about the condition: a trigger that it
        ended would cost the task a try. The deadline of the task ends what stays broken.
        """
        try:
            while not await sync_to_async(self._passes_now)():
                await asyncio.sleep(POLL_EVERY_S)
        except AirflowFailException as error:
            self.log.error("tidebench: %s", error)
            yield TaskFailedEvent()
        else:
            yield TaskSuccessEvent()

    def _passes_now(self) -> bool:
        """Whether a poll succeeds and passes; each reason why one fails is logged once."""
        try:
            return self.passes()
        except AirflowFailException:
            raise
        except Exception as error:
            if repr(error) not in self.logged:
                self.logged.add(repr(error))
                self.log.warning("tidebench: cannot look now (%r); looking again", error)
            return False


class PollingSensor(BaseSensorOperator):
    """Polls once in a worker; if the condition does not hold, the triggerer goes on polling."""

    @abstractmethod
    def poll(self, context: Context) -> Poll:
        """The poll that tells whether the condition holds."""

    def execute(self, context: Context) -> None:
        """Pass, fail when the condition never holds, or wait for ``timeout`` seconds at most."""
        poll = self.poll(context)
        if not poll.passes():
            limit = timedelta(seconds=self.timeout)
            self.defer(trigger=poll, method_name="execute", timeout=limit)
