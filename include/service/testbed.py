"""Finds the job that a run of the testbed `flink` has on this machine."""

from __future__ import annotations

import re
import threading
from contextlib import closing

from include.model.errors import SpecError
from include.service.rest import FlinkRest
from include.testbeds.flink.installation import flink_state
from include.testbeds.flink.rest import NoAnswerError

TESTBED = "testbed"
"""In place of an address."""
WAITS_S = 180.0
LOOKS_EVERY_S = 1.0


def running_jobs() -> list[tuple[str, str]]:
    """Address and name of every job that runs there."""
    found = []
    for config in sorted((flink_state() / "runs").glob("*/conf/config.yaml")):
        port = re.search(r"^rest\.port: (\d+)$", config.read_text(), re.MULTILINE)
        if port is None:
            continue
        url = f"http://127.0.0.1:{port[1]}"
        try:
            with closing(FlinkRest(url, timeout_s=2.0)) as flink:
                found += [(url, str(job["name"])) for job in flink.jobs()
                          if job["state"] == "RUNNING"]  # fmt: skip
        except NoAnswerError:
            continue  # of a run that is over
    return found


def job_of_testbed(name: str, stop: threading.Event) -> tuple[str, str]:
    """Wait for a job there, of that name if one is given. Raises SpecError when none comes, or when
    nobody says which of several."""
    for _ in range(round(WAITS_S / LOOKS_EVERY_S)):
        jobs = [job for job in running_jobs() if name in ("", job[1])]
        if len(jobs) == 1:
            return jobs[0]
        if jobs:
            listed = ", ".join(job for _, job in jobs)
            raise SpecError(TESTBED, [f"several jobs run there; name one with --job: {listed}"])
        if stop.wait(LOOKS_EVERY_S):
            break
    told = f"no job {name} runs on the testbed flink of this machine".replace("  ", " ")
    how = "tidebench run include/experiment/specs/flink_shadow.yaml begins one"
    raise SpecError(TESTBED, [f"{told}; {how}"])
