"""An external scaler of KEDA: serves what `shadow` or `act` last wrote into its state.

A ScaledObject names a controller, and an operator of the job or none for TaskManagers. The metric
is how many are wanted and its target 1, so that the HPA behind KEDA arrives at that number. Advice
that no longer holds is an error, on which KEDA leaves everything as it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from include.files.whole import read_json
from include.model.errors import SetupError, StoreError
from include.service.keda import externalscaler_pb2 as messages
from include.service.shadow import STATE

SERVICE = "externalscaler.ExternalScaler"
LATE_S = 60.0
"""Advice counts for so long after the time until which it holds: the next may be on its way."""
WATCH_S = 5.0
CALLS = 200
"""At a time; a stream takes one of them, and a thread, for as long as it is open."""


class NoAdvice(Exception):
    """Nothing that KEDA could scale by, and the code of gRPC that says so."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        self.code = code
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Metric:
    """A number of instances of an operator, or of TaskManagers."""

    name: str
    wanted: int


def metric_in(state: Path, asked: messages.ScaledObjectRef, now_s: float) -> Metric:
    """What is wanted of what a ScaledObject names. Raises NoAdvice."""
    metadata = dict(asked.scalerMetadata)
    operator = metadata.get("operator", "")
    try:
        controllers = read_json(state / STATE)["controllers"]
    except (StoreError, OSError) as error:
        raise NoAdvice(grpc.StatusCode.UNAVAILABLE, str(error)) from error
    controller = metadata.get("controller", "")
    if not controller and len(controllers) == 1:
        [controller] = controllers
    if controller not in controllers:
        known = ", ".join(sorted(controllers))
        problem = (
            f"metadata.controller has to name one that advises here ({known}), not {controller!r}"
        )
        raise NoAdvice(grpc.StatusCode.INVALID_ARGUMENT, problem)
    rows = {row["operator"]: row for row in controllers[controller]["advised"]}
    if not rows:
        raise NoAdvice(grpc.StatusCode.UNAVAILABLE, f"{controller} has not advised yet")
    if operator and operator not in rows:
        problem = f"the job has no operator {operator!r}; it has {', '.join(sorted(rows))}"
        raise NoAdvice(grpc.StatusCode.INVALID_ARGUMENT, f"metadata.operator: {problem}")
    row = rows[operator] if operator else next(iter(rows.values()))
    if row["failed"]:
        problem = f"{controller} could not decide: {row['because']}"
        raise NoAdvice(grpc.StatusCode.UNAVAILABLE, problem)
    over_s = now_s - controllers[controller]["valid_until_s"]
    if over_s > LATE_S:
        problem = f"the last advice held until {over_s:.0f} s ago; does the service run?"
        raise NoAdvice(grpc.StatusCode.UNAVAILABLE, problem)
    if -over_s > row["holds_until_s"] - row["time_s"] + LATE_S:
        problem = f"the clock was set back: the last advice holds for {-over_s:.0f} s more"
        raise NoAdvice(grpc.StatusCode.UNAVAILABLE, problem)
    wanted = row["wanted"] if operator else row["hosts_wanted"]
    return Metric(f"{controller}-{operator or 'task-managers'}", int(wanted))


class ExternalScaler:
    """The four calls of ``externalscaler.proto``."""

    def __init__(self, state: Path) -> None:
        self._state = state

    def is_active(
        self, asked: messages.ScaledObjectRef, context: grpc.ServicerContext
    ) -> messages.IsActiveResponse:
        """Always, once there is advice: a job without instances would stand still."""
        return messages.IsActiveResponse(result=self._metric(asked, context).wanted > 0)

    def stream_is_active(
        self, asked: messages.ScaledObjectRef, context: grpc.ServicerContext
    ) -> Iterator[messages.IsActiveResponse]:
        """The same for ``external-push``: at first, and whenever it changes."""
        last: bool | None = None
        while context.is_active():
            active = self._metric(asked, context).wanted > 0
            if active != last:
                yield messages.IsActiveResponse(result=active)
                last = active
            time.sleep(WATCH_S)

    def get_metric_spec(
        self, asked: messages.ScaledObjectRef, context: grpc.ServicerContext
    ) -> messages.GetMetricSpecResponse:
        """One metric, of which each replica is to have 1."""
        name = self._metric(asked, context).name
        spec = messages.MetricSpec(metricName=name, targetSize=1, targetSizeFloat=1.0)
        return messages.GetMetricSpecResponse(metricSpecs=[spec])

    def get_metrics(
        self, asked: messages.GetMetricsRequest, context: grpc.ServicerContext
    ) -> messages.GetMetricsResponse:
        """How many are wanted now, under the name that was asked for."""
        wanted = self._metric(asked.scaledObjectRef, context).wanted
        value = messages.MetricValue(
            metricName=asked.metricName, metricValue=wanted, metricValueFloat=float(wanted)
        )
        return messages.GetMetricsResponse(metricValues=[value])

    def _metric(self, asked: messages.ScaledObjectRef, context: grpc.ServicerContext) -> Metric:
        try:
            return metric_in(self._state, asked, time.time())
        except NoAdvice as error:
            context.abort(error.code, str(error))
            raise  # abort has raised


def serve(state: Path, host: str, port: int) -> tuple[grpc.Server, int]:
    """A server that runs, and its port; 0 takes a free one. Raises SetupError when it is taken."""
    scaler = ExternalScaler(state)
    ref = messages.ScaledObjectRef
    calls: dict[str, Any] = {
        "IsActive": _call(scaler.is_active, ref),
        "GetMetricSpec": _call(scaler.get_metric_spec, ref),
        "GetMetrics": _call(scaler.get_metrics, messages.GetMetricsRequest),
        "StreamIsActive": grpc.unary_stream_rpc_method_handler(
            scaler.stream_is_active, ref.FromString, _written
        ),
    }
    server = grpc.server(ThreadPoolExecutor(CALLS), options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, calls)])
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        bound = server.add_insecure_port(address)
    except RuntimeError as error:
        problem = f"{address} cannot be listened on; choose another --port or --host"
        raise SetupError(problem) from error
    server.start()
    return server, bound


def _call(method: Callable[..., Any], request: Any) -> grpc.RpcMethodHandler:
    return grpc.unary_unary_rpc_method_handler(method, request.FromString, _written)


def _written(message: Any) -> bytes:
    content: bytes = message.SerializeToString()
    return content
