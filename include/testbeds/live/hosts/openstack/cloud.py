"""A cloud: connections, retries of what is transient, and its errors as ours.

The retries of keystoneauth are not used: they wait as long as a Retry-After says, and here every
wait has a deadline.
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
"""In what Nova says when a limit of the project is reached; the status is only 403."""


class CloudClient:
    """A cloud by its name in clouds.yaml; "" is the one that the environment names."""

    def __init__(self, name: str, answer_within_s: float) -> None:
        self.name = name
        self._answer_within_s = answer_within_s
        self._of_thread = threading.local()
        self._all: list[Connection] = []

    @property
    def connection(self) -> Connection:
        """The connection of this thread: they are not to be shared between threads.

        Raises SetupError when no such cloud is configured.
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
        """The outcome of a work; what is transient is tried again until ``within_s`` are over.

        Raises CapacityExhausted, TestbedNotReady for what still might pass, else TestbedError.
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
        """Turn what the SDK raises into errors of ours."""
        try:
            yield
        except (exceptions.SDKException, auth.ClientException) as error:
            said = f"{self.label} cannot {what}: {error}"
            if any(words in str(error).lower() for words in QUOTA_WORDS):
                raise CapacityExhausted(said) from error
            if is_transient(error):
                raise TestbedNotReady(f"{said}; its API may be back later") from error
            raise TestbedError(said) from error

    def close(self) -> None:
        """Close the connections of all threads."""
        for one in self._all:
            one.close()
        self._all.clear()
        self._of_thread = threading.local()


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed later: nobody there, too busy, or something in the way.

    Conflicts pass: Nova has them while it is still at work on the server in question.
    """
    if isinstance(error, auth.ConnectionError):
        return True
    status = getattr(error, "status_code", None) or getattr(error, "http_status", None) or 0
    return status in (409, 429) or 500 <= status < 600


def _wait_s(state: RetryCallState) -> float:
    """As the cloud asks, else longer each time."""
    error = state.outcome.exception() if state.outcome else None
    asked = getattr(getattr(error, "response", None), "headers", {}).get("Retry-After", "")
    return max(BACK_OFF(state), float(asked) if asked.isdigit() else 0.0)


def _configured() -> str:
    """Which clouds there are, for somebody who named another one."""
    names = sorted(openstack.config.OpenStackConfig().get_cloud_names())
    if not names:
        return "no cloud is configured; write a clouds.yaml, or set OS_CLIENT_CONFIG_FILE"
    return f"there are: {', '.join(names)}"
