"""`tidebench act` on a real Flink: it rescales a job within limits, is killed, and hands back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from include.service.journal import ChangeJournal, sentence
from include.service.rest import FlinkRest
from tests.flink.flink_run import configured, flink_run
from tests.live.world import wait_until

pytestmark = pytest.mark.flink

LIMITS = """
default: {least: 1, most: 3, most_at_once: 1}
changed_instances_per_hour: 6
between_changes_s: 10
up_within_s: 200
wait_after_failure_s: 1
"""
HOSTS = (("front", "back", "end"), ("back", "front"))
WITHIN_S = 200.0


class Service:
    """The command, its journal, and the job that it acts on."""

    def __init__(self, run, folder, limits=LIMITS):
        self.url, self.job = f"http://127.0.0.1:{run.state.ports.rest}", run.config.run
        self.state, self.limits = folder / "state", folder / "limits.yaml"
        self.limits.write_text(limits)

    @contextmanager
    def runs(self, *options):
        command = [sys.executable, "-m", "include.cli", "act", self.url, "--job", self.job]
        command += ["--controller", "hpa", "--limits", str(self.limits)]
        command += ["--state", str(self.state), "--every", "2", *options]
        process = subprocess.Popen(command)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def until(self, kind):
        """Wait for an entry of a kind."""
        wait_until(lambda: kind in self.kinds(), self.told, WITHIN_S)

    def told(self):
        return "\n".join(sentence(entry) for entry in ChangeJournal(self.state).read())

    def kinds(self):
        return [entry.kind for entry in ChangeJournal(self.state).read()]


def asked_and_running(flink, job):
    reading = flink.reading(job)
    return {one.operator: (one.asked_most, one.parallelism) for one in reading.operators}


def test_a_busy_operator_is_scaled_within_limits_others_are_respected_and_it_hands_back(tmp_path):
    """60 items a second at 40 ms: `front` has two instances, needs three, and would have four."""
    config = configured(rate=60, emits_s=600, duration_s=700)
    with flink_run(config, HOSTS) as run:
        service, flink = (
            Service(run, tmp_path),
            FlinkRest(f"http://127.0.0.1:{run.state.ports.rest}"),
        )
        with service.runs():
            service.until("would")
        assert asked_and_running(flink, service.job)["front"] == (2, 2)

        with service.runs("--really") as process:
            service.until("asks")
            process.send_signal(signal.SIGKILL)  # on either side of its request
        with service.runs("--really") as process:
            service.until("up")
            assert asked_and_running(flink, service.job)["front"] == (3, 3)

            job = flink.job_named(service.job)
            vertices = {one.operator: one.vertex for one in flink.reading(service.job).operators}
            flink.ask_for(job, {**flink.requirements(job), vertices["end"]: (1, 2)})
            service.until("others")
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 0
        flink.close()
    assert service.kinds()[-1] == "ended"
    assert "asks for front 2 -> 3 (front uses" in service.told()
    assert service.kinds().count("asks") - service.kinds().count("not taken") == 1
    assert "end 1 -> 2" in service.told()


def test_a_job_that_is_down_since_a_change_gets_what_it_had(tmp_path):
    """Its TaskManagers are killed as it is rescaled; nothing starts them again."""
    config = configured(rate=60, emits_s=600, duration_s=700)
    with flink_run(config, HOSTS) as run:
        flink = FlinkRest(f"http://127.0.0.1:{run.state.ports.rest}")
        limits = LIMITS.replace("up_within_s: 200", "up_within_s: 20")
        service = Service(run, tmp_path, limits)
        with service.runs("--really"):
            service.until("taken")
            for host in run.state.fleet.hosts.values():
                os.kill(host.process.pid, signal.SIGKILL)
            wait_until(lambda: service.kinds().count("taken") == 2, service.told, WITHIN_S)
        assert "goes back to front 2, as the job is down" in service.told()
        reading = flink.reading(service.job)
        assert (reading.running, reading.elastic) == (False, True)
        assert asked_and_running(flink, service.job)["front"][0] == 2
        flink.close()
