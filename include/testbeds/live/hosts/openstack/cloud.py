"""A client of a cloud: connections, retries of transient errors, and their translation.

Retries of keystoneauth are not used, because they wait as long as a Retry-After header says; here
every wait has a deadline.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import keystoneauth1.exceptions as auth
import openstack
from openstack import exceptions
from openstack.connection import Connection
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_before_delay,
    wait_exponential_jitter,
)

from include.model.errors import CapacityExhausted, SetupError, TestbedError, TestbedNotReady

T = TypeVar("T")
BACK_OFF = wait_exponential_jitter(multiplier=0.5, max=8, jitter=0.5)
QUOTA_WORDS = ("quota exceeded", "number of ports exceeded", "quota for")
"""Phrases in Nova's message when a quota is reached; its status is only 403."""


class CloudClient:
    """A cloud by its name in clouds.yaml; "" is the environment's."""

    def __init__(self, name: str, answer_within_s: float) -> None:
        self.name = name
        self._answer_within_s = answer_within_s
        self._of_thread = threading.local()
        self._all: list[Connection] = []

    @property
    def connection(self) -> Connection:
        """This thread's connection; threads must not share one.

        Raises SetupError if the cloud is not configured.
        """
        if not hasattr(self._of_thread, "connection"):
            try:
                made = openstack.connect(
                    cloud=self.name or None,
                    api_timeout=self._answer_within_s,
                    app_name="tidebench",
                )
            except (exceptions.ConfigException, auth.ClientException) as error:
                raise SetupError(f"{self.label}: {error}; {_configured()}") from error
            self._of_thread.connection = made
            self._all.append(made)
        connection: Connection = self._of_thread.connection
        return connection

    @property
    def label(self) -> str:
        return f"cloud {self.name}" if self.name else "the cloud that the environment names"

    def with_retries(self, work: Callable[[Connection], T], what: str, within_s: float) -> T:
        """Return the result of ``work``, retried for ``within_s`` after transient errors.

        Raises CapacityExhausted, TestbedNotReady for an error that still may pass, or TestbedError.
        """
        retrying = Retrying(
            retry=retry_if_exception(is_transient),
            stop=stop_before_delay(within_s),
            wait=_wait_s,
            reraise=True,
        )
        with self.translated_errors(what):
            return retrying(lambda: work(self.connection))

    @contextmanager
    def translated_errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except (exceptions.SDKException, auth.ClientException) as error:
            message = f"{self.label} cannot {what}: {error}"
            if any(words in str(error).lower() for words in QUOTA_WORDS):
                raise CapacityExhausted(message) from error
            if is_transient(error):
                raise TestbedNotReady(f"{message}; its API may be back later") from error
            raise TestbedError(message) from error

    def close(self) -> None:
        for connection in self._all:
            connection.close()
        self._all.clear()
        self._of_thread = threading.local()


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed later.

    Conflicts are transient: Nova reports them while it still works on the server.
    """
    if isinstance(error, auth.ConnectionError):
        return True
    status = getattr(error, "status_code", None) or getattr(error, "http_status", None) or 0
    return status in (409, 429) or 500 <= status < 600


def _wait_s(state: RetryCallState) -> float:
    """Seconds of the Retry-After header if longer than the exponential back-off."""
    error = state.outcome.exception() if state.outcome else None
    retry_after = getattr(getattr(error, "response", None), "headers", {}).get("Retry-After", "")
    return max(BACK_OFF(state), float(retry_after) if retry_after.isdigit() else 0.0)


def _configured() -> str:
    """End of an error message with the configured clouds."""
    try:
        names = set(openstack.config.OpenStackConfig().get_cloud_names())
    except exceptions.ConfigException:
        return "correct that file"
    names.discard("defaults")  # what the SDK has where there is none
    if not names:
        return "no cloud is configured; write a clouds.yaml, or set OS_CLIENT_CONFIG_FILE"
    return f"there are: {', '.join(sorted(names))}"
