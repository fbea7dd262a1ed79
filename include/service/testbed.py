"""The job that a run of the testbed `flink` has on this machine, and its Flink."""

from __future__ import annotations

import re
import threading
from contextlib import closing, suppress
from typing import Any

from include.model.errors import SpecError
from include.service.rest import FlinkRest, NoSuchJobError, answers_of
from include.testbeds.flink.installation import flink_state
from include.testbeds.flink.rest import NoAnswerError

TESTBED = "testbed"
"""In place of an address."""
WAITS_S = 180.0
LOOKS_EVERY_S = 1.0


def running_jobs() -> list[tuple[str, str]]:
    """Address and name of every job that runs there."""
    jobs = []
    for config in sorted((flink_state() / "runs").glob("*/conf/config.yaml")):
        with suppress(NoAnswerError, OSError):  # of a run that is over, or being removed
            port = re.search(r"^rest\.port: (\d+)$", config.read_text(), re.MULTILINE)
            if port is None:
                continue
            url = f"http://127.0.0.1:{port[1]}"
            with closing(FlinkRest(url, timeout_s=2.0)) as flink, answers_of("Flink", url):
                jobs += [(url, str(job["name"])) for job in flink.jobs()
                         if job["state"] == "RUNNING"]  # fmt: skip
    return jobs


def job_of_testbed(name: str, stop: threading.Event) -> tuple[str, str]:
    """Wait for a job there, and return its address and name. ``name`` may be empty.

    Raises SpecError when none comes, or when those that run are several or have other names.
    """
    for _ in range(round(WAITS_S / LOOKS_EVERY_S)):
        jobs = running_jobs()
        matches = [job for job in jobs if name in ("", job[1])]
        if len(matches) == 1:
            return matches[0]
        if jobs:
            what = "several jobs run there" if matches else f"no job {name} runs there"
            listed = ", ".join(sorted(job for _, job in jobs))
            raise SpecError(TESTBED, [f"{what}; name one with --job: {listed}"])
        if stop.wait(LOOKS_EVERY_S):
            break
    problem = "no job runs on the testbed flink of this machine"
    how = "tidebench run include/experiment/specs/flink_shadow.yaml begins one"
    raise SpecError(TESTBED, [f"{problem}; {how}"])


class TestbedRest(FlinkRest):
    """The Flink of a job there: a run that is deployed again has another port, and another run may
    have its old one."""

    __test__ = False

    def __init__(self, url: str, *, job: str, **options: Any) -> None:
        super().__init__(url, **options)
        self._job = job

    def job_named(self, name: str) -> str:
        try:
            return super().job_named(name)
        except NoSuchJobError:
            if not self._follow():
                raise
            return super().job_named(name)

    def _request(self, method: str, path: str, body: Any) -> Any:
        try:
            return super()._request(method, path, body)
        except NoAnswerError:
            if not self._follow() or method != "GET":  # a change is never sent twice
                raise
            return super()._request(method, path, body)

    def _follow(self) -> bool:
        """Go on where the job runs now; False when that is here, or nowhere."""
        urls = [url for url, name in running_jobs() if name == self._job]
        if not urls or self.url in urls:
            return False
        self.close()
        self.connect(urls[0])
        return True
