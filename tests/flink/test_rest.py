"""The REST interface against a small server that answers as Flink 2.2.1 does."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest

from include.testbeds.flink.rest import Checkpoints, NoAnswerError, Rest, first_reason, too_early
from tests.http_server import sends, serving

JOB = "0" * 32
JOB_ANSWER = {
    "vertices": [
        {"id": "s1", "name": "Source: S -> (Filter, Filter)", "tasks": {"INITIALIZING": 0}},
        {"id": "v1", "name": "front", "tasks": {"INITIALIZING": 1}},
    ],
}


@contextmanager
def a_server(answers):
    """Answers by method and path; what was sent is kept."""
    sent = []

    def answer(handler, body):
        asked = (handler.command, handler.path)
        sent.append((*asked, json.loads(body) if body else None))
        status, content = answers.get(asked, (404, {"errors": ["not there"]}))
        sends(handler, status, json.dumps(content).encode() if content is not None else b"")

    with serving(answer) as port:
        yield Rest(port, JOB), sent


def test_a_request_keeps_what_it_does_not_name_and_never_a_lower_bound_above_one():
    bounds = {"lowerBound": 1, "upperBound": 1}
    asked = {"s1": {"parallelism": bounds}, "v1": {"parallelism": bounds}}
    path = f"/jobs/{JOB}/resource-requirements"
    answers = {
        ("GET", f"/jobs/{JOB}"): (200, JOB_ANSWER),
        ("GET", path): (200, asked),
        ("PUT", path): (200, None),
    }
    with a_server(answers) as (rest, sent):
        rest.ask_for({"front": 5})
    wanted = {**asked, "v1": {"parallelism": {"lowerBound": 1, "upperBound": 5}}}
    assert sent[-1] == ("PUT", path, wanted)


def test_a_job_without_its_graph_yet_is_no_answer():
    """A JobManager that was started again knows the job before it knows its operators."""
    begun = {**JOB_ANSWER, "vertices": []}
    with a_server({("GET", f"/jobs/{JOB}"): (200, begun)}) as (rest, sent):
        with pytest.raises(NoAnswerError, match="does not know back, front of the job yet"):
            rest.ask_for({"front": 5, "back": 1})
        assert [method for method, *_ in sent] == ["GET"]


def test_vertices_are_known_by_the_names_of_the_topology():
    with a_server({("GET", f"/jobs/{JOB}"): (200, JOB_ANSWER)}) as (rest, _):
        assert rest.vertices() == {"S": "s1", "front": "v1"}
        assert rest.initializing() == ["front"]


def test_a_checkpoint_runs_fails_or_is_complete():
    path = f"/jobs/{JOB}/checkpoints"
    failure = {"failureCause": {"class": "x", "stack-trace": "No space left on device"}}
    answers = {
        ("POST", path): (202, {"request-id": "r"}),
        ("GET", f"{path}/r"): (200, {"status": {"id": "IN_PROGRESS"}}),
        ("GET", f"{path}/f"): (200, {"status": {"id": "COMPLETED"}, "operation": failure}),
        ("GET", f"{path}/c"): (200, {"status": {"id": "COMPLETED"}, "operation": {}}),
    }
    with a_server(answers) as (rest, sent):
        assert rest.trigger_checkpoint() == "r"
        assert sent[-1][2] == {"checkpointType": "FULL"}
        assert rest.checkpoint_failure("r") is None
        assert rest.checkpoint_failure("f") == "No space left on device"
        assert rest.checkpoint_failure("c") == ""


def test_of_a_stack_trace_the_innermost_reason_is_told():
    inner = "c.D: task front (1/2) is not being executed"
    trace = f"a.B: outer\n\tat x.y(Z.java:1)\nCaused by: {inner}\n\tat z"
    assert first_reason(trace) == inner
    assert too_early(first_reason(trace))
    assert not too_early(first_reason("java.io.IOException: No space left on device"))


def test_checkpoints_before_the_first_and_after():
    path = ("GET", f"/jobs/{JOB}/checkpoints")
    none = {"counts": {"failed": 0}, "latest": {"completed": None, "failed": None}}
    with a_server({path: (200, none)}) as (rest, _):
        assert rest.checkpoints() == Checkpoints()
    done = {"id": 7, "end_to_end_duration": 120, "state_size": 4096}
    failed = {"failure_message": "expired"}
    some = {"counts": {"failed": 2}, "latest": {"completed": done, "failed": failed}}
    with a_server({path: (200, some)}) as (rest, _):
        assert rest.checkpoints() == Checkpoints(7, 0.12, 4096, 2, "expired")


def test_who_does_not_answer_or_refuses_is_named():
    with (
        a_server({}) as (rest, _),
        pytest.raises(NoAnswerError, match=r"refuses GET .*not there"),
    ):
        rest.vertices()
    with pytest.raises(NoAnswerError, match="does not answer GET"):
        rest.vertices()


@pytest.mark.parametrize("answer", [None, [], {"vertices": None}, {"vertices": [{"id": "v1"}]}])
def test_an_answer_without_what_is_asked_is_none(answer):
    """As of a proxy, or of a JobManager that is about to start; the next look asks again."""
    job = f"/jobs/{JOB}"
    looked_at = ("", "/vertices/v1", "/checkpoints", "/checkpoints/t")
    paths = [("GET", job + path) for path in looked_at]
    paths += [("GET", "/taskmanagers"), ("POST", f"{job}/checkpoints")]
    with a_server(dict.fromkeys(paths, (200, answer))) as (rest, _):
        for ask in (
            rest.vertices, rest.initializing, lambda: rest.hosts_of("v1"), rest.trigger_checkpoint,
            lambda: rest.ask_for({"front": 5}), lambda: rest.checkpoint_failure("t"),
            rest.checkpoints, rest.task_managers,
        ):  # fmt: skip
            with pytest.raises(NoAnswerError, match="has not what it should"):
                ask()
